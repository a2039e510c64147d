/* SPDX-License-Identifier: MIT */
#include "read/order.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/order.h"

/* How much older than the first record of a chunk those of later ones may be:
 * a thread may be off the processor between the clock and the chunk. */
#define SLACK_NS 100000000ull

static void free_run(struct sp_run *run)
{
	if (run)
		free(run->events);
	free(run);
}

/* The one at the top has changed, or is new there. */
static void sift_down(struct sp_order *o)
{
	const struct sp_order_head head = o->heads[0];
	size_t i = 0;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= o->n_heads)
			break;
		if (child + 1 < o->n_heads &&
		    o->heads[child + 1].when < o->heads[child].when)
			child++;
		if (o->heads[child].when >= head.when)
			break;
		o->heads[i] = o->heads[child];
		i = child;
	}
	o->heads[i] = head;
}

/* The first run gives what is no younger than the events of the others. */
static void set_limit(struct sp_order *o)
{
	o->limit = o->until;
	for (size_t i = 1; i < 3 && i < o->n_heads; i++)
		if (o->heads[i].when < o->limit)
			o->limit = o->heads[i].when + 1;
}

/* The first run has given what it could: another comes to the top. */
static void next_run(struct sp_order *o)
{
	struct sp_run *run = o->heads[0].run;

	if (run->at < run->n) {
		o->heads[0].when = run->events[run->at].when;
	} else {
		free_run(o->spare);
		o->spare = run;
		o->heads[0] = o->heads[--o->n_heads];
	}
	if (o->n_heads)
		sift_down(o);
	set_limit(o);
}

const struct sp_event *sp_order_look(struct sp_order *o,
				     const struct sp_event **ret_end,
				     uint64_t *ret_limit)
{
	while (o->n_heads && o->heads[0].when < o->until) {
		const struct sp_run *run = o->heads[0].run;

		/* It is never the spare one.
		 * NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
		if (run->at < run->n && run->events[run->at].when < o->limit) {
			*ret_end = run->events + run->n;
			*ret_limit = o->limit;
			return &run->events[run->at];
		}
		next_run(o);
	}
	return NULL;
}

SP_ORDER(compare_events, struct sp_event, SP_UP(when));

/* Of so many that wait none has more room than it needs. */
#define MANY_RUNS 64

static void trim_run(struct sp_run *run)
{
	struct sp_event *less =
		realloc(run->events, run->n * sizeof(*run->events));

	if (!less)
		return;
	run->events = less;
	run->room = run->n;
}

/* The run that was filled joins the others. */
static int close_run(struct sp_order *o)
{
	struct sp_run *run = o->filling;
	size_t i = o->n_heads;
	struct sp_order_head head;

	if (!run || !run->n)
		return 0;
	if (sp_array_reserve((void **)&o->heads, &o->room, o->n_heads,
			     sizeof(*o->heads)))
		return -ENOMEM;
	o->filling = NULL;
	if (o->n_heads >= MANY_RUNS)
		trim_run(run);
	if (!run->is_sorted)
		qsort(run->events, run->n, sizeof(*run->events),
		      compare_events);
	head = (struct sp_order_head){run->events[0].when, run};
	o->is_late |= head.when < o->until;
	o->n_heads++;
	for (; i && head.when < o->heads[(i - 1) / 2].when; i = (i - 1) / 2)
		o->heads[i] = o->heads[(i - 1) / 2];
	o->heads[i] = head;
	return 0;
}

int sp_order_begin_run(struct sp_order *o)
{
	const uint64_t first =
		o->filling && o->filling->n ? o->filling->events[0].when : 0;
	int r = close_run(o);

	if (r < 0)
		return r;
	if (!o->keeps_all && first > 2 * SLACK_NS + 1 &&
	    (first & ~1ull) - 2 * SLACK_NS > o->until)
		o->until = (first & ~1ull) - 2 * SLACK_NS;
	set_limit(o);
	if (o->filling)
		return 0;
	o->filling = o->spare ? o->spare : calloc(1, sizeof(*o->filling));
	if (!o->filling)
		return -ENOMEM;
	o->spare = NULL;
	o->filling->n = o->filling->at = 0;
	o->filling->is_sorted = true;
	return 0;
}

struct sp_event *sp_order_put_more(struct sp_order *o, uint64_t when)
{
	struct sp_run *run = o->filling;

	return sp_array_reserve((void **)&run->events, &run->room, run->n,
				sizeof(*run->events)) < 0
		       ? NULL
		       : sp_order_put(o, when);
}

int sp_order_end(struct sp_order *o)
{
	int r = close_run(o);

	o->until = UINT64_MAX;
	set_limit(o);
	return r;
}

void sp_order_done(struct sp_order *o)
{
	for (size_t i = 0; i < o->n_heads; i++)
		free_run(o->heads[i].run);
	free(o->heads);
	free_run(o->filling);
	free_run(o->spare);
	*o = (struct sp_order){.n_heads = 0};
}
