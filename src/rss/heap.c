/* SPDX-License-Identifier: MIT */
/*
 * Sums, all in bytes that are resident and were written to.
 *
 * `found` is what is known to be the allocator's by where it lies.  An
 * allocator that takes anonymous mappings like anybody else says how much it
 * has; how much of the other anonymous memory that is follows from it.
 *
 * What the allocator keeps it counts in addresses, of which some may not be
 * resident: given back to the kernel, or never written to.  All of its memory
 * that is not resident is of that kind, but for objects in pages that nobody
 * has written to (E60).  What an allocator has for itself is in none of that.
 */
#include "rss/heap.h"

#include <math.h>

struct heap {
	double found; /* where only the allocator has memory */
	double other; /* where it may have, too */
	double large; /* of `found`: objects that are mapped by themselves */
	double swap;
	struct sp_interval taken; /* of `other`: the allocator's */
	struct sp_interval kept, alive, rounding, before;
	double cached; /* freed, and counted as alive: at most */
};

static double clamp_value(double value, double lo, double hi)
{
	return fmax(lo, fmin(value, hi));
}

static double resident_bytes(const struct sp_rss_parts *parts,
			     enum sp_rss_kind kind)
{
	return (double)(parts->rss[kind] - parts->zero[kind]);
}

/* Of an interval. */
static struct sp_interval clamp_interval(struct sp_interval i, double lo,
					 double hi)
{
	return (struct sp_interval){clamp_value(i.value, lo, hi),
				    clamp_value(i.lo, lo, hi),
				    clamp_value(i.hi, lo, hi)};
}

static struct sp_interval subtract_interval(double from, struct sp_interval i)
{
	return (struct sp_interval){from - i.value, from - i.hi, from - i.lo};
}

/*
 * The allocator's part of the memory that it shares with others.  Its counters
 * say it, less at most what it needs for itself; how much of that is resident
 * is not known.  Without counters it is at least the objects, and at most the
 * mappings that they are in.  If the mappings hold less than the counters say,
 * the mappings are the lower limit and the counters the value: free memory may
 * lie elsewhere, or was never written to, as in a new slab.
 */
static struct sp_interval taken_of_other(const struct heap *h,
					 const struct sp_control_memory *m,
					 const struct sp_rss_objects *o)
{
	const double around = (double)o->around_bytes;
	struct sp_interval i = {around, fmin(o->elsewhere.lo, around), around};

	if (m->allocator && m->allocator != SP_ALLOCATOR_GLIBC) {
		i.hi = (double)m->system_bytes - o->untouched_small.value -
		       h->swap - (h->found - h->large);
		i.lo = i.hi - (double)m->own_bytes;
	}
	i = clamp_interval(i, 0, h->other);
	i.value = floor(clamp_value(i.value, i.lo, i.hi));
	i.lo = fmin(i.lo, fmax(around, i.lo - (double)m->free_bytes));
	i.lo = fmin(i.lo, i.value);
	return i;
}

/* Free, and resident: if nothing alive is untouched, the least. */
static double kept_if(const struct heap *h, const struct sp_control_memory *m,
		      double untouched)
{
	const double small = h->found - h->large + h->taken.value;
	const double absent = (double)m->system_bytes - (double)m->own_bytes -
			      small - h->swap;

	return clamp_value((double)m->free_bytes - fmax(0, absent - untouched),
			   0, small);
}

/* Of estimates from the same samples, which are large together and small
 * together: so the limits add up, too. */
static struct sp_interval add_intervals(struct sp_interval a,
					struct sp_interval b)
{
	return (struct sp_interval){a.value + b.value, a.lo + b.lo,
				    a.hi + b.hi};
}

static struct sp_interval alive_of(const struct sp_rss_objects *o)
{
	return (struct sp_interval){fmax(0, o->live.value - o->untouched.value),
				    fmax(0, o->live.lo - o->untouched.hi),
				    fmax(0, o->live.hi - o->untouched.lo)};
}

/* Whole bytes, so that the rows add up. */
static struct sp_interval round_interval(struct sp_interval i, double value)
{
	value = floor(value);
	return (struct sp_interval){value, fmin(i.lo, value),
				    fmax(i.hi, value)};
}

/*
 * What is alive and its rounding have `room` bytes together.  If they are
 * estimated as more, the samples stand for too much, in both alike: then each
 * has its share of the room.
 */
static void fit_objects(struct heap *h, const struct sp_rss_objects *o,
			double room)
{
	const struct sp_interval alive = alive_of(o);
	const double sum = alive.value + o->rounding.value;
	const bool fits = sum <= room;
	const double rounding =
		fits ? o->rounding.value : o->rounding.value * room / sum;

	h->rounding = round_interval(o->rounding, rounding);
	h->alive =
		round_interval(clamp_interval(alive, 0, room),
			       fits ? alive.value : room - h->rounding.value);
	h->rounding.hi = fmax(h->rounding.value,
			      fmin(h->rounding.hi, room - h->alive.lo));
}

