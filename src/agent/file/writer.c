/* SPDX-License-Identifier: MIT */
#include "agent/file/writer.h"

#include <errno.h>
#include <string.h>

#include "agent/file/chunks.h"
#include "agent/file/mapping.h"
#include "agent/file/outfile.h"
#include "agent/file/ring.h"
#include "agent/sys/clock.h"
#include "agent/sys/diag.h"
#include "agent/sys/sys.h"
#include "agent/thread/inside.h"
#include "agent/thread/lease.h"
#include "format/encode.h"

#include "agent/sys/poison.h"

#define CHUNK          SP_FORMAT_CHUNK_BYTES
#define POPULATE       SP_CHUNKS_POPULATE
#define END_SPINS      100000u /* some milliseconds */
#define LEASE_NS       1000000000u
#define SLOTS_PER_PAGE (SP_FORMAT_PAGE_BYTES / sizeof(struct sp_slot))

enum { CLOSED, OPEN, FAILED };

static _Atomic int state; /* OPEN is stored with release after the header */
static sp_inside_lock opening;
static struct sp_writer_options facts;

/* A thread that is stopped for long in the middle of a publication, and then
 * goes on, may spoil one of the two copies until the next publication. */
static _Atomic uint64_t status_busy; /* lease */
static _Atomic uint64_t status_seq;
static _Atomic uint64_t end_kind;
/* The sp_thread of one that was about to execute another program, and has not
 * published since; or NULL. */
static _Atomic(const void *) executing;
static _Atomic uint32_t slot_pages; /* bit set: backed by storage */

/* Class totals: the chunk of each group of slots, made with the first. */
#define CLASS_GROUPS (SP_FORMAT_SLOTS / SP_FORMAT_CLASS_SLOTS)
static_assert(SP_FORMAT_SLOTS % SP_FORMAT_CLASS_SLOTS == 0, "whole groups");
static _Atomic(uint8_t *) class_chunks[CLASS_GROUPS];
static _Atomic uint8_t class_pages[CLASS_GROUPS]; /* bit set: backed */
static _Atomic uint64_t class_begun[CLASS_GROUPS];
static _Atomic uint64_t class_busy; /* lease of making a chunk */

bool sp_writer_is_open(void)
{
	return atomic_load_explicit(&state, memory_order_acquire) == OPEN;
}

bool sp_writer_has_failed(void)
{
	return atomic_load_explicit(&state, memory_order_relaxed) == FAILED;
}

uint64_t sp_writer_file_id(void)
{
	return facts.file_id;
}

uint64_t sp_writer_time_of(uint64_t clock_ns)
{
	return clock_ns - facts.start_clock_ns;
}

uint64_t sp_writer_time(void)
{
	return sp_writer_time_of(sp_clock_now_ns());
}

uint64_t sp_writer_time_of_wall(uint64_t since_start_ns)
{
	const struct sp_clock_both both = sp_clock_both();
	const uint64_t now_ns = sp_writer_time_of(both.now_ns);
	const uint64_t ago_ns =
		both.wall_ns - facts.start_unix_ns - since_start_ns;

	return ago_ns < now_ns ? now_ns - ago_ns : now_ns;
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
	h.flags = facts.flags | SP_HEADER_STACK_STEPS;
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
	atomic_thread_fence(memory_order_release);
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
		atomic_store_explicit(&class_begun[i], 0, memory_order_relaxed);
		atomic_store_explicit(&class_pages[i], 0, memory_order_relaxed);
	}
	atomic_store(&class_busy, 0);
}

static uint64_t end_kind_now(void)
{
	const uint64_t kind =
		atomic_load_explicit(&end_kind, memory_order_relaxed);

	return !kind && atomic_load(&executing) ? SP_END_EXEC : kind;
}

