/* SPDX-License-Identifier: MIT */
#include "profile/fold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/hash.h"
#include "profile/array.h"

/* How much older than the first record of a chunk those of later ones may be:
 * a thread may be off the processor between the clock and the chunk. */
#define SLACK_NS 100000000ull

/* More threads than that fill chunks of one time in no sane file. */
#define RUNS_MAX 4096u

/* A free that has not met its sample: at the same nanosecond it may come. */
#define ORPHANS_MAX 16u

struct event {
	uint64_t time_ns;
	uint64_t id;
	uint64_t size_bytes; /* 0: a free */
	uint64_t offset_bytes;
	uint64_t period_bytes;
	uint32_t stack;
	uint32_t thread;
	uint8_t entry;
};

/* What a chunk has, in order of time. */
struct run {
	struct event *events;
	size_t n, room, at;
	bool is_sorted;
};

struct cell {
	uint64_t id;
	uint32_t slot; /* 1 + position in `live`; 0: free */
};

struct sp_fold {
	const struct sp_profile *profile;
	struct sp_peak_walk *walk;
	struct run *runs[RUNS_MAX]; /* a heap, the earliest first */
	size_t n_runs;
	struct run *filling; /* not in the heap */
	uint64_t passed_ns;  /* what is older would come too late */

	uint64_t key; /* random: no file can choose ids that collide */
	struct cell *cells;
	size_t n_cells, n_alive; /* a power of two; at most half full */
	struct sp_sample *live;  /* those of no cell are linked by `stack` */
	size_t n_live, live_room;
	uint32_t free_slot; /* 1 + position; 0: none */
	struct event orphans[ORPHANS_MAX];
	size_t n_orphans;

	struct sp_group *groups;
	size_t n_groups, groups_room;
	uint32_t *group_cells; /* 1 + position; 0: free; at most half full */
	size_t n_group_cells;
};

/* ---- samples that ended ---- */

static uint64_t hash_group(const struct sp_fold *f, const struct sp_group *g)
{
	uint64_t h = sp_hash_word(f->key, g->size_bytes);

	h = sp_hash_word(h, g->period_bytes);
	return sp_hash_word(h, (uint64_t)g->stack << 32 | g->thread);
}

static bool same_group(const struct sp_group *a, const struct sp_group *b)
{
	return a->stack == b->stack && a->size_bytes == b->size_bytes &&
	       a->thread == b->thread && a->period_bytes == b->period_bytes;
}

/* The cell of a group, or the free one where it belongs. */
static uint32_t *find_group(const struct sp_fold *f, const struct sp_group *g)
{
	size_t i = hash_group(f, g) & (f->n_group_cells - 1);

	while (f->group_cells[i] &&
	       !same_group(&f->groups[f->group_cells[i] - 1], g))
		i = (i + 1) & (f->n_group_cells - 1);
	return &f->group_cells[i];
}

static int grow_group_cells(struct sp_fold *f)
{
	const size_t n = f->n_group_cells ? 2 * f->n_group_cells : 1024;
	uint32_t *cells = calloc(n, sizeof(*cells));

	if (!cells || n > UINT32_MAX) {
		free(cells);
		return -ENOMEM;
	}
	free(f->group_cells);
	f->group_cells = cells;
	f->n_group_cells = n;
	for (size_t i = 0; i < f->n_groups; i++)
		*find_group(f, &f->groups[i]) = (uint32_t)i + 1;
	return 0;
}

