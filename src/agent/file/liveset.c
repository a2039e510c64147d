/* SPDX-License-Identifier: MIT */
/*
 * There are tables of rising size (livetable.h), each with a generation of the
 * filter (filter.h).  Entries are inserted into the newest table.  When that
 * has its fill, a larger one is announced, and each insert moves some buckets
 * of the oldest table, the current one, into it; then the next one is the
 * current one, and its generation of the filter is published.  There are more
 * than two while a mover is stopped.  The order of buckets is that of the
 * hashes, so both tables are gone through from end to end, and the pages of the
 * old one go back.  Its addresses stay: a thread may have been stopped in it.
 *
 * I1  A word is EMPTY, BUSY, or an address and its state.  What belongs to it
 *     is the thread's that made it BUSY, until that makes it something else.
 * I2  An address is in its home or in another bucket of its window.  Each
 *     bucket of the window that was full before counts it, with others of its
 *     tag, before it is there and until it is not.  A look goes on only where
 *     some are counted.
 * I3  What is LIVE in table t is counted once in each of the filter's
 *     generations of the tables current to t.  It is counted before it is
 *     LIVE, and taken back after it is not.
 * I4  Nothing is inserted into a table that is not the newest.  A thread that
 *     has claimed a word then looks whether the table still is the newest, so
 *     that the word is BUSY before any thread moves.  After it made the word
 *     LIVE it looks whether its bucket has been gone through (`walked`).  If
 *     so, it takes the address out wherever it is, and inserts it anew.  Either
 *     it finds that, or the mover finds the word: both orders of (store, look)
 *     are sequentially consistent.
 * I5  Only the holder of `moving` moves.  An entry is first written to the
 *     newest table as a COPY, counted there, and then its word in the old one
 *     becomes MOVED, if it still was LIVE.  That is the moment of the move.
 *     Then the COPY becomes LIVE, then what was MOVED becomes EMPTY.  A COPY
 *     counts for something only if the same sample is MOVED; there is one at
 *     most, since a mover drops what another left.
 * I6  A look goes from the current table to the newest, which it asks for last:
 *     entries move in that direction only.  If it comes after what was MOVED is
 *     EMPTY, it comes after the COPY became LIVE.
 * I7  In a forked child all words, counters and the census are zero, epoch 0,
 *     and so is what was under `moving`.  A counter that is zero proves nothing
 *     until it is settled (filter.h).  A thread that finds another epoch than
 *     it began with was interrupted by a fork, and leaves no word behind.  The
 *     number of live samples changes only together with a look at the epoch.
 *     One thing may be left: the values of an entry of the child, if its
 *     handler got the very place that was BUSY.
 *
 * The free of an address that is in a table never misses it: the program
 * ordered it behind the insert, so it sees the filter that was published then
 * or a later one, and the address is counted there: I3, and a generation is
 * published only when no table before its own has anything LIVE.  It does not
 * matter how long it has held a pointer to that filter, since its own take is
 * the only one of that address, and what is given back proves nothing: it is
 * never settled again.  Both need `moving`; what a fork may have left to settle
 * stays in the child.  So a take need not touch older generations.
 *
 * A thread that is stopped for ever, or leaves by siglongjmp, leaves at most: a
 * word BUSY or a COPY in the newest table, and counts that are too high by one,
 * until the next move; a word MOVED, which the next mover goes on with;
 * `moving`, which the same thread gives back.
 */
#include "agent/file/liveset.h"

#include <stdatomic.h>
#include <stddef.h>

#include "agent/file/livefilter.h"
#include "agent/file/livetable.h"
#include "agent/sys/maponce.h"
#include "agent/thread/inside.h"

#include "agent/sys/poison.h"

#define EMPTY SP_LIVEWORD_EMPTY
#define BUSY  SP_LIVEWORD_BUSY
#define LIVE  SP_LIVEWORD_LIVE
#define MOVED SP_LIVEWORD_MOVED
#define COPY  SP_LIVEWORD_COPY
#define SLOTS SP_LIVETABLE_SLOTS

#define MOVED_BUCKETS 8u /* with one insert: some us */
#define TABLE_SHIFT   48u

/* All that describes the contents, and so must vanish with them in a child. */
struct state {
	/* The epoch above, the number of live samples in the lower half. */
	_Atomic uint64_t census;
	sp_inside_lock moving;
	/* Under `moving`: table << 48 | buckets of it that were emptied.  One
	 * word, since a handler may fork in the middle of a move, and move in
	 * the child, before the interrupted one goes on there (I7). */
	_Atomic uint64_t progress;
	struct sp_livefilter_pages pages; /* under `moving` */
	/* The current filter is settled, older ones are given back. */
	_Atomic bool is_tidy;
};

