/* SPDX-License-Identifier: MIT */
#include "agent/unwind/python_layout.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "agent/sys/arch.h"
#include "agent/sys/linkmap.h"

#include "agent/sys/poison.h"

#define NONE SP_PYTHON_NONE

/* 3.11: every release has the same. */
static const struct sp_python_layout layout_3_11 = {
	.ending_thread = 24,
	.thread_record = 56,
	.thread_frame = NONE,
	.thread_id = 152,
	.record_frame = 8,
	.record_previous = 16,
	.frame_code = 32,
	.frame_previous = 48,
	.frame_instruction = 56,
	.frame_is_entry = 68,
	.frame_owner = NONE,
	.code_file = 112,
	.code_name = 128,
	.code_table = 136,
	.code_line = 72,
	.code_bytes = 184,
	.object_type = 8,
	.text_length = 16,
	.text_state = 32,
	.text_ascii = 48,
	.text_other = 72,
	.bytes_length = 16,
	.bytes_data = 32,
};

/*
 * What the interpreter says of itself, for debuggers, at the beginning of its
 * state: a cookie, its version, whether it has no lock, and then groups of a
 * structure's size and the offsets of its members.  All are 64-bit words.
 */
#define COOKIE      "xdebugpy"
#define WORD_ENDING 4 /* in all versions */

/* Where the groups begin that matter. */
static const struct groups {
	uint16_t version; /* 3.13 is 0x030d */
	uint8_t thread, frame, code, object, bytes, text;
} published[] = {
	{0x030d, 19, 28, 34, 44, 64, 67},
	{0x030e, 22, 31, 39, 50, 74, 77},
};

static uint16_t take_offset(const uint64_t *word, bool *is_good)
{
	*is_good &= *word < SP_ARCH_PAGE_MIN;
	return (uint16_t)*word;
}

static bool read_groups(const uint64_t *words, const struct groups *g,
			struct sp_python_layout *ret)
{
	const uint64_t *thread = &words[g->thread], *frame = &words[g->frame],
		       *code = &words[g->code], *text = &words[g->text];
	bool is_good = true;

	*ret = (struct sp_python_layout){
		.ending_thread = take_offset(&words[WORD_ENDING], &is_good),
		.thread_record = NONE,
		.frame_is_entry = NONE,
		.thread_frame = take_offset(&thread[4], &is_good),
		.thread_id = take_offset(&thread[5], &is_good),
		.frame_previous = take_offset(&frame[1], &is_good),
		.frame_code = take_offset(&frame[2], &is_good),
		.frame_instruction = take_offset(&frame[3], &is_good),
		.frame_owner = take_offset(&frame[5], &is_good),
		.code_file = take_offset(&code[1], &is_good),
		.code_name = take_offset(&code[3], &is_good),
		.code_table = take_offset(&code[4], &is_good),
		.code_line = take_offset(&code[5], &is_good),
		.code_bytes = take_offset(&code[9], &is_good),
		.object_type = take_offset(&words[g->object + 1], &is_good),
		.bytes_length = take_offset(&words[g->bytes + 1], &is_good),
		.bytes_data = take_offset(&words[g->bytes + 2], &is_good),
		.text_state = take_offset(&text[1], &is_good),
		.text_length = take_offset(&text[2], &is_good),
		.text_ascii = take_offset(&text[3], &is_good),
	};
	/* Its UTF-8 form, and how long that is, are in between. */
	ret->text_other = (uint16_t)(ret->text_ascii + 16);
	return is_good;
}

static bool read_published(const uint64_t *words, uint64_t version,
			   struct sp_python_layout *ret)
{
	if (memcmp(words, COOKIE, 8) != 0 || words[1] != version || words[2])
		return false;
	for (size_t i = 0; i < sizeof(published) / sizeof(*published); i++)
		if (published[i].version == version >> 16)
			return read_groups(words, &published[i], ret);
	return false;
}

/* Of a version of two parts, such as 0x030c. */
static void note_unread(unsigned int version, char *to)
{
	const unsigned int minor = version & 0xff;

	*to++ = (char)('0' + (version >> 8) % 10);
	*to++ = '.';
	if (minor > 9)
		*to++ = (char)('0' + minor / 10 % 10);
	*to = (char)('0' + minor % 10);
}

/* Those before 3.11 do not say in a variable which they are. */
static bool choose_layout(const struct link_map *map, const uint64_t *runtime,
			  struct sp_python_layout *ret, char *unread)
{
	const uint64_t *version = sp_linkmap_variable(map, "Py_Version");

	if (version && *version >> 16 == 0x030b) {
		*ret = layout_3_11;
		return true;
	}
	if (version && read_published(runtime, *version, ret))
		return true;
	note_unread(version ? (unsigned int)(*version >> 16) : 0x030a, unread);
	return false;
}

bool sp_python_layout_find(struct sp_module_entry *e,
			   struct sp_python_interpreter *ret, char *unread)
{
	const struct link_map *map =
		atomic_load_explicit(&e->map, memory_order_relaxed);
	const void *runtime =
		map ? sp_linkmap_variable(map, "_PyRuntime") : NULL;
	void *get;

	if (!runtime)
		return false;
	get = sp_linkmap_find(map, "PyGILState_GetThisThreadState");
	ret->module = e;
	ret->module_id = e->id;
	ret->state = runtime;
	ret->type_of_code = (uintptr_t)sp_linkmap_variable(map, "PyCode_Type");
	memcpy(&ret->this_thread, &get, sizeof(get));
	return get && ret->type_of_code &&
	       choose_layout(map, runtime, &ret->layout, unread);
}