static int add_to_group(struct sp_fold *f, const struct sp_sample *s)
{
	const struct sp_group key = {.size_bytes = s->size_bytes,
				     .period_bytes = s->period_bytes,
				     .stack = s->stack,
				     .thread = s->thread};
	struct sp_group *g;
	uint32_t *cell;

	if (2 * (f->n_groups + 1) > f->n_group_cells && grow_group_cells(f) < 0)
		return -ENOMEM;
	cell = find_group(f, &key);
	if (!*cell) {
		if (sp_array_reserve((void **)&f->groups, &f->groups_room,
				     f->n_groups, sizeof(*f->groups)))
			return -ENOMEM;
		f->groups[f->n_groups] = key;
		*cell = (uint32_t)++f->n_groups;
	}
	g = &f->groups[*cell - 1];
	g->samples++;
	if (__builtin_add_overflow(g->tail_bytes,
				   s->size_bytes - s->offset_bytes,
				   &g->tail_bytes))
		g->tail_bytes = UINT64_MAX;
	return 0;
}

/* ---- samples that are alive ---- */

static size_t home_of(const struct sp_fold *f, uint64_t id)
{
	return sp_hash_word(f->key, id) & (f->n_cells - 1);
}

static struct cell *find_cell(const struct sp_fold *f, uint64_t id)
{
	size_t i = home_of(f, id);

	while (f->cells[i].slot && f->cells[i].id != id)
		i = (i + 1) & (f->n_cells - 1);
	return &f->cells[i];
}

static int grow_cells(struct sp_fold *f)
{
	struct cell *old = f->cells;
	const size_t n_old = f->n_cells;

	f->n_cells = n_old ? 2 * n_old : 1024;
	f->cells = calloc(f->n_cells, sizeof(*f->cells));
	if (!f->cells) {
		f->cells = old;
		f->n_cells = n_old;
		return -ENOMEM;
	}
	for (size_t i = 0; i < n_old; i++)
		if (old[i].slot)
			*find_cell(f, old[i].id) = old[i];
	free(old);
	return 0;
}

/* Take a cell out, and let those behind it move up, so that every one is still
 * found from its home. */
static void drop_cell(struct sp_fold *f, struct cell *cell)
{
	const size_t mask = f->n_cells - 1;
	size_t hole = (size_t)(cell - f->cells);

	for (size_t i = (hole + 1) & mask; f->cells[i].slot;
	     i = (i + 1) & mask) {
		const size_t home = home_of(f, f->cells[i].id);

		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		f->cells[hole] = f->cells[i];
		hole = i;
	}
	f->cells[hole].slot = 0;
	f->n_alive--;
}

static int get_slot(struct sp_fold *f, uint32_t *ret)
{
	if (f->free_slot) {
		*ret = f->free_slot;
		f->free_slot = f->live[*ret - 1].stack;
		return 0;
	}
	if (f->n_live >= UINT32_MAX - 1 ||
	    sp_array_reserve((void **)&f->live, &f->live_room, f->n_live,
			     sizeof(*f->live)))
		return -ENOMEM;
	*ret = (uint32_t)++f->n_live;
	return 0;
}

/* ---- one event after the other ---- */

/* Was it freed at the nanosecond of its birth?  Then it never was alive. */
static bool is_orphan(struct sp_fold *f, const struct event *e)
{
	for (size_t i = 0; i < f->n_orphans; i++) {
		if (f->orphans[i].id != e->id ||
		    f->orphans[i].time_ns != e->time_ns)
			continue;
		f->orphans[i] = f->orphans[--f->n_orphans];
		return true;
	}
	return false;
}

static int be_born(struct sp_fold *f, const struct event *e)
{
	const struct sp_sample sample = {.id = e->id,
					 .born_ns = e->time_ns,
					 .freed_ns = SP_NEVER,
					 .size_bytes = e->size_bytes,
					 .offset_bytes = e->offset_bytes,
					 .period_bytes = e->period_bytes,
					 .age_bytes = SP_UNKNOWN,
					 .stack = e->stack,
					 .thread = e->thread,
					 .freed_by = UINT32_MAX,
					 .entry = e->entry};
	struct cell *cell;
	uint32_t slot;

	if (f->n_orphans && is_orphan(f, e))
		return add_to_group(f, &sample);
	if (2 * (f->n_alive + 1) > f->n_cells && grow_cells(f) < 0)
		return -ENOMEM;
	cell = find_cell(f, e->id);
	if (cell->slot)
		return -EILSEQ;
	if (get_slot(f, &slot) < 0)
		return -ENOMEM;
	*cell = (struct cell){e->id, slot};
	f->n_alive++;
	f->live[slot - 1] = sample;
	sp_peak_walk_birth(f->walk, &f->live[slot - 1]);
	return 0;
}

