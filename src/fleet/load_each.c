/* SPDX-License-Identifier: MIT */
/*
 * Many processes, each as a profile by itself.  A question costs a request, so
 * that a group of them is asked for at once, and rows go to the profile of
 * their process.  Call stacks are read once for the group (`shared`); then each
 * profile gets those that its samples have, and their modules and names.
 */
#include <stdlib.h>
#include <string.h>

#include "fleet/sql.h"
#include "fleet/loader.h"

/* Of a group, unless one process has more. */
#define SAMPLES_MAX (1u << 18)

struct group {
	struct loader all; /* its profile is `shared` */
	struct sp_fleet_chosen chosen;
	struct sp_fleet_chosen *ones; /* of each its own */
	uint32_t *stacks;             /* of the shared ones: where they go */
	uint32_t *modules;            /* likewise, by their ids */
};

/* ---- code ---- */

/* Positions in the order of the shared ones. */
static int copy_stacks(struct group *g, struct loader *l)
{
	const struct sp_profile *shared = g->all.p;
	struct sp_profile *p = l->p;

	memset(g->stacks, 0, shared->n_stacks * sizeof(*g->stacks));
	for (size_t i = 0; i < p->n_samples; i++) {
		p->n_stacks += !g->stacks[p->samples[i].stack];
		g->stacks[p->samples[i].stack] = 1;
	}
	p->stacks = calloc(p->n_stacks + 1, sizeof(*p->stacks));
	if (!p->stacks)
		return sp_fleet_load_fail_memory(l);
	p->n_stacks = 0;
	for (size_t i = 0; i < shared->n_stacks; i++) {
		const struct sp_stack *s = &shared->stacks[i];
		struct sp_stack *to = &p->stacks[p->n_stacks];

		if (!g->stacks[i])
			continue;
		*to = *s;
		to->frames = sp_blocks_copy(&p->storage, s->frames,
					    s->n_frames * sizeof(*s->frames));
		if (!to->frames)
			return sp_fleet_load_fail_memory(l);
		g->stacks[i] = (uint32_t)p->n_stacks;
		to->id = (uint32_t)++p->n_stacks;
	}
	for (size_t i = 0; i < p->n_samples; i++)
		p->samples[i].stack = g->stacks[p->samples[i].stack];
	return 0;
}

/* The names of `frames`, which are sorted, as are those that are found. */
static int copy_names(struct group *g, struct loader *l,
		      const struct sp_frame *frames, size_t n)
{
	struct sp_profile *p = l->p;

	p->embedded = calloc(n + 1, sizeof(*p->embedded));
	if (!p->embedded)
		return sp_fleet_load_fail_memory(l);
	for (size_t i = 0; i < n; i++) {
		const struct sp_embedded_frame *found =
			sp_embedded_find(g->all.p, frames[i]);

		if (found)
			p->embedded[p->n_embedded++] = *found;
	}
	return 0;
}

/* The modules that frames use, in the order of the shared ones, so that sorted
 * frames stay sorted. */
static int copy_modules(struct group *g, struct loader *l,
			const struct sp_frame *frames, size_t n)
{
	const struct sp_profile *shared = g->all.p;
	struct sp_profile *p = l->p;

	memset(g->modules, 0, (shared->n_modules + 1) * sizeof(*g->modules));
	for (size_t i = 0; i < n; i++)
		if (frames[i].module <= shared->n_modules)
			g->modules[frames[i].module] = 1;
	p->modules = calloc(shared->n_modules + 1, sizeof(*p->modules));
	if (!p->modules)
		return sp_fleet_load_fail_memory(l);
	for (size_t i = 0; i < shared->n_modules; i++)
		if (g->modules[i + 1]) {
			p->modules[p->n_modules] = shared->modules[i];
			g->modules[i + 1] = (uint32_t)++p->n_modules;
			p->modules[p->n_modules - 1].id =
				(uint32_t)p->n_modules;
		}
	return 0;
}

static void number_frame(const struct group *g, struct sp_frame *frame)
{
	if (frame->module && frame->module <= g->all.p->n_modules)
		frame->module = g->modules[frame->module];
}

static int copy_code(struct group *g, struct loader *l)
{
	struct sp_profile *p = l->p;
	struct sp_frame *frames = NULL;
	size_t n = 0;
	int r = copy_stacks(g, l);

	if (r >= 0) {
		frames = sp_profile_frames(p, &n);
		r = frames ? 0 : sp_fleet_load_fail_memory(l);
	}
	if (r >= 0)
		r = copy_names(g, l, frames, n);
	if (r >= 0)
		r = copy_modules(g, l, frames, n);
	free(frames);
	if (r < 0)
		return r;
	for (size_t i = 0; i < p->n_stacks; i++)
		for (uint32_t k = 0; k < p->stacks[i].n_frames; k++)
			number_frame(g, &p->stacks[i].frames[k]);
	for (size_t i = 0; i < p->n_embedded; i++)
		number_frame(g, &p->embedded[i].frame);
	return 0;
}

