/* SPDX-License-Identifier: MIT */
/*
 * I1  `chunks` counts the chunks handed out; chunk n belongs to the one lane
 *     that got n, until the lane takes another.
 * I2  A byte is stored to only after sp_outfile_populate has backed its page:
 *     a full disk is an error here, never a signal in the program.  Where pages
 *     move, hold() asks for that again just before each store; what is left is
 *     that the kernel writes the page out between the two.
 * I3  windows[0] maps the file's first chunks; windows[i] is mapped by whoever
 *     needs it first and published by compare-and-swap.
 */
#include "agent/writer.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "agent/diag.h"
#include "agent/outfile.h"
#include "agent/sys.h"
#include "format/encode.h"

#include "agent/poison.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000 /* Linux 4.17 */
#endif

#define CHUNK          SP_FORMAT_CHUNK_BYTES
#define POPULATE       16384u
#define WINDOW_CHUNKS  16u
#define WINDOWS_MAX    4096u   /* 4 GiB */
#define END_SPINS      100000u /* some milliseconds */
#define HOLD_TRIES     3
#define HOLD_NS        500000u      /* slower than a page that is there */
#define NO_ROOM_NS     10000000000u /* between questions */
#define SLOTS_PER_PAGE (SP_FORMAT_PAGE_BYTES / sizeof(struct sp_slot))
#define SLOT_PAGES     (SP_FORMAT_SLOTS / SLOTS_PER_PAGE)

enum { CLOSED, OPENING, OPEN, FAILED };

static _Atomic int state; /* OPEN is stored with release after the header */
static _Atomic uint32_t generation; /* of the file: tells who has records */
static _Atomic(uint8_t *) windows[WINDOWS_MAX];
static _Atomic uint64_t chunks;
static uint64_t max_chunks;
static _Atomic int full;
static bool moves;                  /* see struct sp_outfile */
static _Atomic uint64_t no_room_ns; /* until then there is none */
static struct sp_writer_options facts;

static _Atomic unsigned int status_busy; /* try-lock of the status page */
static uint64_t status_seq;
static _Atomic uint64_t end_kind;
static _Atomic uint32_t slot_pages; /* bit set: backed by storage */

/* Class totals: the chunk of each group of slots, made with the first. */
#define CLASS_GROUPS (SP_FORMAT_SLOTS / SP_FORMAT_CLASS_SLOTS)
static_assert(SP_FORMAT_SLOTS % SP_FORMAT_CLASS_SLOTS == 0, "whole groups");
static _Atomic(uint8_t *) class_chunks[CLASS_GROUPS];
static _Atomic uint8_t class_pages[CLASS_GROUPS]; /* bit set: backed */
static _Atomic unsigned int class_busy; /* try-lock of making a chunk */

bool sp_writer_is_open(void)
{
	return atomic_load_explicit(&state, memory_order_acquire) == OPEN;
}

uint64_t sp_writer_file_id(void)
{
	return facts.file_id;
}

uint64_t sp_writer_time(void)
{
	return sp_sys_now_ns() - facts.start_clock_ns;
}

static void write_header(uint8_t *base, uint64_t limit)
{
	struct sp_file_header h;
	volatile uint8_t *magic = base;

	memset(&h, 0, sizeof(h));
	memcpy(h.magic, SP_FORMAT_MAGIC, SP_FORMAT_MAGIC_BYTES);
	h.version = SP_FORMAT_VERSION;
	h.header_bytes = sizeof(h);
	h.chunk_bytes = CHUNK;
	h.flags = facts.flags;
	h.file_id = facts.file_id;
	h.pid = facts.pid;
	h.process_start_ticks = facts.process_start_ticks;
	h.start_unix_ns = facts.start_unix_ns;
	h.period_bytes = facts.period_bytes;
	h.seed = facts.seed;
	h.max_file_bytes = limit;
	h.check_in_bytes = facts.check_in_bytes;
	h.check = sp_format_check(h.file_id, SP_CHECK_HEADER, &h, sizeof(h));
	memcpy(base + 8, (const uint8_t *)&h + 8, sizeof(h) - 8);
	atomic_signal_fence(memory_order_release);
	for (int i = 7; i >= 0; i--)
		magic[i] = h.magic[i];
}