/* What the caches of a thread hold at most with their default settings: glibc
 * up to 2.41, seven chunks of each of 64 sizes; jemalloc 5.3, all of its bins.
 * tcmalloc does not count them as alive. */
static double cached_by_thread(uint64_t allocator)
{
	switch (allocator) {
	case SP_ALLOCATOR_GLIBC:
		return 7.0 * 64 * (32 + 63 * 16 / 2.0);
	case SP_ALLOCATOR_JEMALLOC:
		return 4.8e6;
	default:
		return 0;
	}
}

/*
 * Alive by the allocator's count, and not of the profile's objects with their
 * rounding (docs/rss.md); `room` is what is resident and neither free nor of
 * these. Without a rule for rounding, that is as much as the objects at most.
 */
static struct sp_interval before_of(const struct heap *h,
				    const struct sp_control_memory *m,
				    const struct sp_rss_objects *o, double room)
{
	const double alive = (double)m->alive_bytes;
	const struct sp_interval rounding =
		o->has_rounding ? o->rounding
				: (struct sp_interval){0, 0, o->live.hi};
	struct sp_interval i = {alive - o->live.value - rounding.value,
				alive - o->live.hi - rounding.hi - h->cached,
				alive - o->live.lo - rounding.lo};

	if (!o->before || !m->allocator || i.value <= h->cached)
		return (struct sp_interval){0, 0, 0};
	i = clamp_interval(i, 0, room + h->alive.value + h->rounding.value);
	return round_interval(i, fmin(i.value, room));
}

/* The sum of what is alive is the allocator's, whatever the samples say of its
 * parts: it lacks what is not resident, and has the caches of threads. */
static struct sp_interval rest_beside(const struct heap *h,
				      const struct sp_rss_objects *o,
				      double room)
{
	const double rest =
		room - h->alive.value - h->rounding.value - h->before.value;

	return (struct sp_interval){rest, 0,
				    rest + h->cached + o->untouched.hi};
}

static void fill_known(struct heap *h, const struct sp_control_memory *m,
		       const struct sp_rss_objects *o, struct sp_rss_row *rows)
{
	const double all = h->found + h->taken.value;
	const struct sp_interval untouched = o->untouched_small;
	struct sp_interval rest;

	if (m->allocator)
		h->kept = (struct sp_interval){kept_if(h, m, untouched.value),
					       kept_if(h, m, untouched.lo),
					       kept_if(h, m, untouched.hi)};
	h->kept.value = floor(h->kept.value);
	h->kept.lo = fmin(h->kept.lo, h->kept.value);
	fit_objects(h, o, all - h->kept.value);
	rows[SP_RSS_ROW_ALIVE].bytes = h->alive;
	rows[SP_RSS_ROW_KEPT].bytes = h->kept;
	rows[SP_RSS_ROW_ROUNDING].bytes = h->rounding;
	h->before = before_of(h, m, o,
			      all - h->kept.value - h->alive.value -
				      h->rounding.value);
	rows[SP_RSS_ROW_BEFORE].bytes = h->before;
	rows[SP_RSS_ROW_BEFORE].is_there = h->before.hi > 0;
	rest = h->before.hi > 0 ? rest_beside(h, o, all - h->kept.value)
				: subtract_interval(
					  all - h->kept.value,
					  add_intervals(h->alive, h->rounding));
	rest.lo = fmax(0, rest.lo - (h->taken.value - h->taken.lo));
	rest.hi += h->taken.hi - h->taken.value;
	rows[SP_RSS_ROW_REST].bytes = rest;
	rows[SP_RSS_ROW_ALIVE].is_there = true;
	rows[SP_RSS_ROW_KEPT].is_there = m->allocator;
	rows[SP_RSS_ROW_ROUNDING].is_there = o->has_rounding;
	rows[SP_RSS_ROW_REST].is_there = true;
}

static struct sp_interval exact_interval(double value)
{
	return (struct sp_interval){value, value, value};
}

void sp_rss_heap_fill(const struct sp_rss_parts *parts,
		      const struct sp_control_memory *memory,
		      const struct sp_rss_objects *objects, uint64_t threads,
		      struct sp_rss_row *rows)
{
	struct heap h = {
		.found = resident_bytes(parts, SP_RSS_HEAP) +
			 resident_bytes(parts, SP_RSS_LARGE),
		.other = resident_bytes(parts, SP_RSS_OTHER),
		.large = resident_bytes(parts, SP_RSS_LARGE),
		.swap = (double)parts->swap[SP_RSS_HEAP],
		.cached = (double)threads * cached_by_thread(memory->allocator),
	};

	h.taken = taken_of_other(&h, memory, objects);
	if (objects->is_known) {
		fill_known(&h, memory, objects, rows);
	} else {
		rows[SP_RSS_ROW_HEAP].bytes =
			exact_interval(h.found + h.taken.value);
		rows[SP_RSS_ROW_HEAP].is_there = true;
	}
	rows[SP_RSS_ROW_ANONYMOUS].bytes = subtract_interval(h.other, h.taken);
	rows[SP_RSS_ROW_ANONYMOUS].is_there = true;
}
