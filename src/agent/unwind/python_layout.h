/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/unwind/python.h"

/*
 * Which interpreter of Python there is, and how its structures are laid out.
 */
#define SP_PYTHON_NONE UINT16_MAX

/* What leads from invocations of the interpreter's loop, which are frames of
 * the C stack, to the frames of Python that each runs. */
enum sp_python_way {
	SP_PYTHON_BY_OWNER, /* 3.12: a frame in the C frame, behind those */
	SP_PYTHON_BY_ENTRY, /* 3.11: a record in the C frame, and a mark */
	/* Before, each runs one frame: a record in the C frame, or nothing. */
	SP_PYTHON_BY_RECORD, /* 3.10 */
	SP_PYTHON_BY_LOOP,   /* 3.9 */
};

/* The form of a table of lines. */
enum sp_python_lines {
	SP_PYTHON_LOCATIONS, /* 3.11 */
	SP_PYTHON_RANGES,    /* 3.10: pairs of a range's length and a step */
	SP_PYTHON_STEPS,     /* 3.9: pairs of a distance, and a step then */
};

/* Offsets of members; SP_PYTHON_NONE: there is no such member. */
struct sp_python_layout {
	enum sp_python_way way;
	enum sp_python_lines lines;
	uint16_t ending_thread; /* of the interpreter's state */
	uint16_t thread_record; /* of a thread: the record of its loop */
	uint16_t thread_root;   /* or what is in its place before any loop */
	uint16_t thread_frame;  /* or its innermost frame */
	uint16_t thread_id;
	uint16_t record_frame, record_previous;
	uint16_t frame_code, frame_previous, frame_instruction;
	uint16_t frame_is_entry, frame_owner;
	uint16_t
		frame_copy; /* without a lock: which copy of the code it runs */
	uint16_t code_file, code_name, code_table, code_line, code_bytes;
	uint16_t code_copies;
	uint16_t object_type, text_state, text_ascii, text_other;
	uint16_t text_state_bit; /* the first that matters */
	uint16_t bytes_length, bytes_data;
	uint16_t text_length;
};

struct sp_python_interpreter {
	struct sp_python_layout layout;
	struct sp_module_entry *module;
	uint32_t module_id;         /* its entry may become another object's */
	const char *state;          /* of the whole interpreter */
	void *(*this_thread)(void); /* needs no lock; NULL: it has none */
	/* Of one without a lock: the same, NULL while the thread may not use
	 * objects. */
	void *(*present_thread)(void);
	uintptr_t type_of_code;     /* what code objects have as their type */
	uintptr_t loop, loop_bytes; /* the function that runs a frame */
};

/*
 * The interpreter that the object is; false: it is none, or it cannot be read.
 * Then `unread` is its version, such as "3.16" or "3.16t", and of one before
 * 3.9 "3.8".  Context: sampled.
 */
bool sp_python_layout_find(struct sp_module_entry *e,
			   struct sp_python_interpreter *ret,
			   char unread[SP_PYTHON_VERSION_MAX]);