/* Here and not in sp_writer_reset: a child that was forked in the middle of
 * making a chunk finishes that first. */
static void forget_class_chunks(void)
{
	for (unsigned int i = 0; i < CLASS_GROUPS; i++) {
		atomic_store_explicit(&class_chunks[i], NULL,
				      memory_order_relaxed);
		atomic_store_explicit(&class_pages[i], 0, memory_order_relaxed);
	}
	atomic_store(&class_busy, 0);
}

static int open_file(const struct sp_writer_options *options)
{
	struct sp_outfile file;
	int err;

	facts = *options;
	err = sp_outfile_create(facts.pid, facts.max_file_bytes,
				WINDOW_CHUNKS * CHUNK, &file);
	if (err)
		return err;
	/* In this order, for sp_writer_detach. */
	atomic_store(&windows[0], file.base);
	sp_outfile_keep_from_children(file.base, file.mapped);
	if (!sp_outfile_populate(file.base, POPULATE)) {
		sp_outfile_discard();
		return -ENOSPC;
	}
	atomic_store(&slot_pages,
		     (1u << (POPULATE / SP_FORMAT_PAGE_BYTES - 2)) - 1);
	moves = file.moves;
	max_chunks = file.limit / CHUNK;
	if (max_chunks > WINDOWS_MAX * WINDOW_CHUNKS)
		max_chunks = WINDOWS_MAX * WINDOW_CHUNKS;
	atomic_store(&chunks, 1);
	forget_class_chunks();
	write_header(file.base, file.limit);
	return 0;
}

int sp_writer_open(const struct sp_writer_options *options)
{
	uint32_t before = atomic_load(&generation);
	int expected = CLOSED;
	int err;

	if (!atomic_compare_exchange_strong(&state, &expected, OPENING))
		return expected == OPEN     ? 0
		       : expected == FAILED ? -EIO
					    : -EBUSY;
	err = open_file(options);
	if (atomic_load(&generation) != before) {
		/* A child that was forked in here: the file is the parent's. */
		atomic_store(&windows[0], NULL);
		return -EBUSY;
	}
	atomic_store_explicit(&state, err ? FAILED : OPEN,
			      memory_order_release);
	return err;
}

void sp_writer_reset(void)
{
	atomic_store(&state, CLOSED);
	atomic_fetch_add(&generation, 1);
	for (unsigned int i = 0; i < WINDOWS_MAX && windows[i]; i++)
		atomic_store(&windows[i], NULL);
	atomic_store(&full, 0);
	atomic_store(&no_room_ns, 0);
	atomic_store(&status_busy, 0);
	status_seq = 0;
	atomic_store(&end_kind, SP_END_NONE);
}

/* Memory where a part of the file was mapped in the parent, unless something
 * else is there by now. */
static void cover(uint8_t *at, size_t bytes)
{
	if (at)
		sp_syscall(SYS_mmap, (long)at, (long)bytes,
			   PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
				   MAP_FIXED_NOREPLACE,
			   -1, 0);
}

void sp_writer_detach(void)
{
	for (unsigned int i = 0; i < WINDOWS_MAX; i++)
		cover(atomic_load(&windows[i]), WINDOW_CHUNKS * CHUNK);
}

/* Map window i, whose predecessor is mapped: from the predecessor's last chunk
 * on, since a mapping can only be extended from inside itself. */