static int load_code(struct group *g)
{
	struct loader *l = &g->all;
	int r = sp_fleet_code_load(&l->code, l->db, l->chosen,
				   sp_fleet_get_stacks, l->p, l->err);

	if (r < 0)
		return r;
	g->stacks = calloc(l->p->n_stacks + 1, sizeof(*g->stacks));
	g->modules = calloc(l->p->n_modules + 1, sizeof(*g->modules));
	if (!g->stacks || !g->modules)
		return sp_fleet_load_fail_memory(l);
	/* The stacks for samples; only the group releases them. */
	for (size_t i = 0; i < l->n_each; i++)
		l->each[i].code = l->code;
	return 0;
}

/* ---- a group ---- */

static int init_group(struct group *g)
{
	struct loader *l = &g->all;

	l->n_each = g->chosen.n;
	l->p = calloc(1, sizeof(*l->p));
	l->each = calloc(l->n_each, sizeof(*l->each));
	l->by_process = calloc(l->n_each, sizeof(*l->by_process));
	g->ones = calloc(l->n_each, sizeof(*g->ones));
	if (!l->p || !l->each || !l->by_process || !g->ones)
		return sp_error_memory(l->err, l->db->path);
	for (size_t i = 0; i < l->n_each; i++) {
		g->ones[i].processes = &g->chosen.processes[i];
		g->ones[i].n = 1;
		l->by_process[i] = (struct numbered){g->chosen.processes[i], i};
		l->each[i] = (struct loader){
			.db = l->db, .chosen = &g->ones[i], .err = l->err};
		l->each[i].p = calloc(1, sizeof(*l->p));
		if (!l->each[i].p)
			return sp_error_memory(l->err, l->db->path);
	}
	qsort(l->by_process, l->n_each, sizeof(*l->by_process),
	      sp_fleet_load_compare);
	return 0;
}

static void free_group(struct group *g)
{
	struct loader *l = &g->all;

	for (size_t i = 0; i < l->n_each && l->each; i++) {
		free(l->each[i].places);
		free(l->each[i].by_process);
		free(l->each[i].parts);
		if (l->each[i].p)
			sp_profile_free(l->each[i].p);
	}
	sp_fleet_code_done(&l->code);
	if (l->p)
		sp_profile_free(l->p);
	free(l->each);
	free(l->by_process);
	free(g->ones);
	free(g->stacks);
	free(g->modules);
}

static int load_group(struct group *g)
{
	struct loader *l = &g->all;
	int r = init_group(g);

	if (r >= 0)
		r = sp_fleet_load_processes(l);
	if (r >= 0)
		r = sp_fleet_load_each_facts(l);
	if (r >= 0)
		r = load_code(g);
	if (r >= 0)
		r = sp_fleet_load_rows(l);
	for (size_t i = 0; i < l->n_each && r >= 0; i++)
		r = copy_code(g, &l->each[i]);
	return r < 0 ? r : sp_fleet_load_finish(l, sp_fleet_load_name);
}

/* How many of them, from that one on, are a group. */
static size_t group_at(const struct sp_fleet_chosen *chosen, size_t from)
{
	uint64_t samples = 0;
	size_t n = 0;

	while (from + n < chosen->n && n < SP_FLEET_LIST_MAX) {
		const uint64_t more =
			chosen->samples ? chosen->samples[from + n] : 0;

		if (n && more > SAMPLES_MAX - samples)
			break;
		samples += more < SAMPLES_MAX ? more : SAMPLES_MAX;
		n++;
	}
	return n;
}

int sp_fleet_load_each(struct sp_fleet_db *db,
		       const struct sp_fleet_chosen *chosen,
		       sp_fleet_each_fn *take, void *arg, struct sp_error *err)
{
	int r = 0;

	for (size_t i = 0, n; i < chosen->n && r >= 0; i += n) {
		struct group g = {.all = {.db = db, .err = err}};

		n = group_at(chosen, i);
		g.chosen = (struct sp_fleet_chosen){
			.processes = &chosen->processes[i], .n = n};
		g.all.chosen = &g.chosen;
		r = load_group(&g);
		for (size_t k = 0; k < n && r >= 0; k++)
			r = take(arg, g.all.each[k].p, g.all.each[k].parts,
				 err);
		free_group(&g);
	}
	return r;
}