static int die(struct sp_fold *f, const struct event *e)
{
	struct cell *cell = f->n_cells ? find_cell(f, e->id) : NULL;
	struct sp_sample *s;
	uint32_t slot;

	if (!cell || !cell->slot) {
		if (f->n_orphans == ORPHANS_MAX)
			return -EILSEQ;
		f->orphans[f->n_orphans++] = *e;
		return 0;
	}
	slot = cell->slot;
	s = &f->live[slot - 1];
	sp_peak_walk_free(f->walk, s, e->time_ns);
	drop_cell(f, cell);
	if (add_to_group(f, s) < 0)
		return -ENOMEM;
	s->stack = f->free_slot;
	f->free_slot = slot;
	return 0;
}

/* At one moment frees come first. */
static bool is_before(const struct event *a, const struct event *b)
{
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns;
	return !a->size_bytes && b->size_bytes;
}

static const struct event *head_of(const struct run *run)
{
	return &run->events[run->at];
}

/* The run at the top has changed, or is new there. */
static void sift_down(struct sp_fold *f)
{
	struct run *run = f->runs[0];
	size_t i = 0;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= f->n_runs)
			break;
		if (child + 1 < f->n_runs &&
		    is_before(head_of(f->runs[child + 1]),
			      head_of(f->runs[child])))
			child++;
		if (!is_before(head_of(f->runs[child]), head_of(run)))
			break;
		f->runs[i] = f->runs[child];
		i = child;
	}
	f->runs[i] = run;
}

static void free_run(struct run *run)
{
	if (run)
		free(run->events);
	free(run);
}

/* What is older than `until_ns` has its turn. */
static int pass(struct sp_fold *f, uint64_t until_ns)
{
	while (f->n_runs) {
		struct run *run = f->runs[0];
		const struct event *e = head_of(run);
		int r;

		if (e->time_ns >= until_ns)
			break;
		if (f->n_orphans && f->orphans[0].time_ns != e->time_ns)
			return -EILSEQ;
		r = e->size_bytes ? be_born(f, e) : die(f, e);
		if (r < 0)
			return r;
		if (++run->at == run->n) {
			free_run(run);
			f->runs[0] = f->runs[--f->n_runs];
		}
		if (f->n_runs)
			sift_down(f);
	}
	if (until_ns > f->passed_ns)
		f->passed_ns = until_ns;
	return 0;
}

/* ---- filling ---- */

static int compare_events(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	return is_before(y, x) - is_before(x, y);
}

/* The run that was filled joins the others. */
static int close_run(struct sp_fold *f)
{
	struct run *run = f->filling;
	size_t i = f->n_runs;

	f->filling = NULL;
	if (!run || !run->n) {
		free_run(run);
		return 0;
	}
	if (!run->is_sorted)
		qsort(run->events, run->n, sizeof(*run->events),
		      compare_events);
	if (f->n_runs == RUNS_MAX || head_of(run)->time_ns < f->passed_ns) {
		free_run(run);
		return -EILSEQ;
	}
	f->n_runs++;
	for (; i && is_before(head_of(run), head_of(f->runs[(i - 1) / 2]));
	     i = (i - 1) / 2)
		f->runs[i] = f->runs[(i - 1) / 2];
	f->runs[i] = run;
	return 0;
}