static uint8_t *map_window(unsigned int i)
{
	uint32_t before = atomic_load(&generation);
	uint8_t *previous =
		atomic_load_explicit(&windows[i - 1], memory_order_acquire);
	uint8_t *none = NULL, *fresh;
	uint64_t left = max_chunks - (uint64_t)i * WINDOW_CHUNKS;
	uint64_t n = left < WINDOW_CHUNKS ? left : WINDOW_CHUNKS;

	fresh = sp_outfile_map_more(previous + (WINDOW_CHUNKS - 1) * CHUNK,
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

static uint8_t *chunk_address(uint64_t n)
{
	unsigned int last = (unsigned int)(n / WINDOW_CHUNKS);
	uint8_t *window = NULL;

	for (unsigned int i = 0; i <= last; i++) {
		window =
			atomic_load_explicit(&windows[i], memory_order_acquire);
		if (!window && i)
			window = map_window(i);
		if (!window)
			return NULL; /* the first: a child, forked in here */
	}
	return window + n % WINDOW_CHUNKS * CHUNK;
}

/* The file of that generation has reached its limit, or the disk has. */
static void stop_recording(uint32_t of)
{
	if (atomic_load(&generation) == of)
		atomic_store_explicit(&full, 1, memory_order_relaxed);
}

/*
 * May `bytes` at `at`, which are populated, be stored to now?  A file system
 * that has little room writes out what it can before it answers, and that may
 * be what it has just been asked for: so a slow answer does not count.  Without
 * a quick one it is left alone for a while.
 */
static bool hold(uint8_t *at, uint64_t bytes)
{
	uint64_t before;

	if (!moves)
		return true;
	before = sp_writer_time();
	if (before < atomic_load_explicit(&no_room_ns, memory_order_relaxed))
		return false;
	for (int i = 0; i < HOLD_TRIES && sp_outfile_hold(at, bytes); i++) {
		uint64_t after = sp_writer_time();

		if (after - before < HOLD_NS)
			return true;
		before = after;
	}
	atomic_store_explicit(&no_room_ns, before + NO_ROOM_NS,
			      memory_order_relaxed);
	return false;
}

/* A fresh chunk with a header, its first `populate` bytes backed by storage;
 * NULL: there is no file of generation `of`, or it is full. */
static uint8_t *take_chunk(enum sp_chunk_kind kind, uint64_t populate,
			   uint32_t of, uint64_t *ret_n)
{
	struct sp_chunk_header header = {SP_FORMAT_CHUNK_MAGIC, kind, 0, 0};
	uint8_t *at;

	if (!sp_writer_is_open() ||
	    atomic_load_explicit(&full, memory_order_relaxed))
		return NULL;
	header.index =
		atomic_fetch_add_explicit(&chunks, 1, memory_order_relaxed);
	at = header.index < max_chunks ? chunk_address(header.index) : NULL;
	if (!at || !sp_outfile_populate(at, populate)) {
		stop_recording(of);
		return NULL;
	}
	header.check = sp_format_check(facts.file_id, SP_CHECK_CHUNK, &header,
				       sizeof(header));
	memcpy(at, &header, sizeof(header));
	*ret_n = header.index;
	return at;
}

/* Give the lane a fresh chunk. */
static bool next_chunk(struct sp_lane *lane)
{
	/* Read first: in a child that was forked in here, it is the parent's,
	 * and the chunk is never used. */
	uint32_t now = atomic_load_explicit(&generation, memory_order_relaxed);
	uint64_t n;

	lane->chunk = take_chunk(SP_CHUNK_RECORDS, POPULATE, now, &n);
	if (!lane->chunk)
		return false;
	lane->generation = now;
	lane->at = SP_FORMAT_CHUNK_RECORDS_OFFSET;
	lane->populated = POPULATE;
	sp_chunk_state_init(&lane->state, facts.file_id, n);
	return true;
}

static bool has_chunk(const struct sp_lane *lane)
{
	return lane->chunk &&
	       lane->generation ==
		       atomic_load_explicit(&generation, memory_order_relaxed);
}

/* More of the lane's chunk, or another chunk. */
static bool more_room(struct sp_lane *lane)
{
	if (!has_chunk(lane) || lane->populated == CHUNK)
		return next_chunk(lane);
	if (!sp_outfile_populate(lane->chunk + lane->populated, POPULATE)) {
		stop_recording(lane->generation);
		return false;
	}
	lane->populated += POPULATE;
	return true;
}

static bool hold_lane(const struct sp_lane *lane)
{
	if (hold(lane->chunk + lane->at, lane->populated - lane->at))
		return true;
	stop_recording(lane->generation);
	return false;
}

bool sp_writer_append(struct sp_lane *lane, const struct sp_record *record)
{
	/* At most: the rest of one chunk, then all of another. */
	for (unsigned int tries = 0; tries <= 2 * CHUNK / POPULATE; tries++) {
		struct sp_encoded e = {0, 0};

		if (has_chunk(lane) && !hold_lane(lane))
			return false;
		if (has_chunk(lane))
			e = sp_encode(&lane->state, lane->chunk + lane->at,
				      lane->populated - lane->at, record);
		if (e.bytes) {
			_Atomic uint8_t *commit =
				(_Atomic uint8_t *)(lane->chunk + lane->at);

			atomic_store_explicit(commit, e.type,
					      memory_order_release);
			lane->at += e.bytes;
			return true;
		}
		if (!more_room(lane))
			return false;
	}
	return false;
}

static bool append_module(struct sp_lane *lane, struct sp_module_entry *e)
{
	struct sp_record r = {.type = SP_RECORD_MODULE};

	r.u.module = (struct sp_record_module){
		.id = e->id,
		.start_pc = e->start,
		.end_pc = e->end,
		.bias = e->bias,
		.flags = e->id == 1 ? SP_MODULE_MAIN : 0,
		.build_id = e->build_id,
		.build_id_bytes = e->build_id_bytes,
		.path = e->name,
		.path_bytes = strlen(e->name),
	};
	return sp_writer_append(lane, &r);
}

void sp_writer_module(struct sp_lane *lane, struct sp_module_entry *e)
{
	/* Zero means "in no file". */
	uint32_t now =
		atomic_load_explicit(&generation, memory_order_relaxed) + 1;

	if (atomic_load_explicit(&e->written, memory_order_acquire) == now)
		return;
	if (append_module(lane, e))
		atomic_store_explicit(&e->written, now, memory_order_release);
	else
		sp_diag_lose(SP_LOSS_RECORD_DROPPED, 1);
}

bool sp_writer_stack(struct sp_lane *lane, uint32_t id, uint32_t flags,
		     unsigned int n)
{
	struct sp_record r = {.type = SP_RECORD_STACK};

	r.u.stack = (struct sp_record_stack){id, flags, lane->frames, n};
	return sp_writer_append(lane, &r);
}

void sp_writer_info(struct sp_lane *lane, const char *key, const char *value,
		    uint64_t value_bytes)
{
	struct sp_record r = {.type = SP_RECORD_INFO};

	r.u.info =
		(struct sp_record_info){key, strlen(key), value, value_bytes};
	if (r.u.info.value_bytes > SP_FORMAT_INFO_MAX)
		r.u.info.value_bytes = SP_FORMAT_INFO_MAX;
	if (!sp_writer_append(lane, &r))
		sp_diag_lose(SP_LOSS_RECORD_DROPPED, 1);
}

static void write_status(uint64_t threads)
{
	uint8_t *base = atomic_load_explicit(&windows[0], memory_order_relaxed);
	struct sp_status s;
	uint8_t *to;

	if (!base) /* a child, forked in here */
		return;
	if (!hold(base + SP_FORMAT_STATUS_OFFSET, SP_FORMAT_PAGE_BYTES))
		return;
	memset(&s, 0, sizeof(s));
	s.seq = ++status_seq;
	s.end_kind = atomic_load_explicit(&end_kind, memory_order_relaxed);
	s.time_ns = sp_writer_time();
	/* The counter runs on when the file is full. */
	s.chunks = atomic_load_explicit(&chunks, memory_order_relaxed);
	if (s.chunks > max_chunks)
		s.chunks = max_chunks;
	s.threads = threads;
	sp_diag_read(s.losses);
	s.check =
		sp_format_check(facts.file_id, SP_CHECK_STATUS, &s, sizeof(s));
	to = base + SP_FORMAT_STATUS_OFFSET +
	     (s.seq & 1) * SP_FORMAT_STATUS_STRIDE;
	memcpy(to, &s, sizeof(s) - sizeof(s.check));
	atomic_thread_fence(memory_order_release);
	memcpy(to + sizeof(s) - sizeof(s.check), &s.check, sizeof(s.check));
}

void sp_writer_publish(uint64_t threads)
{
	if (!sp_writer_is_open() ||
	    atomic_exchange_explicit(&status_busy, 1, memory_order_acquire))
		return;
	write_status(threads);
	atomic_store_explicit(&status_busy, 0, memory_order_release);
}

void sp_writer_end(uint64_t threads)
{
	unsigned int spins = 0;

	atomic_store_explicit(&end_kind, SP_END_CLEAN, memory_order_relaxed);
	if (!sp_writer_is_open())
		return;
	/* This must not be lost.  Whoever has the page gives it back soon, or
	 * has left it by siglongjmp; he can only spoil one of the copies. */
	while (atomic_exchange_explicit(&status_busy, 1,
					memory_order_acquire) &&
	       ++spins < END_SPINS)
		__builtin_ia32_pause();
	write_status(threads);
	atomic_store_explicit(&status_busy, 0, memory_order_release);
}

struct sp_slot *sp_writer_slot(unsigned int i)
{
	uint8_t *base = atomic_load_explicit(&windows[0], memory_order_relaxed);
	unsigned int page = i / SLOTS_PER_PAGE;
	uint8_t *at = base + SP_FORMAT_SLOTS_OFFSET;

	if (!sp_writer_is_open() || !base || i >= SP_FORMAT_SLOTS)
		return NULL;
	if (!(atomic_load_explicit(&slot_pages, memory_order_relaxed) &
	      (1u << page))) {
		if (!sp_outfile_populate(at + page * SP_FORMAT_PAGE_BYTES,
					 SP_FORMAT_PAGE_BYTES)) {
			sp_diag_lose(SP_LOSS_RECORD_DROPPED, 1);
			return NULL;
		}
		atomic_fetch_or_explicit(&slot_pages, 1u << page,
					 memory_order_relaxed);
	}
	at += i * sizeof(struct sp_slot);
	return hold(at, sizeof(struct sp_slot)) ? (struct sp_slot *)at : NULL;
}

struct sp_control *sp_writer_control(void)
{
	uint8_t *base = atomic_load_explicit(&windows[0], memory_order_relaxed);

	if (!sp_writer_is_open() || !base)
		return NULL;
	return (struct sp_control *)(base + SP_FORMAT_CONTROL_OFFSET);
}

bool sp_writer_hold_control(struct sp_control *block)
{
	return hold((uint8_t *)block, sizeof(*block));
}

/* The chunk of a group of slots; NULL: not to be had, or not now. */
static uint8_t *class_chunk(unsigned int group)
{
	uint32_t now = atomic_load_explicit(&generation, memory_order_relaxed);
	uint8_t *chunk = atomic_load_explicit(&class_chunks[group],
					      memory_order_acquire);
	uint64_t n;

	if (chunk ||
	    atomic_exchange_explicit(&class_busy, 1, memory_order_acquire))
		return chunk;
	chunk = atomic_load_explicit(&class_chunks[group],
				     memory_order_relaxed);
	if (!chunk) {
		chunk = take_chunk(SP_CHUNK_CLASSES, SP_FORMAT_PAGE_BYTES, now,
				   &n);
		if (!chunk)
			sp_diag_lose(SP_LOSS_CLASS_TOTALS, 1);
		atomic_store_explicit(&class_chunks[group], chunk,
				      memory_order_release);
	}
	atomic_store_explicit(&class_busy, 0, memory_order_release);
	return chunk;
}

uint8_t *sp_writer_class_pages(unsigned int i)
{
	unsigned int group = i / SP_FORMAT_CLASS_SLOTS;
	unsigned int pair = i % SP_FORMAT_CLASS_SLOTS;
	uint8_t *at;

	if (!sp_writer_is_open() || i >= SP_FORMAT_SLOTS)
		return NULL;
	at = class_chunk(group);
	if (!at)
		return NULL;
	at += SP_FORMAT_PAGE_BYTES + pair * 2 * SP_FORMAT_PAGE_BYTES;
	if (atomic_load_explicit(&class_pages[group], memory_order_relaxed) &
	    1u << pair)
		return hold(at, 2 * SP_FORMAT_PAGE_BYTES) ? at : NULL;
	if (!hold(at, 2 * SP_FORMAT_PAGE_BYTES) ||
	    !sp_outfile_populate(at, 2 * SP_FORMAT_PAGE_BYTES)) {
		sp_diag_lose(SP_LOSS_CLASS_TOTALS, 1);
		return NULL;
	}
	atomic_fetch_or_explicit(&class_pages[group], (uint8_t)(1u << pair),
				 memory_order_relaxed);
	return at;
}
