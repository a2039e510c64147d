/* SPDX-License-Identifier: MIT */
/*
 * I1  Only memory of the object's segments is read, and of that only pages that
 *     were found to be readable.  An object that may be unloaded is copied page
 *     by page, each right after it was found so; the search is in the copy.
 * I2  No lock: each thread that meets the object first makes an index, and all
 *     but one give theirs back.  What is published never changes.
 * I3  What is read is no proof: an entry that the index leads to is read and
 *     checked like one that a header leads to.
 *
 * Linkers put .eh_frame last, or next to it, in a segment.  So the end of each
 * segment is looked at, those that have only constants first.  There a CIE is
 * looked for.  What follows it has to be a chain of entries that refer to CIEs,
 * and only functions in the object's code count.
 */
#include "agent/unwind/cfi_index.h"

#include <stdatomic.h>
#include <string.h>

#include "agent/sys/diag.h"
#include "agent/sys/sys.h"
#include "agent/unwind/cfi_entry.h"
#include "agent/unwind/stack_bounds.h"
#include "base/bisect.h"

#include "agent/sys/poison.h"

/* So many bytes are looked at: these and 16 for each of code, but not more than
 * the second, or than the third of an object that may be unloaded. */
#define SEARCH_BYTES         (64u << 10)
#define SEARCH_BYTES_MAX     (64u << 20)
#define SEARCH_BYTES_GUARDED (1u << 20)
#define CODE_FACTOR          16
/* No CIE of a compiler is longer. */
#define CIE_BYTES_MAX 256u
#define INDEX_BYTES   (8u << 20)
#define PAIRS_MAX                                                              \
	((INDEX_BYTES - sizeof(struct sp_cfi_index)) / sizeof(uint64_t))

struct sp_cfi_index {
	size_t n;
	/* Sorted: the function's place in the object << 32 | its entry's. */
	uint64_t pairs[];
};

struct search {
	const struct sp_module_entry *e;
	struct sp_cfi_view view;
	struct sp_cfi_cie cie;
	size_t n; /* functions so far */
	size_t room;
	uint64_t *pairs;    /* NULL: they are only counted */
	uint64_t n_refused; /* those that do not fit */
};

static struct sp_cfi_index nothing;
static bool is_forbidden;

/* ---- a chain of entries ---- */

static void take_function(struct search *s, const uint8_t *entry,
			  const struct sp_cfi_fde *fde)
{
	const uint64_t start = fde->begin - s->e->start;
	const uint64_t at = (uintptr_t)entry + s->view.moved - s->e->start;

	if (fde->begin < s->e->code_start || fde->begin >= s->e->code_end)
		return;
	if (s->n == s->room || start > UINT32_MAX || at > UINT32_MAX) {
		s->n_refused++;
		return;
	}
	if (s->pairs)
		s->pairs[s->n] = start << 32 | at;
	s->n++;
}

/* From the CIE at `at` on.  Returns where it ends. */
static const uint8_t *follow_chain(struct search *s, const uint8_t *at)
{
	struct sp_slice entry;

	while (sp_cfi_entry_within(&s->view, at, &entry) &&
	       sp_slice_left(&entry) >= 8) {
		const uint8_t *const behind = entry.end;
		const size_t place = (size_t)(entry.at - s->view.low);
		struct sp_cfi_fde fde;
		struct sp_slice common;
		uint32_t back;

		memcpy(&back, entry.at, sizeof(back));
		if (back > place ||
		    (back && (!sp_cfi_entry_within(&s->view, entry.at - back,
						   &common) ||
			      sp_slice_left(&common) < 8 ||
			      memcmp(common.at, "\0\0\0", 4) != 0)))
			break;
		if (back && sp_cfi_read_fde(&s->view, at, &s->cie, &fde))
			take_function(s, at, &fde);
		at = behind;
	}
	return at;
}

static bool is_cie(struct search *s, const uint8_t *at)
{
	uint32_t words[2];

	memcpy(words, at, sizeof(words));
	return words[0] >= 8 && words[0] <= CIE_BYTES_MAX && words[1] == 0 &&
	       sp_cfi_read_cie(&s->view, at, &s->cie);
}

static void search_view(struct search *s)
{
	const uint8_t *at = s->view.low;

	at += -((uintptr_t)at + s->view.moved) % 4;
	s->cie.at = NULL;
	s->n = 0;
	s->n_refused = 0;
	while (at < s->view.high && (size_t)(s->view.high - at) >= 16) {
		const uint8_t *end = is_cie(s, at) ? follow_chain(s, at) : at;

		/* Behind a chain is its end, or other data of any length. */
		at = end > at ? at + (size_t)(end - at + 3) / 4 * 4 : at + 4;
	}
}

/* ---- sorting, in place and without a stack ---- */

static void sift_down(uint64_t *pairs, size_t at, size_t n)
{
	for (size_t child; (child = 2 * at + 1) < n; at = child) {
		uint64_t pair = pairs[at];

		child += child + 1 < n && pairs[child + 1] > pairs[child];
		if (pair >= pairs[child])
			return;
		pairs[at] = pairs[child];
		pairs[child] = pair;
	}
}

static void sort_pairs(uint64_t *pairs, size_t n)
{
	for (size_t i = n / 2; i-- > 0;)
		sift_down(pairs, i, n);
	for (size_t i = n; i-- > 1;) {
		uint64_t last = pairs[i];

		pairs[i] = pairs[0];
		pairs[0] = last;
		sift_down(pairs, 0, i);
	}
}

