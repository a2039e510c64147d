/* SPDX-License-Identifier: MIT */
#include "rss/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bisect.h"
#include "base/order.h"

static const char library[] = "/libsampleprof.so";

/* ---- whole mappings ---- */

static bool begins_with(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static bool is_ours(const struct sp_rss_map *m, const struct sp_rss_hints *h)
{
	const char *at = strstr(m->path, library);

	return (h->profile_inode && m->inode == h->profile_inode &&
		m->is_shared) ||
	       (m->inode && at &&
		(!at[sizeof(library) - 1] || at[sizeof(library) - 1] == ' '));
}

/* Is part of the file executable? */
static bool is_object(const struct sp_rss_maps *maps, size_t i)
{
	const uint64_t inode = maps->list[i].inode;
	bool found = maps->list[i].can_execute;

	for (size_t k = i; k-- && !found && maps->list[k].inode == inode;)
		found = maps->list[k].can_execute;
	for (size_t k = i + 1;
	     k < maps->n && !found && maps->list[k].inode == inode; k++)
		found = maps->list[k].can_execute;
	return found;
}

static enum sp_rss_kind kind_of_file(const struct sp_rss_maps *maps, size_t i,
				     const struct sp_rss_hints *hints)
{
	const struct sp_rss_map *m = &maps->list[i];

	if (is_ours(m, hints))
		return SP_RSS_OURS;
	if (m->is_shared &&
	    (begins_with(m->path, "/dev/shm/") ||
	     begins_with(m->path, "/memfd:") || begins_with(m->path, "/SYSV") ||
	     begins_with(m->path, "/dev/zero")))
		return SP_RSS_SHARED;
	return !m->is_shared && is_object(maps, i) ? SP_RSS_CODE : SP_RSS_FILES;
}

/* Zeroed variables, which follow on those that the file has. */
static bool is_zeroed_data(const struct sp_rss_maps *maps, size_t i,
			   const enum sp_rss_kind *kinds)
{
	const struct sp_rss_map *m = &maps->list[i], *before = m - 1;

	return i && !*m->path && m->can_write && before->end == m->start &&
	       before->inode && before->can_write && !before->is_shared &&
	       (kinds[i - 1] == SP_RSS_CODE || kinds[i - 1] == SP_RSS_OURS);
}

static enum sp_rss_kind kind_of(const struct sp_rss_maps *maps, size_t i,
				const struct sp_rss_hints *hints,
				struct sp_rss_pages *pages,
				const enum sp_rss_kind *kinds)
{
	const struct sp_rss_map *m = &maps->list[i];

	if (m->inode)
		return kind_of_file(maps, i, hints);
	if (is_zeroed_data(maps, i, kinds))
		return kinds[i - 1] == SP_RSS_OURS ? SP_RSS_OURS : SP_RSS_DATA;
	if (m->is_shared || begins_with(m->path, "[anon_shmem:"))
		return SP_RSS_SHARED;
	if (begins_with(m->path, "[stack"))
		return SP_RSS_STACK;
	if (strcmp(m->path, "[heap]") == 0)
		return SP_RSS_HEAP;
	if (begins_with(m->path, "[v"))
		return SP_RSS_CODE;
	if (hints->is_glibc && !hints->is_32_bit &&
	    sp_rss_blocks_is_arena(m, pages))
		return SP_RSS_HEAP;
	return SP_RSS_OTHER;
}

/* ---- parts of mappings ---- */

int sp_rss_parts_add(struct sp_rss_parts *parts, uint64_t start, uint64_t end,
		     enum sp_rss_kind kind)
{
	if (sp_array_reserve((void **)&parts->list, &parts->room, parts->n,
			     sizeof(*parts->list)) < 0)
		return -ENOMEM;
	parts->list[parts->n++] =
		(struct sp_rss_part){.start = start, .end = end, .kind = kind};
	return 0;
}

SP_ORDER(compare_parts, struct sp_rss_part, SP_UP(start));

/* The library's own, where the mapping is anonymous. */
static int add_ours(const struct sp_rss_map *m,
		    const struct sp_rss_hints *hints,
		    struct sp_rss_parts *parts)
{
	int r = 0;

	for (size_t i = 0; i < hints->n_ours && r == 0; i++) {
		const uint64_t start = hints->ours[i].start;
		const uint64_t bytes = hints->ours[i].bytes;

		if (bytes && start >= m->start && start < m->end &&
		    bytes <= m->end - start)
			r = sp_rss_parts_add(parts, start, start + bytes,
					     SP_RSS_OURS);
	}
	return r;
}

/* Large objects in what is left of the mapping between parts[first..n). */
static int add_large(const struct sp_rss_map *m, struct sp_rss_pages *pages,
		     size_t first, uint64_t *left, struct sp_rss_parts *parts)
{
	const size_t n = parts->n;
	uint64_t from = m->start;
	int r = 0;

	for (size_t i = first; i <= n && r == 0; i++) {
		const uint64_t end = i < n ? parts->list[i].start : m->end;

		if (end > from)
			r = sp_rss_blocks_find(pages, from, end, left, parts);
		if (i < n)
			from = parts->list[i].end;
	}
	return r;
}

static void sort_from(struct sp_rss_parts *parts, size_t first)
{
	if (parts->n > first)
		qsort(parts->list + first, parts->n - first,
		      sizeof(*parts->list), compare_parts);
}

/* What the mapping is besides is `kind`.  Parts that overlap, which is nobody's
 * idea, are cut. */
static int fill_gaps(const struct sp_rss_map *m, enum sp_rss_kind kind,
		     size_t first, struct sp_rss_parts *parts)
{
	const size_t n = parts->n;
	uint64_t from = m->start;
	int r = 0;

	for (size_t i = first; i < n && r == 0; i++) {
		struct sp_rss_part *p = &parts->list[i];
		const uint64_t start = p->start > from ? p->start : from;
		const uint64_t gap = from;

		p->start = start < p->end ? start : p->end;
		from = p->end > from ? p->end : from;
		if (start > gap)
			r = sp_rss_parts_add(parts, gap, start, kind);
	}
	if (r == 0 && from < m->end)
		r = sp_rss_parts_add(parts, from, m->end, kind);
	return r;
}

static void count_mapping(struct sp_rss_parts *parts, enum sp_rss_kind kind,
			  uint64_t bytes, uint64_t rss, uint64_t swap)
{
	parts->bytes[kind] += bytes;
	parts->rss[kind] += rss;
	parts->swap[kind] += swap;
}

/* What is resident of the parts, and of what is besides the rest: so all that
 * the kernel counts is somewhere. */
static void count_parts(const struct sp_rss_map *m, struct sp_rss_pages *pages,
			enum sp_rss_kind kind, size_t first,
			struct sp_rss_parts *parts)
{
	uint64_t left = m->rss;

	for (size_t i = first; i < parts->n; i++) {
		const struct sp_rss_part *p = &parts->list[i];
		const uint64_t zero =
			sp_rss_pages_zero(pages, p->start, p->end);
		const uint64_t all =
			p->kind == kind ? 0
					: sp_rss_pages_resident(pages, p->start,
								p->end) +
						  zero;
		const uint64_t rss = all < left ? all : left;

		count_mapping(parts, p->kind, p->end - p->start, rss, 0);
		parts->zero[p->kind] += zero;
		left -= rss;
	}
	count_mapping(parts, kind, 0, left, m->swap);
}

static int add_other(const struct sp_rss_maps *maps, size_t i,
		     struct sp_rss_pages *pages,
		     const struct sp_rss_hints *hints, uint64_t *left,
		     struct sp_rss_parts *parts)
{
	const struct sp_rss_map *m = &maps->list[i];
	const size_t first = parts->n;
	int r = add_ours(m, hints, parts);

	if (r == 0 && m->can_read && m->can_write && m->rss)
		r = sp_rss_stacks_find(maps, i, pages, hints->is_32_bit, parts);
	sort_from(parts, first);
	if (r == 0 && m->can_read && m->can_write && m->rss)
		r = add_large(m, pages, first, left, parts);
	sort_from(parts, first);
	if (r == 0)
		r = fill_gaps(m, SP_RSS_OTHER, first, parts);
	if (r == 0)
		count_parts(m, pages, SP_RSS_OTHER, first, parts);
	sort_from(parts, first);
	return r;
}

/* What a private mapping of a file was written to is no page of the file any
 * more, and is all of it that is swapped out. */
static enum sp_rss_kind kind_of_written(const struct sp_rss_map *m,
					enum sp_rss_kind kind)
{
	if (kind == SP_RSS_CODE)
		return SP_RSS_DATA;
	return kind == SP_RSS_FILES && !m->is_shared ? SP_RSS_OTHER : kind;
}

static int add_map(const struct sp_rss_maps *maps, size_t i,
		   enum sp_rss_kind kind, struct sp_rss_pages *pages,
		   struct sp_rss_parts *parts)
{
	const struct sp_rss_map *m = &maps->list[i];
	const enum sp_rss_kind written = kind_of_written(m, kind);
	const uint64_t bytes = written == kind ? 0 : m->anonymous;

	count_mapping(parts, kind, m->end - m->start, m->rss - bytes, 0);
	count_mapping(parts, written, 0, bytes, m->swap);
	parts->zero[kind] += sp_rss_pages_zero(pages, m->start, m->end);
	return sp_rss_parts_add(parts, m->start, m->end, kind);
}

int sp_rss_parts_find(const struct sp_rss_maps *maps,
		      struct sp_rss_pages *pages,
		      const struct sp_rss_hints *hints,
		      struct sp_rss_parts *ret)
{
	enum sp_rss_kind *kinds = calloc(maps->n + 1, sizeof(*kinds));
	uint64_t left =
		hints->is_glibc && !hints->is_32_bit ? hints->large_bytes : 0;
	int r = kinds ? 0 : -ENOMEM;

	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < maps->n && r == 0; i++) {
		kinds[i] = kind_of(maps, i, hints, pages, kinds);
		r = sp_rss_pages_find_zero(pages, &maps->list[i]);
		if (r == 0)
			r = kinds[i] == SP_RSS_OTHER
				    ? add_other(maps, i, pages, hints, &left,
						ret)
				    : add_map(maps, i, kinds[i], pages, ret);
	}
	free(kinds);
	return r;
}

void sp_rss_parts_free(struct sp_rss_parts *parts)
{
	free(parts->list);
	memset(parts, 0, sizeof(*parts));
}

struct sp_rss_part *sp_rss_parts_at(const struct sp_rss_parts *parts,
				    uint64_t address)
{
	size_t at;

	SP_LOWER_BOUND(at, parts->n, parts->list[at].end <= address);
	return at < parts->n && parts->list[at].start <= address
		       ? &parts->list[at]
		       : NULL;
}