/* Set once, by whoever first has the memory. */
static void *_Atomic state;

/* current <= newest; the first is written under `moving`. */
static _Atomic unsigned int current;
static _Atomic unsigned int newest;
/* A mover may have left a COPY (I5): by a jump, or in a fork. */
static _Atomic bool has_copies;
/* Buckets of each table that a mover has begun to go through (I4). */
static _Atomic size_t walked[SP_LIVETABLE_COUNT];

/* ---- the census ---- */

static uint32_t epoch_of(uint64_t census)
{
	return (uint32_t)(census >> 32);
}

/* Of live samples, by 1 or -1; false: a fork has come between (I7). */
static bool count_live(struct state *s, uint32_t epoch, int change,
		       uint32_t *ret_live)
{
	uint64_t c = atomic_load(&s->census), new;

	do {
		if (epoch_of(c) != epoch)
			return false;
		new = c + (uint64_t)(int64_t)change;
	} while (!atomic_compare_exchange_weak(&s->census, &c, new));
	*ret_live = (uint32_t) new;
	return true;
}

/* ---- looks ---- */

static uint64_t address_of(uint64_t content)
{
	return content & SP_LIVEWORD_ADDRESS;
}

/* The next place that has the address, in whatever state, behind p (I6). */
static bool find_next(struct sp_liveplace *p, uint64_t address)
{
	while (true) {
		while (++p->slot < SLOTS)
			if (address_of(sp_livetable_content(p)) == address)
				return true;
		do {
			if (sp_livetable_next(p))
				continue;
			if (p->table >= atomic_load(&newest))
				return false;
			sp_livetable_begin(p, p->table + 1, p->hash);
		} while (!sp_livetable_has(p->bucket, address));
		p->slot = UINT32_MAX;
	}
}

/* The table to ask first: not the current one if all buckets that may have the
 * address were emptied.  Whoever is about to leave a word in one of them will
 * find that (I4), and only then have inserted it. */
static unsigned int first_table(uint64_t hash)
{
	const unsigned int t = atomic_load(&current);
	struct state *s = atomic_load(&state);
	uint64_t done;

	if (t == atomic_load(&newest))
		return t;
	done = atomic_load(&s->progress) - ((uint64_t)t << TABLE_SHIFT);
	if (done >> TABLE_SHIFT)
		return t;
	return t + (sp_livetable_home(t, hash) + SP_LIVETABLE_WINDOW <= done);
}

/* The first one of the tables `from` to the newest. */
static bool find_first(struct sp_liveplace *p, uint64_t address, uint64_t hash,
		       unsigned int from)
{
	sp_livetable_begin(p, from, hash);
	p->slot = sp_livetable_has(p->bucket, address) ? UINT32_MAX : SLOTS - 1;
	return find_next(p, address);
}

/* Take an entry out, if the place is one; *moved: of which sample a word was
 * found MOVED (I5).  What belongs to it is read first: nobody else stores there
 * before the word changes. */
static bool take_entry(const struct sp_liveplace *p, uint64_t address,
		       uint64_t *moved, struct sp_livevalues *ret)
{
	uint64_t w = sp_livetable_content(p);

	for (; address_of(w) == address; w = sp_livetable_content(p)) {
		const uint64_t in = w & SP_LIVEWORD_STATES;

		*ret = sp_livetable_load(p);
		if (in == MOVED)
			*moved = sp_livevalues_id(ret->id_word);
		if (in == MOVED ||
		    (in == COPY && sp_livevalues_id(ret->id_word) != *moved))
			return false;
		if (sp_liveword_change(sp_livetable_word(p), w, EMPTY))
			return true;
	}
	return false;
}

/* It is still counted then. */
static bool take_out(uint64_t address, uint64_t hash, struct sp_liveplace *p,
		     struct sp_livevalues *ret)
{
	uint64_t moved = 0;
	bool is_there = find_first(p, address, hash, first_table(hash));

	while (is_there && !take_entry(p, address, &moved, ret))
		is_there = find_next(p, address);
	return is_there;
}

static void count_taken(uint64_t address, const struct sp_liveplace *p)
{
	const unsigned int t = p->table, from = atomic_load(&current);

	sp_livetable_leave(p);
	sp_livefilter_count(address, from < t ? from : t, t, -1);
}

/* ---- moves ---- */

