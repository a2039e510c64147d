/* SPDX-License-Identifier: MIT */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/wide.h"

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
#define SP_FORMAT_MARK_NAME_MAX   64
/* The snapshot of a process that has come near its limit of memory. */
#define SP_MARK_NEAR_LIMIT   "near-limit"
#define SP_FORMAT_PERIOD_MAX (1ull << 40)

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
	uint32_t flags;   /* SP_HEADER_* */
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

/* Objects of at least sp_format_always_bytes(period) were sampled with
 * certainty. */
#define SP_HEADER_ALWAYS_LARGE 1u
/* The gap is geometric with p = 1 / period for each byte, which is a mean of
 * period - 1/2 bytes and not of the period (docs/statistics.md). */
#define SP_HEADER_LAW_DOTNET 2u
/* A FREE record follows each sampled object that was freed. */
#define SP_HEADER_FREES 4u
/* Chunks belong to segments, of which the oldest may have been discarded. */
#define SP_HEADER_SEGMENTS 8u
/* Samples and frees are in chunks of SP_CHUNK_EVENTS, the last of which says so
 * of itself, stacks in those of SP_CHUNK_STACKS. */
#define SP_HEADER_PACKED 16u
/* A SAMPLE has the difference of its stack's id to that of the last one. */
#define SP_HEADER_STACK_STEPS 32u
/* Each free of any object is recorded, by its address and not by a sample. */
#define SP_HEADER_ADDRESSES   64u
#define SP_HEADER_KNOWN_FLAGS 127u

/* ceil(period * ln 100): what misses an object of that size is less than 1 %
 * likely, so that such objects are not left to chance. */
static inline uint64_t sp_format_always_bytes(uint64_t period_bytes)
{
	sp_u128 scaled = (sp_u128)period_bytes * 4605170185988ull;

	return (uint64_t)((scaled + 999999999999ull) / 1000000000000ull);
}

#define SP_FORMAT_LOSSES 32
static_assert(SP_LOSS_COUNT <= SP_FORMAT_LOSSES, "room in the status block");