static void write_status(uint8_t *base, uint64_t threads)
{
	struct sp_status s;
	uint8_t *to;

	memset(&s, 0, sizeof(s));
	s.seq = 1 + atomic_fetch_add(&status_seq, 1);
	s.end_kind = end_kind_now();
	s.time_ns = sp_writer_time();
	s.chunks = sp_ring_extent();
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

static int open_file(const struct sp_writer_options *options)
{
	struct sp_control *control;
	const struct sp_outfile_limit limit = {options->max_file_bytes,
					       options->room_share};
	struct sp_outfile file;
	int err;

	facts = *options;
	err = sp_outfile_create(facts.pid, facts.process_start_ticks, &limit,
				SP_MAPPING_FIRST_BYTES, &file);
	if (err)
		return err;
	sp_mapping_begin(&file);
	err = sp_outfile_begin(file.base, POPULATE);
	if (err) {
		sp_outfile_discard();
		return err;
	}
	atomic_store(&slot_pages,
		     (1u << (POPULATE / SP_FORMAT_PAGE_BYTES - 2)) - 1);
	sp_chunks_begin(facts.file_id, file.limit / CHUNK,
			!(facts.flags & SP_HEADER_ADDRESSES));
	forget_class_chunks();
	control = (struct sp_control *)(file.base + SP_FORMAT_CONTROL_OFFSET);
	control->orders = SP_FORMAT_ORDERS;
	/* Who has room for nothing more has said so. */
	write_status(file.base, 0);
	write_header(file.base, file.limit);
	return 0;
}

int sp_writer_open(const struct sp_writer_options *options)
{
	uint32_t before = sp_mapping_generation();
	int err;

	if (!sp_inside_hold(&opening))
		return -EBUSY;
	if (atomic_load(&state) != CLOSED) {
		sp_inside_give(&opening);
		return sp_writer_is_open() ? 0 : -EIO;
	}
	err = open_file(options);
	if (sp_mapping_generation() != before) {
		/* A child that was forked in here: the file is the parent's. */
		sp_mapping_drop();
		return -EBUSY;
	}
	/* Before what is asked next: see sp_recorder_describe_late. */
	atomic_store(&state, err ? FAILED : OPEN);
	sp_inside_give(&opening);
	return err;
}

void sp_writer_give_left(void)
{
	sp_inside_give_left(&opening);
	sp_lease_give_left(&status_busy);
	sp_lease_give_left(&class_busy);
}

void sp_writer_reset(void)
{
	atomic_store(&state, CLOSED);
	atomic_store(&opening, NULL);
	sp_mapping_reset();
	sp_chunks_reset();
	atomic_store(&status_busy, 0);
	atomic_store(&status_seq, 0);
	atomic_store(&end_kind, SP_END_NONE);
	atomic_store(&executing, NULL);
}

void sp_writer_detach(void)
{
	sp_mapping_detach();
}

bool sp_writer_append(struct sp_lane *lane, const struct sp_record *record)
{
	return sp_chunks_append(lane, record);
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
		.path = e->path,
		.path_bytes = strlen(e->path),
	};
	return sp_writer_append(lane, &r);
}

