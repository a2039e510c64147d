/* SPDX-License-Identifier: MIT */
#include "rss/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bisect.h"
#include "base/patience.h"
#include "base/proc.h"

#define HUGE_BYTES (2ull << 20)
#define WINDOW     8192u /* entries read at once */
/* Huge pages are read whole: at most so many, which takes some seconds. */
#define HUGE_MAX 2048u

#define ENTRY_PRESENT (1ull << 63)
#define ENTRY_SWAPPED (1ull << 62)
/* Present, but of no file and not of this process alone: a page that a fork has
 * shared or, where there is none, the one of zeros that stands for all that was
 * only read, and which is not counted as resident. */
#define ENTRY_EXCLUSIVE (1ull << 56)
#define ENTRY_FILE      (1ull << 61)

struct range {
	uint64_t start, end;
};

struct sp_rss_pages {
	uint64_t page_bytes;
	uint64_t counted; /* ENTRY_*: one of them is set if it is resident */
	int pagemap, mem; /* -1: not ours to read */
	uint64_t first;   /* number of the page of window[0] */
	size_t n_window;
	uint64_t window[WINDOW];
	/* Of files: of another user's process these are not read, since a fault
	 * in them may be served by a process of that user, or never. */
	struct range *files; /* ascending */
	size_t n_files;
	struct range *zeros; /* ascending */
	size_t n_zeros, zeros_room;
	size_t n_huge; /* pages that were read */
	uint64_t silent_at;
	unsigned char page[HUGE_BYTES];
};

/* The position of the first range that ends behind the address. */
static size_t find_range(const struct range *list, size_t n, uint64_t address)
{
	size_t at;

	SP_LOWER_BOUND(at, n, list[at].end <= address);
	return at;
}

static bool is_other(uint64_t pid)
{
	struct sp_proc_identity identity;

	return !sp_proc_identify(pid, &identity) || sp_proc_is_other(&identity);
}

static int note_files(struct sp_rss_pages *p, const struct sp_rss_maps *maps)
{
	p->files = calloc(maps->n + 1, sizeof(*p->files));
	if (!p->files)
		return -ENOMEM;
	for (size_t i = 0; i < maps->n; i++)
		if (maps->list[i].inode)
			p->files[p->n_files++] = (struct range){
				maps->list[i].start, maps->list[i].end};
	return 0;
}

struct sp_rss_pages *sp_rss_pages_new(const struct sp_rss_maps *maps)
{
	struct sp_rss_pages *p = calloc(1, sizeof(*p));
	int dir;

	if (!p)
		return NULL;
	if (is_other(maps->pid) && note_files(p, maps) < 0) {
		free(p);
		return NULL;
	}
	dir = sp_proc_open(maps->pid);
	p->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	p->counted =
		maps->shared ? ENTRY_PRESENT : ENTRY_EXCLUSIVE | ENTRY_FILE;
	p->pagemap =
		dir < 0 ? -1 : openat(dir, "pagemap", O_RDONLY | O_CLOEXEC);
	p->mem = dir < 0 ? -1 : openat(dir, "mem", O_RDONLY | O_CLOEXEC);
	if (dir >= 0)
		close(dir);
	return p;
}

void sp_rss_pages_free(struct sp_rss_pages *p)
{
	if (!p)
		return;
	if (p->pagemap >= 0)
		close(p->pagemap);
	if (p->mem >= 0)
		close(p->mem);
	free(p->files);
	free(p->zeros);
	free(p);
}

uint64_t sp_rss_pages_size(const struct sp_rss_pages *p)
{
	return p->page_bytes;
}

bool sp_rss_pages_can_ask(const struct sp_rss_pages *p)
{
	return p->pagemap >= 0;
}

bool sp_rss_pages_can_read(const struct sp_rss_pages *p)
{
	return p->mem >= 0;
}

static bool has_file(const struct sp_rss_pages *p, uint64_t at, size_t bytes)
{
	const size_t i = find_range(p->files, p->n_files, at);

	return i < p->n_files &&
	       (p->files[i].start <= at || p->files[i].start - at < bytes);
}

/* Are all pages there, or with the kernel?  Then it answers, unless the process
 * takes one away in that moment. */
static bool is_there(const struct sp_rss_pages *p, uint64_t at, size_t bytes)
{
	const uint64_t end = (at + bytes - 1) / p->page_bytes + 1;
	uint64_t entries[512];

	for (uint64_t i = at / p->page_bytes; i < end;) {
		const size_t n = end - i < 512 ? (size_t)(end - i) : 512;

		if (pread(p->pagemap, entries, n * sizeof(*entries),
			  (off_t)(i * sizeof(*entries))) !=
		    (ssize_t)(n * sizeof(*entries)))
			return false;
		for (size_t k = 0; k < n; k++, i++)
			if (!(entries[k] & (ENTRY_PRESENT | ENTRY_SWAPPED)))
				return false;
	}
	return true;
}

/* -errno, or whether it was all. */
static ssize_t read_patiently(const struct sp_rss_pages *p, uint64_t at,
			      void *to, size_t bytes)
{
	ssize_t n = 1;

	for (size_t done = 0; n > 0 && done < bytes; done += (size_t)n)
		n = sp_patience_read(p->mem, (char *)to + done, bytes - done,
				     (off_t)(at + done));
	return n;
}