/* Read once: in a child whose handler has moved (I7), it has nothing there. */
struct move {
	struct state *state;
	uint32_t epoch;
	unsigned int from, to;
	bool has_new_filter; /* `to`: what is moved is counted there, too */
};

static bool is_same_process(const struct move *m)
{
	return epoch_of(atomic_load(&m->state->census)) == m->epoch;
}

/* Drop copies of the address that another mover left (I5). */
static void drop_copies(uint64_t address, uint64_t hash, unsigned int from)
{
	struct sp_liveplace p;
	bool is_there = find_first(&p, address, hash, from);

	for (; is_there; is_there = find_next(&p, address))
		sp_liveword_change(sp_livetable_word(&p), address | COPY,
				   EMPTY);
}

/* Go on with what another mover left as MOVED. */
static void finish_copy(const struct sp_liveplace *from, uint64_t address)
{
	const uint64_t hash = sp_livetable_hash(address);
	const uint64_t id = sp_livevalues_id(sp_livetable_load(from).id_word);
	struct sp_liveplace p;
	bool is_there = find_first(&p, address, hash, from->table + 1);

	for (; is_there; is_there = find_next(&p, address))
		if (sp_livevalues_id(sp_livetable_load(&p).id_word) == id)
			sp_liveword_change(sp_livetable_word(&p),
					   address | COPY, address | LIVE);
}

/* I5; false: there is no room for it. */
static bool move_entry(const struct move *m, const struct sp_liveplace *from,
		       uint64_t address)
{
	const uint64_t hash = sp_livetable_hash(address);
	_Atomic uint64_t *const at = sp_livetable_word(from);
	_Atomic uint64_t *copy;
	struct sp_liveplace to;

	if (atomic_load(&has_copies))
		drop_copies(address, hash, from->table + 1);
	if (!sp_livetable_claim(&to, m->to, hash))
		return false;
	copy = sp_livetable_word(&to);
	sp_livetable_store(&to, sp_livetable_load(from));
	if (m->has_new_filter)
		sp_livefilter_count_beyond(address, from->table, to.table, 1);
	sp_liveword_change(copy, BUSY, address | COPY);
	if (sp_liveword_change(at, address | LIVE, address | MOVED)) {
		sp_liveword_change(copy, address | COPY, address | LIVE);
		sp_liveword_change(at, address | MOVED, EMPTY);
		return true;
	}
	sp_liveword_change(copy, address | COPY, EMPTY);
	if (is_same_process(m)) {
		sp_livetable_leave(&to);
		if (m->has_new_filter)
			sp_livefilter_count_beyond(address, from->table,
						   to.table, -1);
	}
	return true;
}

/* False: not all of it.  What others left as MOVED or COPY may stay. */
static bool empty_bucket(const struct move *m, struct sp_livetable_bucket *b)
{
	struct sp_liveplace p = {.table = m->from, .bucket = b};

	for (p.slot = 0; p.slot < SLOTS; p.slot++) {
		const uint64_t w = sp_livetable_content(&p);
		const uint64_t address = address_of(w);

		if (!sp_liveword_is_address(address))
			continue;
		if (w == (address | LIVE) && !move_entry(m, &p, address))
			return false;
		if (w == (address | MOVED))
			finish_copy(&p, address);
	}
	return true;
}

static void move_some(const struct move *m)
{
	const uint64_t none = (uint64_t)m->from << TABLE_SHIFT;
	const size_t n = sp_livetable_buckets(m->from);
	uint64_t before = atomic_load(&m->state->progress);
	const size_t from =
		before >> TABLE_SHIFT == m->from ? (size_t)(before - none) : 0;
	const size_t end = from + MOVED_BUCKETS < n ? from + MOVED_BUCKETS : n;
	size_t i = from;

	if (atomic_load(&walked[m->from]) < end)
		atomic_store(&walked[m->from], end);
	while (i < end && empty_bucket(m, sp_livetable_first(m->from) + i))
		i++;
	if (!atomic_compare_exchange_strong(&m->state->progress, &before,
					    none + i) ||
	    i < end)
		return;
	sp_livetable_release(m->from, from, end);
	if (end == n && is_same_process(m)) {
		sp_livefilter_use(m->from + 1);
		atomic_store(&current, m->from + 1);
		atomic_store(&m->state->is_tidy, false);
	}
}

/* The table after that one, and its counters: enough for one insert. */
static void announce_table(unsigned int table)
{
	if (table + 1 < SP_LIVETABLE_COUNT && sp_livetable_have(table + 1) &&
	    sp_livefilter_have(table + 1))
		atomic_compare_exchange_strong(&newest, &table, table + 1);
}