int sp_fold_chunk(struct sp_fold *f)
{
	const uint64_t first_ns =
		f->filling && f->filling->n ? f->filling->events[0].time_ns : 0;
	int r = close_run(f);

	if (r >= 0 && first_ns > SLACK_NS)
		r = pass(f, first_ns - SLACK_NS);
	if (r < 0)
		return r;
	f->filling = calloc(1, sizeof(*f->filling));
	if (!f->filling)
		return -ENOMEM;
	f->filling->is_sorted = true;
	return 0;
}

static int put(struct sp_fold *f, const struct event *e)
{
	struct run *run = f->filling;

	if (sp_array_reserve((void **)&run->events, &run->room, run->n,
			     sizeof(*run->events)))
		return -ENOMEM;
	if (run->n && is_before(e, &run->events[run->n - 1]))
		run->is_sorted = false;
	run->events[run->n++] = *e;
	return 0;
}

/* Where nothing is known of frees, nobody asks what is alive. */
int sp_fold_sample(struct sp_fold *f, const struct sp_sample *s)
{
	if (!f->profile->has_frees)
		return add_to_group(f, s);
	/* The walk has to know the largest before it begins. */
	if (s->period_bytes > f->profile->period_bytes ||
	    s->born_ns == SP_NEVER)
		return -EILSEQ;
	return put(f, &(struct event){.time_ns = s->born_ns,
				      .id = s->id,
				      .size_bytes = s->size_bytes,
				      .offset_bytes = s->offset_bytes,
				      .period_bytes = s->period_bytes,
				      .stack = s->stack,
				      .thread = s->thread,
				      .entry = s->entry});
}

int sp_fold_free(struct sp_fold *f, const struct sp_samples_free *event)
{
	if (!f->profile->has_frees)
		return 0;
	if (event->time_ns == SP_NEVER)
		return -EILSEQ;
	return put(f,
		   &(struct event){.time_ns = event->time_ns, .id = event->id});
}

/* ---- begin and end ---- */

struct sp_fold *sp_fold_new(const struct sp_profile *profile, double confidence)
{
	struct sp_fold *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->profile = profile;
	/* Without random numbers the address will do. */
	if (getrandom(&f->key, sizeof(f->key), GRND_NONBLOCK) != sizeof(f->key))
		f->key = (uintptr_t)f;
	f->walk = sp_peak_walk_new(profile, confidence);
	if (f->walk && sp_fold_chunk(f) == 0)
		return f;
	sp_fold_destroy(f);
	return NULL;
}

static int compare_samples(const void *a, const void *b)
{
	const struct sp_sample *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

int sp_fold_finish(struct sp_fold *f, struct sp_profile *p)
{
	struct sp_sample *alive;
	struct sp_peak *peak;
	int r = close_run(f);

	if (r >= 0)
		r = pass(f, SP_NEVER);
	if (r >= 0 && f->n_orphans)
		r = -EILSEQ;
	if (r < 0)
		return r;
	alive = malloc((f->n_alive + 1) * sizeof(*alive));
	peak = sp_blocks_get(&p->storage, sizeof(*peak));
	if (!alive || !peak) {
		free(alive);
		return -ENOMEM;
	}
	sp_peak_walk_end(f->walk, peak);
	p->peak = peak;
	p->samples = alive;
	for (size_t i = 0; i < f->n_cells; i++)
		if (f->cells[i].slot)
			alive[p->n_samples++] = f->live[f->cells[i].slot - 1];
	qsort(alive, p->n_samples, sizeof(*alive), compare_samples);
	p->groups = f->groups;
	p->n_groups = f->n_groups;
	f->groups = NULL;
	f->n_groups = f->groups_room = 0;
	for (size_t i = 0; i < p->n_groups; i++)
		p->n_folded += p->groups[i].samples;
	return 0;
}

void sp_fold_destroy(struct sp_fold *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n_runs; i++)
		free_run(f->runs[i]);
	free_run(f->filling);
	sp_peak_walk_destroy(f->walk);
	free(f->cells);
	free(f->live);
	free(f->groups);
	free(f->group_cells);
	free(f);
}
