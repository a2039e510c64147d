/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/layout.h"

/*
 * The records inside a chunk (docs/format.md):
 *
 *   type u8 | payload bytes varint | payload | check u16
 *
 * The check is 16 bits of a hash that runs on through the chunk, so that
 * damage is noticed by the record itself and by every one after it.
 */

/* What later records of a chunk are relative to; zero at its beginning, but for
 * what the file says. */
struct sp_chunk_state {
	uint64_t hash;
	uint64_t time_ns;
	uint64_t sample_id;
	uint64_t freed_id; /* of the last FREE */
	uint64_t address;
	uint64_t period_bytes;
	uint64_t thread;
	uint64_t stack;
	bool has_stack_steps; /* of the file: SP_HEADER_STACK_STEPS */
};

struct sp_record_info {
	const char *key; /* not terminated: see the length */
	size_t key_bytes;
	const char *value;
	size_t value_bytes;
};

struct sp_record_module {
	uint64_t id; /* >= 1 */
	uint64_t start_pc;
	uint64_t end_pc;
	uint64_t bias; /* modulo 2^64 */
	uint64_t flags;
	const uint8_t *build_id;
	size_t build_id_bytes;
	const char *path;
	size_t path_bytes;
};

struct sp_record_frame {
	uint64_t module; /* 32 bits; 0: offset is the address itself */
	uint64_t offset;
};

struct sp_record_stack {
	uint64_t id;                          /* >= 1 */
	uint64_t flags;                       /* SP_STACK_* */
	const struct sp_record_frame *frames; /* innermost first */
	size_t n_frames;                      /* <= SP_FORMAT_FRAMES_MAX */
};

struct sp_record_thread {
	uint64_t index;
	uint64_t tid;
	uint64_t time_ns;
	const char *name;
	size_t name_bytes;
};

struct sp_record_thread_end {
	uint64_t index;
	uint64_t time_ns;
	uint64_t alloc_bytes;
	uint64_t alloc_objects;
	const char *name;
	size_t name_bytes;
};

/* The first byte of a sample's payload: its entry point and what is set. */
enum sp_sample_head {
	SP_SAMPLE_ENTRY = 0x1f,  /* enum sp_entry */
	SP_SAMPLE_THREAD = 0x20, /* not the chunk's last thread: it follows */
	SP_SAMPLE_PERIOD = 0x40, /* not the chunk's last period: it follows */
	SP_SAMPLE_AGAIN = 0x80,  /* is_again */
};

struct sp_record_sample {
	uint64_t id;
	uint64_t time_ns;
	uint64_t address;
	uint64_t size_bytes;   /* >= 1 */
	uint64_t offset_bytes; /* of the hit byte, < size_bytes */
	uint64_t period_bytes;
	uint64_t stack;  /* 0: not known */
	uint64_t thread; /* index */
	uint8_t entry;   /* enum sp_entry */
	/* An earlier segment of the file had it: another has it, too, so that
	 * the earlier one can be discarded. */
	bool is_again;
};

/* The first byte of a free's payload. */
enum sp_free_head {
	SP_FREE_HEAD_THREAD = 0x01, /* as SP_SAMPLE_THREAD */
	SP_FREE_HEAD_AGE = 0x02,    /* the age follows */
	SP_FREE_HEAD_MISSED = 0x04, /* SP_FREE_MISSED */
	SP_FREE_HEAD_RESERVED = 0xf8,
};

/* The end of a sampled object. */
struct sp_record_free {
	uint64_t id;      /* of the sample */
	uint64_t time_ns; /* when it was freed, or found to have been */
	uint64_t thread;  /* that freed it; 0: not known */
	uint64_t flags;   /* SP_FREE_* */
	bool has_age;     /* the thread that allocated it freed it */
	/* Bytes which that thread allocated in between, the object's own
	 * excluded. */
	uint64_t age_bytes;
};

/* The first byte of the payload when an address was freed. */
enum sp_free_address_head {
	SP_FREE_ADDRESS_THREAD = 0x01, /* as SP_SAMPLE_THREAD */
	SP_FREE_ADDRESS_RESERVED = 0xfe,
};