/* Go some way to a table that has room.  A child that was forked meanwhile
 * finds `moving` free, and moves what is zero from the beginning.  `current`
 * comes after the filter, for sp_liveset_insert: what it does not count in
 * older generations is looked for in this one or a newer one. */
static void grow_table(struct state *s, uint32_t live, unsigned int before)
{
	const unsigned int last = atomic_load(&newest);
	struct move m = {.state = s};

	if (live > sp_livetable_fill(last))
		announce_table(last);
	if (atomic_load(&newest) != before ||
	    (before == atomic_load(&current) && atomic_load(&s->is_tidy)) ||
	    !sp_inside_hold(&s->moving))
		return;
	m.epoch = epoch_of(atomic_load(&s->census));
	m.from = atomic_load(&current);
	m.to = atomic_load(&newest);
	m.has_new_filter = !sp_livefilter_is_same(m.from, m.to);
	if (sp_livefilter_settle(m.from, m.to, &s->pages)) {
		if (m.from < m.to)
			move_some(&m);
		else if (sp_livefilter_release(m.from, &s->pages) &&
			 is_same_process(&m))
			atomic_store(&s->is_tidy, true);
	}
	sp_inside_give(&s->moving);
}

/* ---- interface ---- */

void sp_liveset_prefetch(const void *p)
{
	struct sp_liveplace place;

	if (!atomic_load(&state))
		return;
	sp_livetable_begin(&place, atomic_load(&newest),
			   sp_livetable_hash((uintptr_t)p));
	__builtin_prefetch(sp_filter_counter(p), 1);
	__builtin_prefetch(place.bucket->words, 1);
	__builtin_prefetch(place.bucket->values[0], 1);
	__builtin_prefetch(place.bucket->values[SLOTS / 2], 1);
}

bool sp_liveset_init(void)
{
	struct state *s;

	if (!sp_livetable_have(0) || !sp_livefilter_have(0))
		return false;
	s = sp_map_once(&state, sizeof(*s));
	if (!s)
		return false;
	atomic_store(&s->census, 1ull << 32);
	while (!sp_livefilter_settle(0, 0, &s->pages))
		;
	sp_livefilter_use(atomic_load(&current));
	return true;
}

/* An entry that is being added, and the first table that it is counted of. */
struct added {
	struct sp_liveplace place;
	unsigned int counted_from;
};

/* In the newest table; false: it is full, or not the newest any more.  A word
 * that is not BUSY any more went back with its page, or is of before a fork. */
static bool place_address(const struct state *s, uint64_t address,
			  const struct sp_live *live, struct added *ret)
{
	const unsigned int table = atomic_load(&newest);
	struct sp_liveplace *p = &ret->place;

	if (!sp_livetable_claim(p, table, sp_livetable_hash(address)))
		return false;
	if (atomic_load(&newest) != table) {
		sp_liveword_change(sp_livetable_word(p), BUSY, EMPTY);
		sp_livetable_leave(p);
		return false;
	}
	sp_livetable_store(p, sp_livevalues_pack(live));
	ret->counted_from = atomic_load(&current);
	sp_livefilter_count(address, ret->counted_from, table, 1);
	if (sp_liveword_change(sp_livetable_word(p), BUSY, address | LIVE))
		return true;
	if (epoch_of(atomic_load(&s->census)) == live->generation)
		sp_livefilter_count(address, ret->counted_from, table, -1);
	return false;
}

/* I4: what was added too late is taken back. */
static bool has_come_late(uint64_t address, const struct added *added)
{
	const struct sp_liveplace *p = &added->place;
	struct sp_liveplace elsewhere;
	struct sp_livevalues values;

	if ((size_t)(p->bucket - sp_livetable_first(p->table)) >=
	    atomic_load(&walked[p->table]))
		return false;
	if (sp_liveword_change(sp_livetable_word(p), address | LIVE, EMPTY)) {
		sp_livetable_leave(p);
		sp_livefilter_count(address, added->counted_from, p->table, -1);
	} else if (take_out(address, p->hash, &elsewhere, &values)) {
		count_taken(address, &elsewhere);
	}
	return true;
}

/* False: there is no room. */
static bool add_address(const struct state *s, uint64_t address,
			const struct sp_live *live, struct added *ret)
{
	while (true) {
		const unsigned int table = atomic_load(&newest);

		if (place_address(s, address, live, ret)) {
			if (!has_come_late(address, ret))
				return true;
			continue;
		}
		if (atomic_load(&newest) == table)
			announce_table(table);
		if (atomic_load(&newest) == table)
			return false;
	}
}

