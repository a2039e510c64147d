/* SPDX-License-Identifier: MIT */
/*
 * I1  windows[0] maps the file's first chunks; windows[i] is mapped by the
 * first thread that needs it, and published by compare-and-swap.
 */
#include "agent/file/mapping.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>

#include "agent/sys/clock.h"
#include "agent/sys/diag.h"
#include "agent/sys/sys.h"
#include "format/layout.h"

#include "agent/sys/poison.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000 /* Linux 4.17 */
#endif

#define CHUNK       SP_FORMAT_CHUNK_BYTES
#define FIRST       (SP_MAPPING_FIRST_BYTES / CHUNK)
#define ALIKE       16u           /* windows of one size */
#define WINDOWS_MAX (ALIKE * 13u) /* 128 GiB */
#define HOLD_TRIES  3
#define LAST_TRIES  8
#define HOLD_NS     500000u      /* slower than a page that is there */
#define NO_ROOM_NS  10000000000u /* between questions */

static _Atomic uint32_t generation;
static _Atomic(uint8_t *) windows[WINDOWS_MAX];
static uint64_t n_chunks;
/* Where the file before this one was. */
static struct {
	uint8_t *at;
	uint64_t bytes;
} covers[WINDOWS_MAX];
static bool moves;                  /* see struct sp_outfile */
static _Atomic uint64_t no_room_ns; /* until then there is none */
static _Atomic bool is_unsaid;      /* and the file does not tell */

uint32_t sp_mapping_generation(void)
{
	return atomic_load_explicit(&generation, memory_order_relaxed);
}

/* ---- windows ---- */

/* Chunks of window i. */
static uint64_t window_size(unsigned int i)
{
	return (uint64_t)FIRST << i / ALIKE;
}

/* The first chunk of window i. */
static uint64_t window_start(unsigned int i)
{
	return ALIKE * FIRST * ((1ull << i / ALIKE) - 1) +
	       i % ALIKE * window_size(i);
}

/* The window with chunk n. */
static unsigned int window_of(uint64_t n)
{
	const unsigned int size =
		63u - (unsigned int)__builtin_clzll(n / (ALIKE * FIRST) + 1);

	return ALIKE * size + (unsigned int)((n - window_start(ALIKE * size)) /
					     window_size(ALIKE * size));
}

/* Chunks of window i that the file has. */
static uint64_t chunks_in(unsigned int i)
{
	const uint64_t left = n_chunks - window_start(i);

	return left < window_size(i) ? left : window_size(i);
}

void sp_mapping_begin(const struct sp_outfile *file)
{
	/* In this order, for sp_mapping_detach. */
	atomic_store(&windows[0], file->base);
	sp_outfile_keep_from_children(file->base, file->mapped);
	moves = file->moves;
	n_chunks = file->limit / CHUNK;
}

void sp_mapping_drop(void)
{
	atomic_store(&windows[0], NULL);
}

void sp_mapping_reset(void)
{
	atomic_fetch_add(&generation, 1);
	for (unsigned int i = 0; i < WINDOWS_MAX && windows[i]; i++)
		atomic_store(&windows[i], NULL);
	atomic_store(&no_room_ns, 0);
}

/* Memory where a part of the file was mapped. */
static bool cover_page(uint8_t *at, size_t bytes, int how)
{
	const long p = sp_syscall(
		SYS_mmap, (long)at, (long)bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | how, -1, 0);

	return p == (long)at;
}

/* Unless something else is there by now. */
void sp_mapping_detach(void)
{
	for (unsigned int i = 0; i < WINDOWS_MAX; i++) {
		uint8_t *window = atomic_load(&windows[i]);

		if (window)
			cover_page(window, chunks_in(i) * CHUNK,
				   MAP_FIXED_NOREPLACE);
	}
}

