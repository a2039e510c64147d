/* SPDX-License-Identifier: MIT */
#include "agent/unwind/python_layout.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "agent/sys/arch.h"
#include "agent/sys/linkmap.h"

#include "agent/sys/poison.h"

#define NONE SP_PYTHON_NONE

/* Of each of these all releases have the same.  What texts and bytes are like
 * changed in 3.12 for the only time. */
#define BEFORE_3_12                                                            \
	.object_type = 8, .text_length = 16, .text_state = 32,                 \
	.text_state_bit = 2, .text_ascii = 48, .text_other = 72,               \
	.bytes_length = 16, .bytes_data = 32, .frame_copy = NONE

static const struct sp_python_layout layout_3_9 = {
	.way = SP_PYTHON_BY_LOOP,
	.lines = SP_PYTHON_STEPS,
	.ending_thread = 16,
	.thread_record = NONE,
	.thread_frame = 24,
	.thread_id = 176,
	.frame_previous = 24,
	.frame_code = 32,
	.frame_instruction = 104,
	.code_line = 40,
	.code_file = 104,
	.code_name = 112,
	.code_table = 120,
	.code_bytes = 176,
	BEFORE_3_12,
};

static const struct sp_python_layout layout_3_10 = {
	.way = SP_PYTHON_BY_RECORD,
	.lines = SP_PYTHON_RANGES,
	.ending_thread = 16,
	.thread_record = 48,
	.thread_root = 264,
	.thread_frame = 24,
	.thread_id = 176,
	.record_previous = 8,
	.frame_previous = 24,
	.frame_code = 32,
	.frame_instruction = 96,
	.code_line = 40,
	.code_file = 104,
	.code_name = 112,
	.code_table = 120,
	.code_bytes = 176,
	BEFORE_3_12,
};

static const struct sp_python_layout layout_3_11 = {
	.way = SP_PYTHON_BY_ENTRY,
	.lines = SP_PYTHON_LOCATIONS,
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
	.code_file = 112,
	.code_name = 128,
	.code_table = 136,
	.code_line = 72,
	.code_bytes = 184,
	BEFORE_3_12,
};

static const struct sp_python_layout layout_3_12 = {
	.way = SP_PYTHON_BY_OWNER,
	.lines = SP_PYTHON_LOCATIONS,
	.ending_thread = 24,
	.thread_record = 56,
	.thread_frame = NONE,
	.thread_id = 136,
	.record_frame = 0,
	.frame_code = 0,
	.frame_previous = 8,
	.frame_instruction = 56,
	.frame_owner = 70,
	.frame_copy = NONE,
	.code_file = 112,
	.code_name = 128,
	.code_table = 136,
	.code_line = 68,
	.code_bytes = 192,
	.object_type = 8,
	.text_length = 16,
	.text_state = 32,
	.text_state_bit = 2,
	.text_ascii = 40,
	.text_other = 56,
	.bytes_length = 16,
	.bytes_data = 32,
};

/*
 * What the interpreter says of itself, for debuggers, at the beginning of its
 * state: a cookie, its version, whether it has no lock, and then groups of a
 * structure's size and the offsets of its members.  All are 64-bit words.
 */
#define COOKIE       "xdebugpy"
#define WORD_NO_LOCK 2
#define WORD_ENDING  4 /* in all versions */