/* An object ended, a sample or not: of SP_HEADER_ADDRESSES. */
struct sp_record_free_address {
	uint64_t address;
	uint64_t time_ns;
	uint64_t thread; /* that freed it; 0: not known */
};

/* Resident memory of the process, as the kernel says. */
struct sp_record_rss {
	uint64_t time_ns;
	uint64_t rss_bytes;
};

/*
 * A moment with the exact totals of the process up to it.  Each thread is cut
 * somewhere within the call that made the mark; threads whose count could not
 * be read then may have allocated up to slack_bytes more.
 */
struct sp_record_mark {
	uint64_t number; /* 1.. in the order in which they were made */
	uint64_t kind;   /* enum sp_mark_kind, or a later one */
	uint64_t time_ns;
	uint64_t alloc_bytes;
	uint64_t alloc_objects;
	/* Of these: by threads that were not sampling. */
	uint64_t unsampled_bytes;
	uint64_t unsampled_objects;
	uint64_t slack_bytes;
	uint64_t period_bytes; /* from then on; 0: sampling is off */
	const char *name;
	size_t name_bytes; /* <= SP_FORMAT_MARK_NAME_MAX */
};

/* A mark was made so much later than it had been asked for. */
struct sp_record_asked {
	uint64_t number;  /* of the mark */
	uint64_t time_ns; /* when it was asked for */
};

/* The program has mapped anonymous memory; of what was there before, nothing is
 * any more. */
struct sp_record_map {
	uint64_t number; /* of the call, with unmappings, from 1 in order */
	uint64_t flags;  /* SP_MAP_* */
	uint64_t time_ns;
	uint64_t start;  /* start + bytes does not overflow */
	uint64_t bytes;  /* >= 1 */
	uint64_t thread; /* index; 0: not known */
	uint64_t stack;  /* 0: not known */
};

/* Of these addresses no mapping of an earlier number is there any more. */
struct sp_record_unmap {
	uint64_t number;
	uint64_t time_ns;
	uint64_t start; /* as above */
	uint64_t bytes;
	uint64_t thread;
};

/* A text that SYMBOL records name by its id. */
struct sp_record_name {
	uint64_t id; /* 1..UINT32_MAX */
	const char *text;
	size_t text_bytes; /* <= SP_FORMAT_NAME_MAX */
};

/* One of the functions at an address. */
struct sp_record_line {
	uint64_t flags;    /* SP_SYMBOL_* */
	uint32_t function; /* id of a name */
	uint32_t file;     /* likewise; 0: not known */
	uint32_t line;     /* 0: not known */
};

/* What a frame stands for. */
struct sp_record_symbol {
	struct sp_record_frame frame;       /* as in a STACK */
	const struct sp_record_line *lines; /* innermost first */
	size_t n_lines;                     /* 1..SP_FORMAT_LINES_MAX */
};

/* What a frame stands for that a program interprets. */
struct sp_record_code {
	struct sp_record_frame frame; /* as in a STACK */
	uint64_t line;                /* 32 bits; 0: not known */
	const char *function;
	size_t function_bytes; /* 1..SP_FORMAT_CODE_TEXT_MAX */
	const char *file;
	size_t file_bytes; /* 0..SP_FORMAT_CODE_TEXT_MAX; 0: not known */
};

/* The check of a fixed structure: all of its bytes before `check`, which is
 * its last eight.  `kind` keeps one structure from passing for another. */
uint64_t sp_format_check(uint64_t file_id, uint64_t kind, const void *data,
			 size_t bytes);

enum sp_check_kind {
	SP_CHECK_HEADER = 1,
	SP_CHECK_STATUS = 2,
	SP_CHECK_SLOT = 3,
	SP_CHECK_CHUNK = 4,
	SP_CHECK_CLASSES = 5,
	SP_CHECK_WINDOW = 6,
	SP_CHECK_EVENTS = 7,
	SP_CHECK_STACKS = 8,
	SP_CHECK_NAMES = 9,
};

void sp_chunk_state_init(struct sp_chunk_state *state, uint64_t file_id,
			 uint64_t chunk_index);