static void unmap_window(unsigned int i)
{
	uint8_t *at;
	uint64_t n;

	/* A table that is only read takes no memory. */
	if (!atomic_load(&windows[i]) && !covers[i].at)
		return;
	at = atomic_exchange(&windows[i], NULL);
	n = at ? chunks_in(i) : 0;
	if (covers[i].at)
		SP_SYS2(munmap, covers[i].at, covers[i].bytes);
	/* The others begin with their predecessor's last chunk. */
	if (at && i) {
		n++;
		at -= CHUNK;
	}
	covers[i].at = at;
	covers[i].bytes = n * CHUNK;
	if (at && !cover_page(at, n * CHUNK, MAP_FIXED)) {
		SP_SYS2(munmap, at, n * CHUNK);
		covers[i].at = NULL;
	}
}

void sp_mapping_unmap(void)
{
	for (unsigned int i = 0; i < WINDOWS_MAX; i++)
		unmap_window(i);
}

uint8_t *sp_mapping_base(void)
{
	return atomic_load_explicit(&windows[0], memory_order_acquire);
}

/* Map window i, whose predecessor is mapped: from the predecessor's last chunk
 * on, since a mapping can only be extended from inside itself. */
static uint8_t *map_window(unsigned int i)
{
	uint32_t before = atomic_load(&generation);
	uint8_t *previous =
		atomic_load_explicit(&windows[i - 1], memory_order_acquire);
	uint8_t *none = NULL, *fresh;
	const uint64_t n = chunks_in(i);

	fresh = sp_outfile_map_more(previous + (window_size(i - 1) - 1) * CHUNK,
				    (n + 1) * CHUNK);
	if (!fresh)
		return NULL;
	if (!atomic_compare_exchange_strong_explicit(
		    &windows[i], &none, fresh + CHUNK, memory_order_acq_rel,
		    memory_order_acquire)) {
		SP_SYS2(munmap, fresh, (n + 1) * CHUNK);
		return none;
	}
	if (atomic_load(&generation) != before) {
		/* A child that was forked in here does not have it. */
		atomic_store(&windows[i], NULL);
		return NULL;
	}
	return fresh + CHUNK;
}

/* The last of windows[0..last] that is mapped, or 0. */
static unsigned int find_mapped(unsigned int last)
{
	while (last &&
	       !atomic_load_explicit(&windows[last], memory_order_relaxed))
		last--;
	return last;
}

uint8_t *sp_mapping_chunk(uint64_t n)
{
	const unsigned int last = window_of(n);
	uint8_t *window = NULL;

	if (last >= WINDOWS_MAX)
		return NULL;
	for (unsigned int i = find_mapped(last); i <= last; i++) {
		window =
			atomic_load_explicit(&windows[i], memory_order_acquire);
		if (!window && i)
			window = map_window(i);
		if (!window)
			return NULL; /* the first: a child, forked in here */
	}
	return window + (n - window_start(last)) * CHUNK;
}

/* Is there an answer that counts? */
static bool hold(uint8_t *at, uint64_t bytes, int tries)
{
	uint64_t before = sp_clock_now_ns();

	for (; tries && sp_outfile_hold(at, bytes); tries--) {
		uint64_t after = sp_clock_now_ns();

		if (after - before < HOLD_NS || sp_outfile_may_be_slow())
			return true;
		before = after;
	}
	return false;
}

/* Without one the disk is left alone for a while. */
bool sp_mapping_hold(uint8_t *at, uint64_t bytes)
{
	if (!moves)
		return true;
	if (sp_clock_now_ns() >=
	    atomic_load_explicit(&no_room_ns, memory_order_relaxed)) {
		if (hold(at, bytes, HOLD_TRIES))
			return true;
		atomic_store_explicit(&no_room_ns,
				      sp_clock_now_ns() + NO_ROOM_NS,
				      memory_order_relaxed);
		atomic_store(&is_unsaid, true);
	}
	sp_diag_lose(SP_LOSS_PAGE, 1);
	return false;
}

bool sp_mapping_hold_to_say_so(uint8_t *at, uint64_t bytes, bool is_end)
{
	return (atomic_exchange(&is_unsaid, false) || is_end) &&
	       hold(at, bytes, LAST_TRIES);
}

void sp_mapping_ask_again(void)
{
	sp_diag_forget(SP_LOSS_PAGE);
	atomic_store(&no_room_ns, 0);
}
