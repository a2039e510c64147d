/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "report/package.h"
#include "text/text.h"
#include "view/view_note.h"

#define MODULES_MAX 3

/* Of a library that is stripped, so that its callers have names.  The pool that
 * libstdc++ takes at the start of every C++ program is less, as a rule. */
#define STRIPPED_SHARE_MIN 0.01

/* Of a module, by its position in the profile. */
struct unnamed {
	const struct sp_module *module;
	double flat_bytes;  /* of stacks that are flat for a function of it */
	double any_bytes;   /* of stacks with one of them anywhere */
	uint32_t last;      /* 1 + the stack that any_bytes has */
	const char *reason; /* NULL: the file is there, and says no more */
};

struct unnamed_modules {
	const struct sp_profile *profile;
	struct unnamed *modules;
	const char *jit_reason; /* of code in no module; NULL: no trouble */
};

static struct unnamed *unnamed_of(struct unnamed_modules *all,
				  uint32_t module_id)
{
	const struct sp_module *m = sp_profile_module(all->profile, module_id);

	return m ? &all->modules[m - all->profile->modules] : NULL;
}

static bool is_unnamed(const struct sp_aggregate *aggregate,
		       const struct sp_aggregate_stack *s, uint32_t frame)
{
	return frame < s->stack->n_frames &&
	       sp_aggregate_symbols(aggregate, s->stack->frames[frame])
		       .symbol[0]
		       .is_fallback;
}

static void add_bytes(struct unnamed_modules *all, uint32_t module_id, size_t i,
		      double bytes)
{
	struct unnamed *u = unnamed_of(all, module_id);

	if (!u || u->last == i + 1)
		return;
	u->any_bytes += bytes;
	u->last = (uint32_t)(i + 1);
}

static void add_stack(struct unnamed_modules *all,
		      const struct sp_aggregate *aggregate, size_t i)
{
	const struct sp_aggregate_stack *s = &aggregate->stacks[i];
	const uint64_t modules = s->unnamed_modules;
	struct unnamed *flat;

	for (uint64_t left = modules << 1 >> 1; left; left &= left - 1)
		add_bytes(all, (uint32_t)__builtin_ctzll(left), i, s->bytes);
	for (uint32_t k = 0; modules >> 63 && k < s->stack->n_frames; k++)
		if (is_unnamed(aggregate, s, k))
			add_bytes(all, s->stack->frames[k].module, i, s->bytes);
	if (!modules || !is_unnamed(aggregate, s, s->flat_frame))
		return;
	flat = unnamed_of(all, s->stack->frames[s->flat_frame].module);
	if (flat)
		flat->flat_bytes += s->bytes;
}

static void take_reason(void *arg, const struct sp_module *module,
			const char *reason)
{
	struct unnamed_modules *all = arg;

	if (!module->id) {
		all->jit_reason = reason;
		return;
	}
	all->modules[module - all->profile->modules].reason = reason;
}

/* A file that is gone has no name for any function; one that is stripped still
 * has those that others call. */
static double lost_bytes(const struct unnamed *u)
{
	return u->reason ? u->any_bytes : u->flat_bytes;
}

static bool is_worth_saying(const struct unnamed *u, double whole)
{
	return sp_view_note_matters(lost_bytes(u), whole) &&
	       (u->reason || lost_bytes(u) > STRIPPED_SHARE_MIN * whole);
}

static int compare_unnamed(const void *a, const void *b)
{
	const double x = lost_bytes(a), y = lost_bytes(b);

	return (x < y) - (x > y);
}

static void note_module(struct sp_view_notes *notes, const struct unnamed *u,
			double whole)
{
	char package[SP_PACKAGE_NAME_MAX];

	fprintf(sp_view_note(notes),
		"%s of the bytes are in functions without names: ",
		sp_text_percent(lost_bytes(u), whole).text);
	if (u->reason) {
		sp_text_print(notes->out, u->module->path);
		putc(' ', notes->out);
		sp_text_print(notes->out, u->reason);
		fputs("; keep the names in the profile before a rebuild or a "
		      "move: sampleprof run does it, or sampleprof symbolize\n",
		      notes->out);
		return;
	}
	sp_text_print(notes->out, sp_text_base_name(u->module->path));
	if (sp_package_of_debug(SP_PACKAGE_LISTS, u->module->path, package))
		fprintf(notes->out,
			" is stripped: install %s, or use "
			"--debuginfod\n",
			package);
	else
		fputs(" is stripped: build it with -g and do not strip it, or "
		      "use --debuginfod\n",
		      notes->out);
}

void sp_view_note_unnamed(struct sp_view_notes *notes,
			  const struct sp_aggregate *aggregate)
{
	const struct sp_analysis *a = aggregate->analysis;
	const size_t n = a->profile->n_modules;
	const double whole = sp_estimate_bytes_value(&a->how, a->whole);
	struct unnamed_modules all = {
		.profile = a->profile,
		.modules = calloc(n + 1, sizeof(*all.modules)),
	};
	size_t n_matter = 0;

	if (!all.modules)
		return;
	for (size_t i = 0; i < n; i++)
		all.modules[i].module = &a->profile->modules[i];
	for (size_t i = 0; i < aggregate->n_stacks; i++)
		add_stack(&all, aggregate, i);
	sp_symbolizer_problems(aggregate->symbolizer, take_reason, &all);
	qsort(all.modules, n, sizeof(*all.modules), compare_unnamed);
	for (size_t i = 0; i < n; i++)
		if (is_worth_saying(&all.modules[i], whole) &&
		    n_matter++ < MODULES_MAX)
			note_module(notes, &all.modules[i], whole);
	if (all.jit_reason) {
		fputs("no names of code made at run time: ",
		      sp_view_note(notes));
		sp_text_print(notes->out, all.jit_reason);
		putc('\n', notes->out);
	}
	if (n_matter > MODULES_MAX)
		fprintf(sp_view_note(notes),
			"%zu more modules have functions without names\n",
			n_matter - MODULES_MAX);
	free(all.modules);
}