enum sp_end_kind {
	SP_END_NONE = 0, /* running, or ended without our destructor */
	SP_END_CLEAN = 1,
	SP_END_EXEC = 2, /* another program is being executed */
	/* Stored by the process that waited for this one, after its end. */
	SP_END_NO_MEMORY = 3, /* the kernel killed it, for memory */
	SP_END_EXIT = 4,      /* _exit, which runs no destructor */
	SP_END_SIGNAL = 256,  /* and more: by signal end_kind - 256 */
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
 * In the rest of page 1: orders to the running process, numbered from 1.
 * A controller, which needs write access to the file, stores an order in the
 * place of its number, then the number as `request`.  The process notices at
 * the next event of any thread, carries out the orders that wait, in turn, and
 * answers.
 */
#define SP_FORMAT_CONTROL_OFFSET (SP_FORMAT_STATUS_OFFSET + 2048u)

enum sp_control_command {
	SP_CONTROL_START = 1,
	SP_CONTROL_STOP = 2,
	SP_CONTROL_PERIOD = 3,
	SP_CONTROL_MARK = 4,
	SP_CONTROL_SNAPSHOT = 5,
	SP_CONTROL_MEMORY = 6, /* the answer is a struct sp_control_memory */
	/* Connect to the socket of that name, and wait (look.h). */
	SP_CONTROL_LOOK = 7,
	SP_CONTROL_SLABS = 8, /* the answer is a struct sp_control_slabs */
};

enum sp_allocator {
	SP_ALLOCATOR_UNKNOWN = 0, /* it has no counts */
	SP_ALLOCATOR_GLIBC = 1,
	SP_ALLOCATOR_JEMALLOC = 2,
	SP_ALLOCATOR_TCMALLOC = 3,
};

/*
 * What the allocator counts, and where the library's own memory is.  In place
 * of the order's name.
 */
struct sp_control_memory {
	uint64_t allocator;   /* enum sp_allocator, or a later one */
	uint64_t alive_bytes; /* in objects, each as it was rounded */
	uint64_t free_bytes;  /* kept for objects to come */
	/* Had from the system and not given back, without large_bytes. */
	uint64_t system_bytes;
	uint64_t large_bytes; /* of alive_bytes: objects mapped by themselves */
	uint64_t own_bytes;   /* of system_bytes: for itself, as it counts it */
	uint64_t ranges;      /* address of struct sp_control_range[n_ranges] */
	uint64_t n_ranges;
};

/* More of glibc, which has no size classes, in their place.  In bytes. */
struct sp_control_glibc {
	uint32_t n_classes; /* 0 */
	uint32_t has_more;  /* 0: an older library, the rest is zero */
	/* Of free_bytes: at the end of the main arena, and in small objects
	 * that were freed and look as if they were not. */
	uint64_t top_bytes;
	uint64_t fast_bytes;
	uint64_t fast_objects;
};

/*
 * Where the sampled objects that are alive lie in jemalloc's slabs, and what it
 * counts of all slabs.  In place of the order's name; in bytes.
 */
struct sp_control_slabs {
	uint64_t objects;   /* address of struct sp_control_object[n_objects] */
	uint64_t n_objects; /* each once or twice, in no order */
	uint64_t free_bytes;
	uint64_t alive_bytes;  /* in use, or in caches of threads */
	uint64_t cached_bytes; /* of all objects, in these caches */
	uint64_t unused[3];
};

/* regions is 1 for an object in no slab. */
struct sp_control_object {
	uint64_t address;
	uint32_t slab_bytes;
	uint16_t regions; /* of its slab */
	uint16_t free;    /* of these */
};

/* Memory of the library: anonymous, private.  No bytes: it has gone. */
struct sp_control_range {
	uint64_t start;
	uint64_t bytes;
};

static_assert(sizeof(struct sp_control_memory) == SP_FORMAT_MARK_NAME_MAX &&
		      sizeof(struct sp_control_slabs) ==
			      SP_FORMAT_MARK_NAME_MAX,
	      "an answer in the place of a name");

#define SP_FORMAT_ORDERS 8u

/* The order of that number, and its answer: it stays until the order of that
 * number + SP_FORMAT_ORDERS comes. */
struct sp_control_order {
	uint64_t number;
	uint32_t command; /* enum sp_control_command */
	uint32_t name_bytes;
	/* SP_CONTROL_PERIOD; in the answer to SP_CONTROL_MEMORY the address of
	 * uint32_t n, size classes[n] of the allocator, ascending, or of
	 * struct sp_control_glibc; 0: none. */
	uint64_t period_bytes;
	char name[SP_FORMAT_MARK_NAME_MAX];
	uint64_t asked_ns; /* when, since the start, by the wall clock */
	uint64_t result;   /* 0, or an errno */
	uint64_t time_ns;  /* when it was carried out */
};

struct sp_control {
	uint64_t request; /* number of the last order */
	/* An order of a controller that knows no queue: if `request` is the
	 * number of none in the queue. */
	uint64_t command;
	uint64_t period_bytes;
	uint64_t name_bytes;
	char name[SP_FORMAT_MARK_NAME_MAX];
	/* The last answer; `done` last. */
	uint64_t done; /* number of the order that was carried out last */
	uint64_t result;
	uint64_t time_ns;
	uint64_t orders; /* places of the queue; 0: the process knows none */
	struct sp_control_order queue[SP_FORMAT_ORDERS]; /* number modulo */
};

static_assert(sizeof(struct sp_control) == 1024, "layout is the format");

/*
 * Behind that: what is left of the samples, since old ones were discarded.  Two
 * copies like those of the status, one behind the other.  All zero: nothing was
 * discarded.
 */
#define SP_FORMAT_WINDOW_OFFSET (SP_FORMAT_STATUS_OFFSET + 3072u)

struct sp_window {
	uint64_t seq;
	uint64_t oldest; /* segment: chunks of those before it are not used */
	/* The file has all samples from that time on, and all that were alive
	 * then; exact totals up to it, as a mark has them. */
	uint64_t time_ns;
	uint64_t mark; /* number of the last mark before; 0: none */
	uint64_t alloc_bytes;
	uint64_t alloc_objects;
	uint64_t unsampled_bytes;
	uint64_t unsampled_objects;
	uint64_t slack_bytes;
	uint64_t check;
};

static_assert(sizeof(struct sp_window) == 80, "layout is the format");

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

/*
 * Size classes of the exact totals: 16 bytes wide up to 1 KiB, then four to
 * the doubling, each with its upper end; the last takes all that is larger.
 */
#define SP_FORMAT_CLASSES 252u

/* The class of an object of size_bytes >= 1. */
static inline unsigned int sp_format_class(uint64_t size_bytes)
{
	uint64_t v = size_bytes - 1;
	unsigned int e, class;

	if (size_bytes <= 1024)
		return (unsigned int)(v >> 4);
	e = 63 - (unsigned int)__builtin_clzll(v);
	class = 64 + (e - 10) * 4 + (unsigned int)((v >> (e - 2)) & 3);
	return class < SP_FORMAT_CLASSES ? class : SP_FORMAT_CLASSES - 1;
}

/* The largest size of a class; UINT64_MAX for the last. */
static inline uint64_t sp_format_class_max(unsigned int class)
{
	unsigned int e = 10 + (class - 64) / 4;

	if (class < 64)
		return (class + 1) * 16;
	if (class >= SP_FORMAT_CLASSES - 1)
		return UINT64_MAX;
	return (5ull + (class - 64) % 4) << (e - 2);
}

/* Totals of one thread slot by size class, two copies like the slot's own.
 * Their sums tell a torn copy. */
struct sp_class_total {
	uint64_t bytes;
	uint64_t objects;
};

struct sp_class_page {
	uint64_t seq;
	uint64_t slot;
	uint64_t alloc_bytes;   /* sum over the classes */
	uint64_t alloc_objects; /* likewise */
	uint64_t check;         /* of the four fields above */
	struct sp_class_total classes[SP_FORMAT_CLASSES];
};

static_assert(sizeof(struct sp_class_page) <= SP_FORMAT_PAGE_BYTES,
	      "a copy has a page");

/* A chunk of kind SP_CHUNK_CLASSES: after its header's page, two pages for
 * each of the slots it has. */
#define SP_FORMAT_CLASS_SLOTS 7u

#define SP_FORMAT_CHUNK_MAGIC 0x6b6e6863u /* "chnk" */

enum sp_chunk_kind {
	SP_CHUNK_RECORDS = 1, /* unknown kinds are passed over */
	SP_CHUNK_CLASSES = 2,
	SP_CHUNK_SYMBOLS = 3, /* records that name frames */
	SP_CHUNK_EVENTS = 4,  /* samples and frees in columns */
	SP_CHUNK_STACKS = 5,  /* call stacks in columns */
	SP_CHUNK_NAMES = 6,   /* what names their frames, in columns */
};

struct sp_chunk_header {
	uint32_t magic;
	uint32_t kind;
	uint64_t index; /* sp_format_chunk_index() */
	uint64_t check;
};

/* Number of the chunk in the file, and of its segment; 0: permanent. */
static inline uint64_t sp_format_chunk_index(uint64_t n, uint32_t segment)
{
	return n | (uint64_t)segment << 32;
}

#define SP_FORMAT_CHUNK_RECORDS_OFFSET sizeof(struct sp_chunk_header)

/* The id that the library gives a stack: where in the file its record begins.
 * No two stacks in the file have the same id at the same time, and the writer
 * finds the record by it.  For readers it is a number. */
#define SP_FORMAT_STACK_CHUNKS 65536u
static inline uint32_t sp_format_stack_id(uint64_t chunk, size_t offset)
{
	return (uint32_t)(chunk << 16 | offset);
}

static_assert(SP_FORMAT_CHUNK_BYTES <= 1u << 16, "an offset has 16 bits");

/*
 * The columns of a chunk of events, in this order behind its struct
 * sp_events_header; docs/format.md says what is in them.
 */
enum sp_events_column {
	SP_COLUMN_WHAT,   /* of each event: twice its site, + 1 for a free */
	SP_COLUMN_SITE,   /* of each new site: stack, entry point */
	SP_COLUMN_SIZE,   /* of each sample */
	SP_COLUMN_TIME,   /* how many events, spread over how many ns */
	SP_COLUMN_THREAD, /* the exceptions among the events ... */
	SP_COLUMN_ID,     /* ... the samples ... */
	SP_COLUMN_PERIOD,
	SP_COLUMN_OFFSET,
	SP_COLUMN_ORDER, /* ... and the frees */
	SP_COLUMN_AGE,
	SP_EVENTS_COLUMNS
};

struct sp_events_header {
	uint64_t first; /* events in the chunks before */
	uint32_t n_events;
	uint32_t is_last; /* 1: nothing comes after it; else 0 */
	uint32_t column_bytes[SP_EVENTS_COLUMNS];
	/* Of the last, else 0: what the recorded file had, and is not here. */
	uint64_t unmatched_frees;
	uint64_t unfinished;
	uint64_t check; /* of all before, and of the columns */
};

static_assert(sizeof(struct sp_events_header) == 80, "layout is the format");

/* Likewise of a chunk of stacks. */
enum sp_stacks_column {
	SP_COLUMN_STACK, /* of each stack: id, flags, caller, frames */
	SP_COLUMN_FRAME, /* of each of these frames: its place */
	SP_COLUMN_PLACE, /* of each new place: module, offset */
	SP_STACKS_COLUMNS
};

struct sp_stacks_header {
	uint64_t first; /* stacks in the chunks before */
	uint32_t n_stacks;
	uint32_t column_bytes[SP_STACKS_COLUMNS];
	uint64_t check; /* of all before, and of the columns */
};

static_assert(sizeof(struct sp_stacks_header) == 32, "layout is the format");

/* Most frames of all stacks of a chunk: what is shared is not, in memory. */
#define SP_FORMAT_CHUNK_FRAMES_MAX (1u << 18)

/* Likewise of a chunk of names, which come after all stacks. */
enum sp_names_column {
	SP_COLUMN_LENGTH,   /* of each text: bytes */
	SP_COLUMN_TEXT,     /* these bytes */
	SP_COLUMN_LINES,    /* of each place: how many */
	SP_COLUMN_FLAGS,    /* of each line: what is not as expected */
	SP_COLUMN_FUNCTION, /* of each line: text */
	SP_COLUMN_FILE,
	SP_COLUMN_LINE,
	SP_NAMES_COLUMNS
};

struct sp_names_header {
	uint64_t first; /* places in the chunks before */
	uint32_t n_places;
	uint32_t n_texts;
	uint32_t column_bytes[SP_NAMES_COLUMNS];
	uint32_t zero;
	uint64_t check; /* of all before, and of the columns */
};

static_assert(sizeof(struct sp_names_header) == 56, "layout is the format");

/* In the AGE column. */
#define SP_AGE_KNOWN  1u /* the difference to what was expected follows */
#define SP_AGE_MISSED 2u

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
	SP_RECORD_FREE = 7,
	SP_RECORD_RSS = 8,
	/* 9 is in files as that of a later writer, and stays unknown. */
	SP_RECORD_NAME = 10,
	SP_RECORD_SYMBOL = 11,
	SP_RECORD_MARK = 12,
	SP_RECORD_ASKED = 13,
	SP_RECORD_FREE_ADDRESS = 14,
	SP_RECORD_MAP = 15,
	SP_RECORD_UNMAP = 16,
	SP_RECORD_CODE = 17,
};

