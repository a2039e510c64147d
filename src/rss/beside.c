/* SPDX-License-Identifier: MIT */
#include "rss/beside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/order.h"
#include "rss/chunks.h"

/* Where the top is in an arena of glibc since 2.27. */
#define ARENA_TOP  96u
#define HEAP_BYTES (64ull << 20)
#define TRIES      3

/* ---- headers ---- */

#define WINDOW_BYTES (64u << 10)

/* Memory of the process as it was read, page by page. */
struct window {
	uint64_t start, bytes;
	unsigned char at[WINDOW_BYTES];
};

struct memory {
	struct sp_rss_pages *pages;
	uint64_t page_bytes;
	struct window near, far; /* of the object; of what is far from it */
};

static bool read_window(const struct window *w, uint64_t at, void *to,
			size_t bytes)
{
	if (at < w->start || at - w->start + bytes > w->bytes ||
	    w->bytes < bytes)
		return false;
	memcpy(to, w->at + (at - w->start), bytes);
	return true;
}

static void fill_window(struct memory *m, struct window *w, uint64_t at,
			uint64_t most)
{
	w->start = at / m->page_bytes * m->page_bytes;
	for (w->bytes = most; w->bytes >= m->page_bytes; w->bytes /= 2)
		if (sp_rss_pages_read(m->pages, w->start, w->at, w->bytes))
			return;
	w->bytes = 0;
}

static bool read_far(void *arg, uint64_t at, void *to, size_t bytes)
{
	struct memory *m = arg;

	if (read_window(&m->near, at, to, bytes) ||
	    read_window(&m->far, at, to, bytes))
		return true;
	fill_window(m, &m->far, at, m->page_bytes);
	return read_window(&m->far, at, to, bytes) ||
	       sp_rss_pages_read(m->pages, at, to, bytes);
}

static void come_near(struct memory *m, uint64_t address)
{
	unsigned char header[16];

	if (!read_window(&m->near, address - sizeof(header), header,
			 sizeof(header)))
		fill_window(m, &m->near, address - sizeof(header),
			    WINDOW_BYTES);
}

static void forget_memory(struct memory *m)
{
	m->near.bytes = 0;
	m->far.bytes = 0;
}

/* Is the object's own header still what it was? */
static bool is_still(struct memory *m, const struct sp_rss_beside *b)
{
	uint64_t now[2];

	return sp_rss_pages_read(m->pages, b->start, now, sizeof(now)) &&
	       (now[1] & ~(uint64_t)7) == b->end - b->start &&
	       !(now[1] & 1) == (b->before_bytes != 0) &&
	       (!b->before_bytes || now[0] == b->before_bytes);
}

/* What the program changes meanwhile is read again. */
static struct sp_rss_beside look_beside(struct memory *m,
					const struct sp_rss_object *o)
{
	struct sp_rss_beside b = {.state = SP_RSS_BESIDE_TORN};

	for (int i = 0; i < TRIES; i++) {
		come_near(m, o->address);
		b = sp_rss_chunks_look(read_far, m, o->address,
				       o->sample.size_bytes);
		if (b.state == SP_RSS_BESIDE_LARGE ||
		    (b.state == SP_RSS_BESIDE_KNOWN && is_still(m, &b)))
			return b;
		forget_memory(m);
	}
	if (b.state == SP_RSS_BESIDE_KNOWN)
		b.state = SP_RSS_BESIDE_TORN;
	return b;
}

/* Half of a hole is charged to the object. */
static int charge_hole(struct memory *m, struct sp_rss_object *o,
		       size_t position, uint64_t start, uint64_t bytes,
		       struct sp_rss_places *places)
{
	const struct sp_rss_place place = {.start = start,
					   .end = start + bytes,
					   .free_bytes = (double)bytes,
					   .first = position,
					   .n = 1,
					   .share = 0.5};
	uint64_t from, to;
	uint64_t trim, resident;

	if (!bytes)
		return 0;
	sp_rss_chunks_trim(start, bytes, m->page_bytes, &from, &to);
	trim = sp_rss_pages_resident(m->pages, from, to);
	resident = sp_rss_pages_resident(m->pages, start, start + bytes);
	o->hole += (double)bytes / 2;
	o->trim += (double)trim / 2;
	o->pinned +=
		(double)(resident - (trim < resident ? trim : resident)) / 2;
	return sp_rss_places_add(places, &place);
}

static int take_beside(struct sp_rss_pins *pins, struct memory *m,
		       struct sp_rss_alive *alive, size_t i,
		       struct sp_rss_places *places)
{
	struct sp_rss_object *o = &alive->list[i];
	const struct sp_rss_beside b = look_beside(m, o);
	int r;

	pins->looked++;
	if (b.state == SP_RSS_BESIDE_LARGE) {
		pins->large++;
		return 0;
	}
	if (b.state != SP_RSS_BESIDE_KNOWN) {
		pins->torn++;
		return 0;
	}
	o->taken = (struct sp_rss_taken){b.start + 16, b.end + 8};
	r = charge_hole(m, o, i, b.start - b.before_bytes, b.before_bytes,
			places);
	return r < 0 ? r : charge_hole(m, o, i, b.end, b.behind_bytes, places);
}

