/* SPDX-License-Identifier: MIT */
#ifndef SP_FORMAT_LAYOUT_H
#define SP_FORMAT_LAYOUT_H

#include <assert.h>
#include <stdint.h>

/*
 * Every constant and fixed layout of the profile file; docs/format.md is the
 * specification.  All integers are little-endian; fixed structures are read
 * and written in place on little-endian machines only (checked below).
 *
 *   file   = chunk*            chunks of SP_FORMAT_CHUNK_BYTES
 *   chunk0 = header page, status page, thread slots
 *   chunkN = chunk header, then records
 */
#define SP_FORMAT_MAGIC           "\x89sprof\r\n"
#define SP_FORMAT_MAGIC_BYTES     8
#define SP_FORMAT_VERSION         1
#define SP_FORMAT_CHUNK_BYTES     65536u
#define SP_FORMAT_PAGE_BYTES      4096u
#define SP_FORMAT_BUILD_ID_MAX    32
#define SP_FORMAT_THREAD_NAME_MAX 16
#define SP_FORMAT_FRAMES_MAX      1024u
#define SP_FORMAT_INFO_MAX        32768u
#define SP_FORMAT_PERIOD_MAX      (1ull << 40)

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	      "the file is mapped in place and little-endian");

enum sp_loss {
#define SP_LOSS(id, name, help) SP_LOSS_##id,
#include "format/losses.def"
#undef SP_LOSS
	SP_LOSS_COUNT
};

enum sp_entry {
#define SP_ENTRY(id, name) SP_ENTRY_##id,
#include "format/entries.def"
#undef SP_ENTRY
	SP_ENTRY_COUNT
};

static_assert(SP_ENTRY_COUNT <= 32, "5 bits in a SAMPLE record");

/* "samples_no_lane", ...; NULL out of range. */
const char *sp_loss_name(unsigned int loss);
const char *sp_loss_help(unsigned int loss);
/* "malloc", ...; "?" out of range. */
const char *sp_entry_name(unsigned int entry);

/* Page 0, written once; the magic last. */
struct sp_file_header {
	uint8_t magic[SP_FORMAT_MAGIC_BYTES];
	uint32_t version;
	uint32_t header_bytes;
	uint32_t chunk_bytes;
	uint32_t flags;   /* 0 */
	uint64_t file_id; /* random; seeds every check */
	uint64_t pid;
	uint64_t
		process_start_ticks; /* field 22 of /proc/PID/stat; 0 unknown */
	uint64_t start_unix_ns; /* wall clock; times in records count from it */
	uint64_t period_bytes;
	uint64_t seed;
	uint64_t max_file_bytes;
	uint64_t check_in_bytes;
	uint64_t check; /* sp_format_check() of everything before */
};

static_assert(sizeof(struct sp_file_header) == 96, "layout is the format");

#define SP_FORMAT_LOSSES 32
static_assert(SP_LOSS_COUNT <= SP_FORMAT_LOSSES, "room in the status block");

enum sp_end_kind {
	SP_END_NONE = 0, /* running, or ended without our destructor */
	SP_END_CLEAN = 1,
};

/*
 * Page 1 holds two copies at SP_FORMAT_STATUS_STRIDE.  A publisher writes the
 * copy that `seq` selects (seq & 1), its `check` last; a reader takes the valid
 * copy with the greater seq.
 */
#define SP_FORMAT_STATUS_OFFSET SP_FORMAT_PAGE_BYTES
#define SP_FORMAT_STATUS_STRIDE 1024u

struct sp_status {
	uint64_t seq;
	uint64_t end_kind;
	uint64_t time_ns; /* of this publication, since the start */
	uint64_t chunks;  /* chunks handed out so far, chunk 0 included */
	uint64_t threads; /* threads seen so far */
	uint64_t losses[SP_FORMAT_LOSSES];
	uint64_t check;
};

/*
 * A thread slot: the exact totals of the threads that owned it, one after
 * another.  Two copies as in the status page.  Totals only grow: the process
 * total is the sum of all slots; the present owner's own part is
 * bytes - base_bytes.  Slot 0 has no owner: it takes what threads allocate
 * after their end, and threads beyond the number of slots.
 */
struct sp_slot_copy {
	uint64_t seq;
	uint64_t alloc_bytes;
	uint64_t alloc_objects;
	uint64_t base_bytes;
	uint64_t base_objects;
	uint64_t thread; /* index of the owner; 0: nobody now */
	uint64_t tid;    /* kernel's thread id of the owner */
	uint64_t check;
};

struct sp_slot {
	struct sp_slot_copy copy[2];
};

static_assert(sizeof(struct sp_slot) == 128, "layout is the format");

#define SP_FORMAT_SLOTS_OFFSET (2 * SP_FORMAT_PAGE_BYTES)
#define SP_FORMAT_SLOTS        ((SP_FORMAT_CHUNK_BYTES - SP_FORMAT_SLOTS_OFFSET) / 128)

#define SP_FORMAT_CHUNK_MAGIC 0x6b6e6863u /* "chnk" */

enum sp_chunk_kind {
	SP_CHUNK_RECORDS = 1, /* other kinds are passed over */
};

struct sp_chunk_header {
	uint32_t magic;
	uint32_t kind;
	uint64_t index;
	uint64_t check;
};

#define SP_FORMAT_CHUNK_RECORDS_OFFSET sizeof(struct sp_chunk_header)

/* Record types.  The type byte is a record's commit mark: it is stored last,
 * and zero means that the chunk ends here. */
enum sp_record_type {
	SP_RECORD_NONE = 0,
	SP_RECORD_INFO = 1,
	SP_RECORD_MODULE = 2,
	SP_RECORD_STACK = 3,
	SP_RECORD_THREAD = 4,
	SP_RECORD_THREAD_END = 5,
	SP_RECORD_SAMPLE = 6,
};

/* Flags of a STACK record. */
#define SP_STACK_TRUNCATED   1u /* deeper than the depth limit */
#define SP_STACK_CALLER_ONLY 2u /* the unwinder was not there or gave up */

/* Flags of a MODULE record. */
#define SP_MODULE_MAIN 1u /* the executable */

#endif