void sp_writer_module(struct sp_lane *lane, struct sp_module_entry *e)
{
	/* Zero means "in no file". */
	uint32_t now = sp_mapping_generation() + 1;

	if (atomic_load_explicit(&e->written, memory_order_acquire) == now)
		return;
	if (append_module(lane, e))
		atomic_store_explicit(&e->written, now, memory_order_release);
	else
		sp_diag_lose(SP_LOSS_RECORD_DROPPED, 1);
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

static bool hold_status(uint8_t *at)
{
	const bool is_end = end_kind_now() != SP_END_NONE;
	const bool has_all = !sp_diag_lost(SP_LOSS_PAGE);

	if (sp_mapping_hold(at, SP_FORMAT_PAGE_BYTES))
		return true;
	if (!sp_mapping_hold_to_say_so(at, SP_FORMAT_PAGE_BYTES, is_end))
		return false;
	/* It had no room but for this. */
	if (is_end && has_all)
		sp_diag_forget(SP_LOSS_PAGE);
	return true;
}

/* The holder of the page gives it back soon, or has left it by siglongjmp.  If
 * the wait is in vain, it can spoil only one of the copies. */
static bool publish_header(uint64_t threads, unsigned int spins_max)
{
	uint8_t *base = sp_mapping_base();
	bool is_written;
	unsigned int spins = 0;
	uint64_t token;

	if (!sp_writer_is_open())
		return false;
	while (!(token = sp_lease_take(&status_busy, LEASE_NS)) &&
	       spins < spins_max) {
		sp_arch_pause();
		spins++;
	}
	if (!token && !spins_max)
		return false;
	/* No base: a child, forked in here. */
	is_written = base && hold_status(base + SP_FORMAT_STATUS_OFFSET);
	if (is_written)
		write_status(base, threads);
	sp_lease_give(&status_busy, token);
	return is_written;
}

void sp_writer_publish(uint64_t threads)
{
	if (atomic_load(&executing) == &sp_thread)
		atomic_store(&executing, NULL);
	publish_header(threads, 0);
}

/* A child of vfork is another process. */
void sp_writer_leave(uint64_t threads, bool is_exec)
{
	is_exec = is_exec && (uint64_t)SP_SYS0(getpid) == facts.pid;
	if (is_exec)
		atomic_store(&executing, &sp_thread);
	publish_header(threads, is_exec ? END_SPINS : 0);
}

/* Only a reader that knows of the end takes a short file for whole. */
void sp_writer_end(uint64_t threads, bool may_shorten)
{
	uint64_t chunks = 0;

	if (!sp_writer_is_open())
		return;
	if (may_shorten)
		chunks = sp_chunks_end();
	atomic_store_explicit(&end_kind, SP_END_CLEAN, memory_order_relaxed);
	if (publish_header(threads, END_SPINS) && may_shorten)
		sp_outfile_shorten(chunks * CHUNK);
}

struct sp_slot *sp_writer_slot(unsigned int i)
{
	uint8_t *base = sp_mapping_base();
	unsigned int page = i / SLOTS_PER_PAGE;
	uint8_t *at;

	if (!sp_writer_is_open() || !base || i >= SP_FORMAT_SLOTS)
		return NULL;
	at = base + SP_FORMAT_SLOTS_OFFSET;
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
	return sp_mapping_hold(at, sizeof(struct sp_slot))
		       ? (struct sp_slot *)at
		       : NULL;
}

struct sp_control *sp_writer_control(void)
{
	uint8_t *base = sp_mapping_base();

	if (!sp_writer_is_open() || !base)
		return NULL;
	return (struct sp_control *)(base + SP_FORMAT_CONTROL_OFFSET);
}

bool sp_writer_hold_control(struct sp_control *block)
{
	return sp_mapping_hold((uint8_t *)block, sizeof(*block));
}

/* The chunk of a group of slots; NULL: not to be had, or not now. */
static uint8_t *class_chunk(unsigned int group)
{
	uint8_t *chunk = atomic_load_explicit(&class_chunks[group],
					      memory_order_acquire);
	uint64_t token;

	if (chunk)
		return chunk;
	token = sp_lease_take(&class_busy, LEASE_NS);
	if (!token)
		return NULL;
	chunk = atomic_load_explicit(&class_chunks[group],
				     memory_order_acquire);
	if (!chunk) {
		uint8_t *fresh =
			sp_chunks_take_size_counts(&class_begun[group]);

		if (!fresh)
			sp_diag_lose(SP_LOSS_CLASS_TOTALS, 1);
		else if (atomic_compare_exchange_strong(&class_chunks[group],
							&chunk, fresh))
			chunk = fresh;
	}
	sp_lease_give(&class_busy, token);
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
		return sp_mapping_hold(at, 2 * SP_FORMAT_PAGE_BYTES) ? at
								     : NULL;
	if (!sp_mapping_hold(at, 2 * SP_FORMAT_PAGE_BYTES) ||
	    !sp_outfile_populate(at, 2 * SP_FORMAT_PAGE_BYTES)) {
		sp_diag_lose(SP_LOSS_CLASS_TOTALS, 1);
		return NULL;
	}
	atomic_fetch_or_explicit(&class_pages[group], (uint8_t)(1u << pair),
				 memory_order_relaxed);
	return at;
}