static int find_by_headers(struct sp_rss_pins *pins,
			   const struct sp_rss_pins_process *process,
			   struct sp_rss_alive *alive,
			   struct sp_rss_places *places)
{
	struct memory *m = calloc(1, sizeof(*m));
	int r = m ? 0 : -ENOMEM;

	if (m) {
		m->pages = process->pages;
		m->page_bytes = sp_rss_pages_size(process->pages);
	}
	for (size_t i = alive->unknown; i < alive->n && r == 0; i++)
		r = take_beside(pins, m, alive, i, places);
	free(m);
	return r;
}

/* ---- the ends of arenas ---- */

static bool top_of(const struct sp_rss_pins_process *p, uint64_t arena,
		   uint64_t *ret_bytes)
{
	uint64_t top, head[2], info[4];

	if (!sp_rss_pages_read(p->pages, arena + ARENA_TOP, &top,
			       sizeof(top)) ||
	    !sp_rss_pages_read(p->pages, top, head, sizeof(head)) ||
	    !sp_rss_pages_read(p->pages, top / HEAP_BYTES * HEAP_BYTES, info,
			       sizeof(info)))
		return false;
	*ret_bytes = head[1] & ~(uint64_t)7;
	return info[0] == arena && top % HEAP_BYTES + *ret_bytes == info[2];
}

bool sp_rss_beside_tops(const struct sp_rss_pins_process *p,
			uint64_t *ret_bytes)
{
	uint64_t sum = p->glibc.top_bytes, arena, before = 0, bytes;

	for (size_t i = 0; i < p->n_arenas; i++) {
		if (!sp_rss_pages_read(p->pages, p->arenas[i], &arena,
				       sizeof(arena)))
			return false;
		/* An arena is in the first of its heaps. */
		if (arena / HEAP_BYTES * HEAP_BYTES != p->arenas[i] ||
		    arena == before)
			continue;
		before = arena;
		if (!top_of(p, arena, &bytes))
			return false;
		sum += bytes;
	}
	*ret_bytes = sum;
	return true;
}

/* ---- jemalloc is asked ---- */

static const struct sp_control_object *find_object(
	const struct sp_rss_pins_process *process, uint64_t address)
{
	size_t at;

	SP_LOWER_BOUND(at, process->slabs.n_objects,
		       process->objects[at].address < address);
	return at < process->slabs.n_objects &&
			       process->objects[at].address == address
		       ? &process->objects[at]
		       : NULL;
}

/* What is free in its slab is shared by all that is in use there. */
static int take_slab(struct sp_rss_pages *pages,
		     const struct sp_control_object *of, size_t position,
		     struct sp_rss_object *o, struct sp_rss_places *places)
{
	const uint64_t bytes = of->slab_bytes / of->regions;
	const double share = 1 / (double)(of->regions - of->free);
	struct sp_rss_place place = {.free_bytes = (double)(of->free * bytes),
				     .first = position,
				     .n = 1,
				     .share = share};
	uint64_t resident;

	o->taken = (struct sp_rss_taken){o->address, o->address + bytes};
	if (!of->free ||
	    !sp_rss_places_slab(&o->taken, sp_rss_pages_size(pages),
				&place.start, &place.end))
		return 0;
	resident = sp_rss_pages_resident(pages, place.start, place.end);
	o->hole = place.free_bytes * share;
	o->pinned =
		o->hole * (double)resident / (double)(place.end - place.start);
	return sp_rss_places_add(places, &place);
}

/* An object that was freed while it was asked for has any answer. */
static bool is_of_slab(const struct sp_control_object *of,
		       const struct sp_rss_object *o)
{
	return of->regions > 1 && of->free < of->regions &&
	       of->slab_bytes % of->regions == 0 &&
	       of->slab_bytes / of->regions >= o->sample.size_bytes;
}

static int find_by_asking(struct sp_rss_pins *pins,
			  const struct sp_rss_pins_process *process,
			  struct sp_rss_alive *alive,
			  struct sp_rss_places *places)
{
	int r = 0;

	for (size_t i = alive->unknown; i < alive->n && r == 0; i++) {
		struct sp_rss_object *o = &alive->list[i];
		const struct sp_control_object *of =
			find_object(process, o->address);

		pins->looked++;
		if (of && is_of_slab(of, o))
			r = take_slab(process->pages, of, i, o, places);
		else if (of && of->regions == 1)
			pins->large++;
		else
			pins->odd++;
	}
	return r;
}

/* ---- all of it ---- */

SP_ORDER(compare_places, struct sp_rss_place, SP_UP(start));

int sp_rss_beside_find(struct sp_rss_pins *pins,
		       const struct sp_rss_pins_process *process,
		       struct sp_rss_alive *alive, struct sp_rss_places *places)
{
	const int r = pins->rule == SP_RSS_PINS_BY_HEADERS
			      ? find_by_headers(pins, process, alive, places)
			      : find_by_asking(pins, process, alive, places);

	if (places->n)
		qsort(places->list, places->n, sizeof(*places->list),
		      compare_places);
	return r;
}