/* Where the groups begin that matter, and in that of a thread its number. */
static const struct groups {
	uint16_t version; /* 3.13 is 0x030d */
	uint8_t thread, thread_id, frame, code, object, bytes, text;
	/* Without the lock there are copies of code, and other texts: as it is
	 * read has been tried with this version. */
	bool is_read_unlocked;
} published[] = {
	{0x030d, 19, 5, 28, 34, 44, 64, 67, false},
	{0x030e, 22, 5, 31, 39, 50, 74, 77, true},
	{0x030f, 22, 8, 39, 47, 58, 86, 89, false},
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
	const bool has_copies = words[WORD_NO_LOCK];
	bool is_good = true;

	*ret = (struct sp_python_layout){
		.way = SP_PYTHON_BY_OWNER,
		.lines = SP_PYTHON_LOCATIONS,
		.ending_thread = take_offset(&words[WORD_ENDING], &is_good),
		.thread_record = NONE,
		.thread_frame = take_offset(&thread[4], &is_good),
		.thread_id = take_offset(&thread[g->thread_id], &is_good),
		.frame_previous = take_offset(&frame[1], &is_good),
		.frame_code = take_offset(&frame[2], &is_good),
		.frame_instruction = take_offset(&frame[3], &is_good),
		.frame_owner = take_offset(&frame[5], &is_good),
		.frame_copy =
			has_copies ? take_offset(&frame[7], &is_good) : NONE,
		.code_file = take_offset(&code[1], &is_good),
		.code_name = take_offset(&code[3], &is_good),
		.code_table = take_offset(&code[4], &is_good),
		.code_line = take_offset(&code[5], &is_good),
		.code_bytes = take_offset(&code[9], &is_good),
		.code_copies =
			has_copies ? take_offset(&code[10], &is_good) : NONE,
		.object_type = take_offset(&words[g->object + 1], &is_good),
		.bytes_length = take_offset(&words[g->bytes + 1], &is_good),
		.bytes_data = take_offset(&words[g->bytes + 2], &is_good),
		.text_state = take_offset(&text[1], &is_good),
		.text_state_bit = has_copies ? 8 : 2,
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
	if (memcmp(words, COOKIE, 8) != 0 || words[1] != version)
		return false;
	for (size_t i = 0; i < sizeof(published) / sizeof(*published); i++)
		if (published[i].version == version >> 16 &&
		    (!words[WORD_NO_LOCK] || published[i].is_read_unlocked))
			return read_groups(words, &published[i], ret);
	return false;
}

/* Of a version of two parts, such as 0x030c. */
static void note_unread(unsigned int version, bool has_lock, char *to)
{
	const unsigned int minor = version & 0xff;

	*to++ = (char)('0' + (version >> 8) % 10);
	*to++ = '.';
	if (minor > 9)
		*to++ = (char)('0' + minor / 10 % 10);
	*to++ = (char)('0' + minor % 10);
	if (!has_lock)
		*to = 't';
}

/* Those before 3.11 do not say in a variable which they are. */
static unsigned int find_version(const struct link_map *map,
				 uint64_t *ret_whole)
{
	const uint64_t *version = sp_linkmap_variable(map, "Py_Version");

	*ret_whole = version ? *version : 0;
	if (version)
		return (unsigned int)(*version >> 16);
	return sp_linkmap_find(map, "Py_NewRef")         ? 0x030a
	       : sp_linkmap_find(map, "PyFrame_GetCode") ? 0x0309
							 : 0x0308;
}

static bool choose_layout(const struct link_map *map, const uint64_t *runtime,
			  struct sp_python_layout *ret, char *unread)
{
	static const struct {
		unsigned int version;
		const struct sp_python_layout *layout;
	} known[] = {
		{0x0309, &layout_3_9},
		{0x030a, &layout_3_10},
		{0x030b, &layout_3_11},
		{0x030c, &layout_3_12},
	};
	uint64_t whole;
	const unsigned int version = find_version(map, &whole);

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (known[i].version == version) {
			*ret = *known[i].layout;
			return true;
		}
	if (read_published(runtime, whole, ret))
		return true;
	note_unread(version,
		    memcmp(runtime, COOKIE, 8) != 0 || !runtime[WORD_NO_LOCK],
		    unread);
	return false;
}

static void find_function(const struct link_map *map, const char *name,
			  void *(**ret)(void))
{
	void *found = sp_linkmap_find(map, name);

	memcpy(ret, &found, sizeof(found));
}

bool sp_python_layout_find(struct sp_module_entry *e,
			   struct sp_python_interpreter *ret,
			   char unread[SP_PYTHON_VERSION_MAX])
{
	const struct link_map *map =
		atomic_load_explicit(&e->map, memory_order_relaxed);
	const void *runtime =
		map ? sp_linkmap_variable(map, "_PyRuntime") : NULL;
	const ElfW(Sym) * loop;

	if (!runtime)
		return false;
	*ret = (struct sp_python_interpreter){
		.module = e,
		.module_id = e->id,
		.state = runtime,
		.type_of_code =
			(uintptr_t)sp_linkmap_variable(map, "PyCode_Type"),
	};
	find_function(map, "PyGILState_GetThisThreadState", &ret->this_thread);
	find_function(map, "PyThreadState_GetUnchecked", &ret->present_thread);
	loop = sp_linkmap_symbol(map, "_PyEval_EvalFrameDefault", NULL);
	if (loop) {
		ret->loop = map->l_addr + loop->st_value;
		ret->loop_bytes = loop->st_size;
	}
	return ret->this_thread && ret->type_of_code &&
	       choose_layout(map, runtime, &ret->layout, unread);
}