/* Flags of a MAP record. */
#define SP_MAP_NO_ACCESS 1u /* PROT_NONE: address space alone */
#define SP_MAP_MOVED     2u /* by mremap */
#define SP_MAP_OPENED    4u /* by mprotect, of what had been without access */

/* Smaller mappings have no record of their own. */
#define SP_FORMAT_MAP_BYTES_MIN 65536u

/* What a MARK record is about. */
enum sp_mark_kind {
	SP_MARK_PHASE = 1,    /* the phase `name` begins */
	SP_MARK_SAMPLING = 2, /* sampling starts, stops or changes its period */
	SP_MARK_SNAPSHOT = 3, /* a moment called `name` */
	SP_MARK_END = 4,      /* the process ends in an orderly way */
};

/* Flags of a FREE record. */
#define SP_FREE_MISSED 1u /* the free was not seen: its address came back */

/* Flags of a STACK record. */
#define SP_STACK_TRUNCATED   1u /* deeper than the depth limit */
#define SP_STACK_CALLER_ONLY 2u /* it was not walked */
#define SP_STACK_NO_POINTER  4u /* ends where no caller can be found */

/* Flags of a line of a SYMBOL record. */
#define SP_SYMBOL_INLINED  1u  /* inlined into the function of the next line */
#define SP_SYMBOL_FALLBACK 2u  /* the function is not known: module+address */
#define SP_SYMBOL_CLONE    4u  /* its symbol has a suffix of the compiler's */
#define SP_SYMBOL_LACKS    8u  /* of the first: inlined ones may be missing */
#define SP_SYMBOL_CALLS    16u /* of the first: it calls a wrapper there */

/* A NAME's text; lines of a SYMBOL. */
#define SP_FORMAT_NAME_MAX  32768u
#define SP_FORMAT_LINES_MAX 64u

/* Texts of a CODE record, each of them. */
#define SP_FORMAT_CODE_TEXT_MAX 1024u

/* The object that has no machine code: its frames are lines of a Python
 * program, by numbers that CODE records explain. */
#define SP_FORMAT_PYTHON "[python]"

/* Flags of a MODULE record. */
#define SP_MODULE_MAIN 1u /* the executable */
