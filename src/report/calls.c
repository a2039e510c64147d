/* SPDX-License-Identifier: MIT */
#include "report/calls.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "symbols/seethrough.h"

static int add_call(struct sp_calls *calls, const struct sp_symbol *symbol,
		    struct sp_frame frame)
{
	if (sp_array_reserve((void **)&calls->at, &calls->room, calls->n,
			     sizeof(*calls->at)) < 0 ||
	    sp_array_reserve((void **)&calls->roles, &calls->roles_room,
			     calls->n, sizeof(*calls->roles)) < 0)
		return -ENOMEM;
	calls->roles[calls->n] = symbol->role;
	/* Which has jumped on to one that has no name: its frame is gone. */
	if (calls->n && symbol->calls_wrapper &&
	    calls->at[calls->n - 1].frame.module == frame.module &&
	    calls->roles[calls->n - 1] == SP_ROLE_NAMELESS)
		calls->roles[calls->n - 1] = SP_ROLE_WRAPPER;
	calls->at[calls->n++] = (struct sp_call){symbol, frame};
	return 0;
}

struct of_stack {
	const struct sp_profile *profile;
	const struct sp_call *calls;
};

/* As names in a baseline are: the program and code in no file are one. */
static uint32_t module_of(const struct of_stack *of, size_t i)
{
	const uint32_t id = of->calls[i].frame.module;
	const struct sp_module *module = sp_profile_module(of->profile, id);

	return module && !module->is_main ? id : 0;
}

static bool is_same_module(const void *arg, size_t a, size_t b)
{
	return module_of(arg, a) == module_of(arg, b);
}

int sp_calls_read(struct sp_calls *calls, const struct sp_aggregate *a,
		  const struct sp_stack *stack)
{
	static const struct sp_symbol no_stack = {
		.function = SP_LABEL_NO_STACK,
	};
	struct of_stack of = {.profile = a->analysis->profile};
	int r = 0;

	calls->n = 0;
	calls->are_all =
		sp_symbolizer_options_of(a->symbolizer)->see_through.all_frames;
	if (!stack->n_frames)
		r = add_call(calls, &no_stack, (struct sp_frame){0});
	for (uint32_t i = 0; i < stack->n_frames; i++) {
		const struct sp_symbols symbols =
			sp_aggregate_symbols(a, stack->frames[i]);

		for (size_t k = 0; !r && k < symbols.count; k++)
			r = add_call(calls, &symbols.symbol[k],
				     stack->frames[i]);
	}
	of.calls = calls->at;
	if (!r)
		calls->flat = (uint32_t)sp_find_flat(calls->roles, calls->n,
						     is_same_module, &of);
	return r;
}

void sp_calls_done(struct sp_calls *calls)
{
	free(calls->at);
	free(calls->roles);
	*calls = (struct sp_calls){0};
}
