/* SPDX-License-Identifier: MIT */
/* Which function of a stack its bytes are flat for. */
#include "paths/aggregate.h"

#include "report/analysis.h"
#include "symbols/seethrough.h"

static struct sp_interpreter find_interpreter(const struct sp_symbols *symbols,
					      uint32_t n_frames)
{
	struct sp_interpreter in = {0};

	for (uint32_t i = 0; i < n_frames; i++)
		for (size_t k = 0; k < symbols[i].count; k++)
			if (sp_interpreter_look(&in, symbols[i].symbol[k].role,
						i))
				return in;
	return in;
}

/* As names in a baseline are: the program and code in no file are one. */
static uint32_t module_of(const struct sp_aggregate *a, struct sp_frame frame)
{
	const struct sp_module *module =
		sp_profile_module(a->analysis->profile, frame.module);

	return module && !module->is_main ? frame.module : 0;
}

/* OWN, LIBRARY or ALLOCATOR. */
static enum sp_role role_in(const struct sp_aggregate *a,
			    const struct sp_stack *stack,
			    const struct sp_interpreter *in, uint32_t frame,
			    enum sp_role role)
{
	if (role >= SP_ROLE_LIBRARY)
		return role;
	return role != SP_ROLE_SCRIPT && in->is_found &&
			       module_of(a, stack->frames[frame]) ==
				       module_of(a, stack->frames[in->at])
		       ? SP_ROLE_LIBRARY
		       : SP_ROLE_OWN;
}

void sp_aggregate_find_flat(const struct sp_aggregate *a,
			    const struct sp_stack *stack,
			    const struct sp_symbols *symbols,
			    uint32_t *ret_frame, uint32_t *ret_symbol)
{
	const struct sp_interpreter in =
		find_interpreter(symbols, stack->n_frames);
	enum sp_role least = SP_ROLE_ALLOCATOR;

	*ret_frame = 0;
	*ret_symbol = 0;
	for (uint32_t i = 0; i < stack->n_frames; i++) {
		for (uint32_t k = 0; k < symbols[i].count; k++) {
			enum sp_role role = role_in(a, stack, &in, i,
						    symbols[i].symbol[k].role);

			if (role >= least)
				continue;
			*ret_frame = i;
			*ret_symbol = k;
			least = role;
			if (least == SP_ROLE_OWN)
				return;
		}
	}
}