bool sp_rss_pages_read(struct sp_rss_pages *p, uint64_t at, void *to,
		       size_t bytes)
{
	ssize_t r;

	if (p->mem < 0 || p->silent_at || !bytes || has_file(p, at, bytes))
		return false;
	if (is_there(p, at, bytes))
		return pread(p->mem, to, bytes, (off_t)at) == (ssize_t)bytes;
	r = read_patiently(p, at, to, bytes);
	if (r == -ETIMEDOUT)
		p->silent_at = at;
	return r > 0;
}

uint64_t sp_rss_pages_silent(const struct sp_rss_pages *p)
{
	return p->silent_at;
}

/* ---- resident ---- */

static bool is_resident(struct sp_rss_pages *p, uint64_t number)
{
	uint64_t entry;
	ssize_t n;

	if (number - p->first >= p->n_window) {
		p->first = number;
		n = p->pagemap < 0
			    ? -1
			    : pread(p->pagemap, p->window, sizeof(p->window),
				    (off_t)(number * sizeof(entry)));
		p->n_window = n < 0 ? 0 : (size_t)n / sizeof(entry);
		if (!p->n_window)
			return false;
	}
	entry = p->window[number - p->first];
	return entry & ENTRY_PRESENT && entry & p->counted;
}

static uint64_t overlap_bytes(uint64_t a, uint64_t a_end, uint64_t b,
			      uint64_t b_end)
{
	const uint64_t low = a > b ? a : b;
	const uint64_t high = a_end < b_end ? a_end : b_end;

	return high > low ? high - low : 0;
}

uint64_t sp_rss_pages_zero(const struct sp_rss_pages *p, uint64_t start,
			   uint64_t end)
{
	uint64_t sum = 0;

	for (size_t i = find_range(p->zeros, p->n_zeros, start);
	     i < p->n_zeros && p->zeros[i].start < end; i++)
		sum += overlap_bytes(start, end, p->zeros[i].start,
				     p->zeros[i].end);
	return sum;
}

uint64_t sp_rss_pages_resident(struct sp_rss_pages *p, uint64_t start,
			       uint64_t end)
{
	const uint64_t size = p->page_bytes;
	uint64_t sum = 0;

	for (uint64_t at = start; at < end; at = (at / size + 1) * size)
		if (is_resident(p, at / size))
			sum += overlap_bytes(at, end, at / size * size,
					     (at / size + 1) * size);
	return sum - sp_rss_pages_zero(p, start, end);
}

uint64_t sp_rss_pages_next(struct sp_rss_pages *p, uint64_t start, uint64_t end)
{
	const uint64_t size = p->page_bytes;

	for (uint64_t at = start; at < end; at = (at / size + 1) * size)
		if (is_resident(p, at / size))
			return at;
	return end;
}

/* ---- zero ---- */

static bool is_zero(const unsigned char *page, size_t bytes)
{
	return !page[0] && memcmp(page, page + 1, bytes - 1) == 0;
}

static int add_zero(struct sp_rss_pages *p, uint64_t start, uint64_t end)
{
	struct range *last = p->n_zeros ? &p->zeros[p->n_zeros - 1] : NULL;

	if (last && last->end == start) {
		last->end = end;
		return 0;
	}
	if (sp_array_reserve((void **)&p->zeros, &p->zeros_room, p->n_zeros,
			     sizeof(*p->zeros)) < 0)
		return -ENOMEM;
	p->zeros[p->n_zeros++] = (struct range){start, end};
	return 0;
}

static int read_huge(struct sp_rss_pages *p, uint64_t at)
{
	const uint64_t size = p->page_bytes;
	int r = 0;

	if (p->n_huge == HUGE_MAX ||
	    !sp_rss_pages_read(p, at, p->page, HUGE_BYTES))
		return 0;
	p->n_huge++;
	for (uint64_t i = 0; i < HUGE_BYTES && r == 0; i += size)
		if (is_zero(p->page + i, size))
			r = add_zero(p, at + i, at + i + size);
	return r;
}

static bool is_whole(struct sp_rss_pages *p, uint64_t at)
{
	for (uint64_t i = 0; i < HUGE_BYTES; i += p->page_bytes)
		if (!is_resident(p, (at + i) / p->page_bytes))
			return false;
	return true;
}

/* Each huge page is whole.  If there are as many whole ranges as huge pages,
 * these are it. */
int sp_rss_pages_find_zero(struct sp_rss_pages *p, const struct sp_rss_map *m)
{
	const uint64_t from = (m->start + HUGE_BYTES - 1) / HUGE_BYTES;
	uint64_t whole = 0;
	int r = 0;

	if (!m->huge || p->mem < 0 || p->page_bytes != 4096)
		return 0;
	for (uint64_t i = from; (i + 1) * HUGE_BYTES <= m->end; i++)
		whole += is_whole(p, i * HUGE_BYTES);
	if (whole * HUGE_BYTES != m->huge)
		return 0;
	for (uint64_t i = from; (i + 1) * HUGE_BYTES <= m->end && r == 0; i++)
		if (is_whole(p, i * HUGE_BYTES))
			r = read_huge(p, i * HUGE_BYTES);
	return r;
}
