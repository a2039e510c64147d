/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/unwind/modules.h"

/*
 * Which interpreter of Python there is, and how its structures are laid out.
 */
#define SP_PYTHON_NONE UINT16_MAX

/* Offsets of members; SP_PYTHON_NONE: there is no such member. */
struct sp_python_layout {
	uint16_t ending_thread; /* of the interpreter's state */
	uint16_t thread_record; /* of a thread: the record of its loop */
	uint16_t thread_frame;  /* or its innermost frame */
	uint16_t thread_id;
	uint16_t record_frame, record_previous;
	uint16_t frame_code, frame_previous, frame_instruction;
	uint16_t frame_is_entry, frame_owner;
	uint16_t code_file, code_name, code_table, code_line, code_bytes;
	uint16_t object_type, text_state, text_ascii, text_other;
	uint16_t bytes_length, bytes_data;
	uint16_t text_length;
};

struct sp_python_interpreter {
	struct sp_python_layout layout;
	struct sp_module_entry *module;
	uint32_t module_id;         /* its entry may become another object's */
	const char *state;          /* of the whole interpreter */
	void *(*this_thread)(void); /* needs no lock; NULL: it has none */
	uintptr_t type_of_code;     /* what code objects have as their type */
};

/*
 * The interpreter that the object is; false: it is none, or it cannot be read.
 * Then *unread (8 bytes) is its version, such as "3.12", and of one before 3.11
 * "3.10".  Context: sampled.
 */
bool sp_python_layout_find(struct sp_module_entry *e,
			   struct sp_python_interpreter *ret, char *unread);