/* ---- an object ---- */

static size_t bytes_of(size_t n)
{
	return sizeof(struct sp_cfi_index) + n * sizeof(uint64_t);
}

/* The last readable pages of [low, high), copied to `copy` if there is one. */
static struct sp_cfi_view make_view(uintptr_t low, uintptr_t high,
				    uint8_t *copy)
{
	uintptr_t from = low;

	for (uintptr_t at = low, next; at < high; at = next) {
		next = (at & ~(SP_ARCH_PAGE_MIN - 1)) + SP_ARCH_PAGE_MIN;
		if (!sp_stack_bounds_probe(at))
			from = next;
		else if (copy)
			memcpy(copy + (at - low), (const void *)at,
			       (next < high ? next : high) - at);
	}
	if (from > high)
		from = high;
	if (!copy)
		return (struct sp_cfi_view){(const uint8_t *)from,
					    (const uint8_t *)high, 0};
	return (struct sp_cfi_view){copy + (from - low), copy + (high - low),
				    low - (uintptr_t)copy};
}

static struct sp_cfi_index *make_index(struct search *s)
{
	struct sp_cfi_index *index;

	s->pairs = NULL;
	s->room = PAIRS_MAX;
	search_view(s);
	if (s->n_refused)
		sp_diag_lose(SP_LOSS_TABLES, s->n_refused);
	if (s->n == 0)
		return NULL;
	s->room = s->n;
	index = sp_sys_map(bytes_of(s->room));
	if (!index) {
		sp_diag_lose(SP_LOSS_TABLES, s->n);
		return NULL;
	}
	s->pairs = index->pairs;
	search_view(s);
	/* What gives it back has to know how much it is. */
	for (size_t i = s->n; i < s->room; i++)
		index->pairs[i] = UINT64_MAX;
	index->n = s->room;
	sort_pairs(index->pairs, index->n);
	return index;
}

/* In one segment; *budget is what may still be looked at. */
static struct sp_cfi_index *search_segment(const struct sp_module_entry *e,
					   const ElfW(Phdr) * p, size_t *budget)
{
	const uintptr_t high = e->bias + p->p_vaddr + p->p_filesz;
	const size_t bytes = p->p_filesz < *budget ? p->p_filesz : *budget;
	struct search s = {.e = e};
	struct sp_cfi_index *index;
	uint8_t *copy = NULL;

	if (bytes == 0 || p->p_filesz > p->p_memsz)
		return NULL;
	*budget -= bytes;
	if (!e->permanent) {
		copy = sp_sys_map(bytes);
		if (!copy)
			return NULL;
	}
	s.view = make_view(high - bytes, high, copy);
	index = make_index(&s);
	if (!index && bytes < p->p_filesz)
		sp_diag_lose(SP_LOSS_TABLES, 1);
	if (copy)
		sp_sys_unmap(copy, bytes);
	return index;
}

static size_t find_budget(const struct sp_module_entry *e)
{
	const size_t max =
		e->permanent ? SEARCH_BYTES_MAX : SEARCH_BYTES_GUARDED;
	const size_t code = e->code_end - e->code_start;

	return code < (max - SEARCH_BYTES) / CODE_FACTOR
		       ? SEARCH_BYTES + CODE_FACTOR * code
		       : max;
}

/* The last segment with only constants, which is next to the code, is where
 * they are mostly. */
static struct sp_cfi_index *search_object(const struct sp_module_entry *e)
{
	static const uint32_t kinds[] = {PF_R, PF_R | PF_X, PF_R | PF_W};
	size_t budget = find_budget(e);

	for (unsigned int k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		for (unsigned int i = e->n_phdr; i-- > 0;) {
			const ElfW(Phdr) *p = &e->phdr[i];
			struct sp_cfi_index *index;

			if (p->p_type != PT_LOAD || p->p_flags != kinds[k])
				continue;
			index = search_segment(e, p, &budget);
			if (index)
				return index;
		}
	return NULL;
}

/* Go keeps frame pointers in place of tables, and has much else. */
static struct sp_cfi_index *index_of(struct sp_module_entry *e)
{
	struct sp_cfi_index *index =
		atomic_load_explicit(&e->index, memory_order_acquire);
	struct sp_cfi_index *was = NULL;

	if (index)
		return index;
	if (is_forbidden || e->is_go || e->code_start >= e->code_end)
		return &nothing;
	index = search_object(e);
	/* While we looked, it may have become another. */
	if (!e->permanent && sp_modules_find(e->code_start, NULL) != e) {
		sp_cfi_index_free(index);
		return &nothing;
	}
	if (!index)
		index = &nothing;
	if (atomic_compare_exchange_strong(&e->index, &was, index))
		return index;
	sp_cfi_index_free(index);
	return was;
}

uintptr_t sp_cfi_index_find(struct sp_module_entry *e, uintptr_t at)
{
	const struct sp_cfi_index *index = index_of(e);
	const uint64_t wanted = at - e->start;
	size_t i;

	SP_LOWER_BOUND(i, index->n, index->pairs[i] >> 32 <= wanted);
	return i ? e->start + (uint32_t)index->pairs[i - 1] : 0;
}

void sp_cfi_index_free(struct sp_cfi_index *index)
{
	if (index && index != &nothing)
		sp_sys_unmap(index, bytes_of(index->n));
}

void sp_cfi_index_forbid(void)
{
	is_forbidden = true;
}