enum sp_liveset_result sp_liveset_insert(const void *p,
					 const struct sp_live *live,
					 struct sp_live *ret_old)
{
	struct state *s = atomic_load(&state);
	const uint64_t address = (uintptr_t)p;
	struct added added;
	const unsigned int before = atomic_load(&newest);
	uint32_t epoch, n;
	bool was_there;

	if (!s || !sp_liveword_is_address(address) ||
	    !sp_livevalues_has_room(live))
		return SP_LIVESET_FULL;
	epoch = epoch_of(atomic_load(&s->census));
	/* What a fork has interrupted is the parent's (I7). */
	if (epoch != live->generation)
		return SP_LIVESET_ADDED;
	was_there = sp_filter_may_have(p) && sp_liveset_may_have(p) &&
		    sp_liveset_take(p, ret_old);
	sp_livefilter_use_first(atomic_load(&current));
	if (!add_address(s, address, live, &added))
		return SP_LIVESET_FULL;
	if (!count_live(s, epoch, 1, &n)) {
		/* Its counters may be of before: they are left alone. */
		sp_liveword_change(sp_livetable_word(&added.place),
				   address | LIVE, EMPTY);
		return SP_LIVESET_ADDED;
	}
	grow_table(s, n, before);
	return was_there ? SP_LIVESET_REPLACED : SP_LIVESET_ADDED;
}

/* A bucket of the only table says so.  The table is asked for last: in another
 * it may be that the address was moved away meanwhile (I6). */
bool sp_liveset_may_have(const void *p)
{
	const uint64_t address = (uintptr_t)p;
	const unsigned int t = atomic_load(&current);

	return !atomic_load(&state) ||
	       !sp_livetable_lacks(t, address, sp_livetable_hash(address)) ||
	       t != atomic_load(&newest);
}

bool sp_liveset_take(const void *p, struct sp_live *ret)
{
	struct state *s = atomic_load(&state);
	const uint64_t address = (uintptr_t)p;
	const uint64_t hash = sp_livetable_hash(address);
	struct sp_liveplace place;
	struct sp_livevalues values;
	uint32_t epoch, n;

	if (!s || !sp_liveword_is_address(address))
		return false;
	epoch = epoch_of(atomic_load(&s->census));
	if (!take_out(address, hash, &place, &values) ||
	    !count_live(s, epoch, -1, &n))
		return false;
	count_taken(address, &place);
	*ret = sp_livevalues_unpack(values);
	ret->generation = epoch;
	return true;
}

/* ---- what is rewritten ---- */

/* What belongs to the sample, and what it says; NULL: it is not there. */
static _Atomic uint64_t *find_sample(uint64_t address, uint64_t id,
				     uint64_t *ret_said)
{
	const uint64_t hash = sp_livetable_hash(address);
	struct sp_liveplace p;
	bool is_there = find_first(&p, address, hash, first_table(hash));

	for (; is_there; is_there = find_next(&p, address)) {
		*ret_said = sp_livetable_load(&p).id_word;
		if (sp_livevalues_id(*ret_said) == id)
			return &p.bucket->values[p.slot][0];
	}
	return NULL;
}

bool sp_liveset_is_missing(const void *p, uint64_t id, uint32_t segment,
			   struct sp_liveset_place *ret)
{
	ret->word = find_sample((uintptr_t)p, id, &ret->said);
	return ret->word && sp_livevalues_mark(ret->said, segment) != ret->said;
}

void sp_liveset_rewritten(const struct sp_liveset_place *place,
			  uint32_t segment)
{
	uint64_t said = place->said;

	atomic_compare_exchange_strong((_Atomic uint64_t *)place->word, &said,
				       sp_livevalues_mark(said, segment));
}

void sp_liveset_give_left(void)
{
	struct state *s = atomic_load(&state);

	if (!s)
		return;
	atomic_store(&has_copies, true);
	sp_inside_give_left(&s->moving);
}

void sp_liveset_reset(uint32_t generation)
{
	struct state *s = atomic_load(&state);

	if (!s)
		return;
	/* What the fork interrupted goes on in the child. */
	atomic_store(&has_copies, true);
	sp_livefilter_keep(atomic_load(&newest));
	if (!epoch_of(atomic_load(&s->census)))
		sp_filter_pass_none();
	atomic_store(&s->census, (uint64_t)generation << 32);
}
