/* SPDX-License-Identifier: MIT */
/*
 * Frames of Python in memory of every form, at random: the walk finds those
 * that a naive list has, with their names and lines; where something does not
 * fit, none or those further in.  Fixed seed.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include "agent/sys/diag.h"
#include "agent/unwind/python.h"
#include "agent/unwind/python_layout.h"
#include "support/agent_fixture.h"
#include "support/python_objects.h"
#include "support/test.h"

#define C_FRAMES 40
#define C_WORDS  32u /* of a frame of the C stack */

static struct sp_lane *lane;

/* ---- interpreters ---- */

struct loaded {
	struct sp_module_entry entry;
	const struct link_map *map;
	uint64_t *runtime, *version;
	void **thread;
	uintptr_t type, loop, other;
	struct sp_python_layout layout; /* chosen last */
};

static void load(const char *path, struct loaded *ret)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	static uint32_t id;

	if (!handle)
		fail_msg("%s", dlerror());
	memset(ret, 0, sizeof(*ret));
	assert_int_equal(dlinfo(handle, RTLD_DI_LINKMAP, &ret->map), 0);
	ret->runtime = dlsym(handle, "_PyRuntime");
	ret->version = dlsym(handle, "Py_Version");
	ret->thread = dlsym(handle, "false_python_thread");
	ret->type = (uintptr_t)dlsym(handle, "PyCode_Type");
	ret->loop = (uintptr_t)dlsym(handle, "_PyEval_EvalFrameDefault");
	ret->other = (uintptr_t)dlsym(handle, "false_python_other");
	ret->entry.id = ++id;
	ret->entry.map = ret->map;
	ret->entry.permanent = true;
	ret->entry.code_start = ret->loop < ret->other ? ret->loop : ret->other;
	ret->entry.code_end = ret->entry.code_start + 512;
}

/* A group of offsets, in words of the interpreter's description. */
static void publish(struct loaded *l, unsigned int at, const uint16_t *offsets,
		    unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		l->runtime[at + i] = offsets[i];
}

/* Offsets that no version has, so that each is read where it is said to be. */
static void describe(struct loaded *l, uint64_t version, bool has_lock)
{
	const bool is_13 = version >> 16 == 0x030d,
		   is_15 = version >> 16 == 0x030f;
	const uint16_t thread[] = {500, 0, 0, 0, 88, 96, 0, 0, 96},
		       frame[] = {128, 16, 24, 40, 0, 71, 0, 76},
		       code[] = {300, 120, 0, 136, 144, 84, 0, 0, 0, 232, 104},
		       object[] = {32, 24}, bytes[] = {40, 32, 48},
		       text[] = {56, 40, 32, 56};

	memset(l->runtime, 0, 128 * sizeof(*l->runtime));
	memcpy(l->runtime, "xdebugpy", 8);
	l->runtime[1] = version;
	l->runtime[2] = !has_lock;
	l->runtime[4] = 800;
	publish(l, is_13 ? 19 : 22, thread, 9);
	if (is_15) /* elsewhere, and something else there */
		l->runtime[22 + 5] = 24;
	publish(l, is_13 ? 28 : is_15 ? 39 : 31, frame, is_13 ? 6 : 8);
	publish(l, is_13 ? 34 : is_15 ? 47 : 39, code, is_13 ? 10 : 11);
	publish(l, is_13 ? 44 : is_15 ? 58 : 50, object, 2);
	publish(l, is_13 ? 64 : is_15 ? 86 : 74, bytes, 3);
	publish(l, is_13 ? 67 : is_15 ? 89 : 77, text, 4);
	*l->version = version;
}

/* ---- stacks ---- */

struct expected {
	const struct code *code;
	unsigned int line, run_by;
};

/* A stack of C, and what it says of Python. */
static struct scene {
	struct loaded *l;
	uintptr_t thread;
	uintptr_t c_stack[C_WORDS * C_FRAMES];
	struct sp_walk_registers c[C_FRAMES];
	void *pcs[C_FRAMES];
	struct sp_walk walk;
	struct code codes[12];
	struct expected expected[4 * C_FRAMES];
	unsigned int n, n_loops;
	uintptr_t records[C_FRAMES], frames[4 * C_FRAMES]; /* innermost first */
	unsigned int n_frames;
} scene;

/* Which copy of its code the frame runs, and where that is. */
static void choose_copy(const struct sp_python_layout *o, uintptr_t frame,
			const struct code *code, uintptr_t *instructions)
{
	uintptr_t copies;
	const uint32_t index = draw(3);

	if (o->frame_copy == SP_PYTHON_NONE || !index)
		return;
	memcpy(&copies, (void *)(code->at + o->code_copies), sizeof(copies));
	if (!copies) {
		copies = make(4 * sizeof(uintptr_t));
		put_word(copies, 3);
		for (unsigned int i = 1; i < 4; i++)
			put_word(copies + i * sizeof(uintptr_t),
				 make(2 * UNITS));
		put_word(code->at + o->code_copies, copies);
	}
	memcpy(instructions, (void *)(copies + (index + 1) * sizeof(uintptr_t)),
	       sizeof(*instructions));
	put_half(frame + o->frame_copy, index);
}

/* A frame of Python that C frame i runs, behind the last one. */
static uintptr_t make_frame(struct scene *s, unsigned int i, bool is_entry)
{
	const struct sp_python_layout *o = &s->l->layout;
	const unsigned int unit = draw(UNITS);
	const bool is_new = !draw(8);
	const struct code *code = &s->codes[draw(12)];
	uintptr_t frame = make(128), instructions = code->at + o->code_bytes;

	put_word(frame + o->frame_code, code->at);
	if (o->way >= SP_PYTHON_BY_RECORD) {
		const uint32_t last =
			o->way == SP_PYTHON_BY_LOOP ? 2 * unit : unit;

		put_half(frame + o->frame_instruction,
			 is_new ? (uint32_t)-1 : last);
	} else {
		choose_copy(o, frame, code, &instructions);
		put_word(frame + o->frame_instruction,
			 instructions + (is_new ? (uintptr_t)-2 : 2 * unit));
	}
	if (o->way == SP_PYTHON_BY_ENTRY)
		*(uint8_t *)(frame + o->frame_is_entry) = is_entry;
	if (o->way == SP_PYTHON_BY_OWNER) {
		*(uint8_t *)(frame + o->frame_owner) = (uint8_t)draw(3);
		if (!draw(3)) /* tagged */
			put_word(frame + o->frame_code, code->at | 1);
	}
	s->expected[s->n++] = (struct expected){
		code, is_new ? code->first : code->line[unit], i};
	s->frames[s->n_frames++] = frame;
	return frame;
}

static void link_frames(const struct scene *s)
{
	const struct sp_python_layout *o = &s->l->layout;

	for (unsigned int i = 0; i < s->n_frames; i++)
		put_word(s->frames[i] + o->frame_previous,
			 i + 1 < s->n_frames ? s->frames[i + 1] : 0);
}

/* The record of the loop in C frame i, with the frames that it runs. */
static void make_loop(struct scene *s, unsigned int i)
{
	const struct sp_python_layout *o = &s->l->layout;
	const bool has_one = o->way >= SP_PYTHON_BY_RECORD;
	const unsigned int n = has_one ? 1 : 1 + draw(4);
	const uintptr_t record = s->c[i].sp + 8 * draw(8);
	const unsigned int first = s->n_frames;

	s->pcs[i] = (void *)(s->l->loop + 1 + draw(256));
	s->records[s->n_loops++] = record;
	for (unsigned int k = 0; k < n; k++)
		make_frame(s, i, k == n - 1);
	if (o->way == SP_PYTHON_BY_ENTRY) {
		put_word(record + o->record_frame, s->frames[first]);
	} else if (o->way == SP_PYTHON_BY_OWNER) {
		s->frames[s->n_frames++] = record;
		*(uint8_t *)(record + o->frame_owner) = 3;
	}
}

static void set_thread(struct scene *s)
{
	const struct sp_python_layout *o = &s->l->layout;
	const uintptr_t root = s->thread + o->thread_root;

	put_word(s->thread + o->thread_id, (uintptr_t)pthread_self());
	if (o->way == SP_PYTHON_BY_ENTRY || o->way == SP_PYTHON_BY_RECORD) {
		uintptr_t next = o->way == SP_PYTHON_BY_RECORD ? root : 0;

		for (unsigned int i = s->n_loops; i--; next = s->records[i])
			put_word(s->records[i] + o->record_previous, next);
		put_word(s->thread + o->thread_record, next);
	} else if (o->thread_record != SP_PYTHON_NONE) {
		const uintptr_t record = make(32);

		put_word(record + o->record_frame, s->frames[0]);
		put_word(s->thread + o->thread_record, record);
	}
	if (o->thread_frame != SP_PYTHON_NONE)
		put_word(s->thread + o->thread_frame, s->frames[0]);
	*s->l->thread = (void *)s->thread;
}

static void make_scene(struct loaded *l)
{
	struct scene *s = &scene;

	used = 0;
	memset(s, 0, sizeof(*s));
	s->l = l;
	s->thread = make(1024);
	for (unsigned int i = 0; i < 12; i++)
		make_code(&l->layout, l->type, &s->codes[i]);
	s->walk = (struct sp_walk){
		.pcs = s->pcs, .at = s->c, .n = C_FRAMES, .is_whole = true};
	for (unsigned int i = 0; i < C_FRAMES; i++) {
		s->c[i].sp = (uintptr_t)&s->c_stack[C_WORDS * i];
		s->pcs[i] = draw(2) ? (void *)(l->other + 1 + draw(256))
				    : (void *)(memory + draw(1000));
	}
	/* Two of them at least. */
	for (unsigned int i = 0; i < C_FRAMES - 1; i++)
		if (i == 5 || i == 20 || draw(2))
			make_loop(s, i);
	link_frames(s);
	set_thread(s);
}

static void check_frame(const struct sp_python_frame *frame,
			const struct expected *expected)
{
	struct sp_python_name name;
	char function[256];

	snprintf(function, sizeof(function), "py::%s", expected->code->name);
	assert_true(frame->code == expected->code->at);
	assert_int_equal(frame->run_by, expected->run_by);
	assert_true(sp_python_name(lane, frame, &name));
	assert_int_equal(name.function_bytes, strlen(function));
	assert_memory_equal(name.function, function, name.function_bytes);
	assert_int_equal(name.file_bytes, strlen(expected->code->file));
	assert_memory_equal(name.file, expected->code->file, name.file_bytes);
	assert_int_equal(name.line, expected->line);
}

/* The first n of the expected frames are found. */
static void check_found(unsigned int n, bool is_lost)
{
	const uint64_t before = sp_diag_lost(SP_LOSS_PYTHON);
	struct sp_walk_hash hash = {1, 2};
	const struct sp_python *python =
		sp_python_walk(lane, &scene.walk, scene.walk.n, &hash);

	assert_int_equal(sp_diag_lost(SP_LOSS_PYTHON) - before, is_lost);
	assert_int_equal(python ? python->n : 0, n);
	assert_true((hash.low == 1 && hash.high == 2) == !n);
	for (unsigned int i = 0; i < n; i++)
		check_frame(&python->frames[i], &scene.expected[i]);
}

/* How many are run by C frames further in than that of loop k. */
static unsigned int further_in(unsigned int k)
{
	unsigned int n = 0;

	while (n < scene.n &&
	       (uintptr_t)&scene.c_stack[C_WORDS * scene.expected[n].run_by] +
			       8 * C_WORDS <=
		       scene.records[k])
		n++;
	return n;
}

/* The innermost function alone cannot be read; then it is no function. */
static void check_unreadable(struct loaded *l)
{
	const struct sp_python_layout *o = &l->layout;
	const struct sp_python *python;
	struct sp_walk_hash hash = {1, 2};
	const uint64_t before = sp_diag_lost(SP_LOSS_PYTHON);
	const bool is_alone =
		scene.expected[1].run_by != scene.expected[0].run_by;

	put_word(scene.frames[0] + o->frame_code, 8);
	python = sp_python_walk(lane, &scene.walk, scene.walk.n, &hash);
	assert_int_equal(python ? python->n : 0, scene.n - 1);
	assert_int_equal(sp_diag_lost(SP_LOSS_PYTHON) - before, 1);
	put_word(scene.frames[0] + o->frame_code, (uintptr_t)memory);
	python = sp_python_walk(lane, &scene.walk, scene.walk.n, &hash);
	assert_int_equal(python ? python->n : 0, scene.n - 1);
	assert_int_equal(sp_diag_lost(SP_LOSS_PYTHON) - before, 1 + is_alone);
	check_frame(&python->frames[0], &scene.expected[1]);
}

static void check_odd_ones(struct loaded *l)
{
	const struct sp_python_layout *o = &l->layout;
	const bool is_paired = o->way >= SP_PYTHON_BY_RECORD;
	const unsigned int k = 1 + draw(scene.n_loops - 1);
	const uintptr_t other = scene.thread + 8;

	/* Another thread's; none; one that the end has freed. */
	put_word(scene.thread + o->thread_id, other);
	check_found(0, true);
	put_word(scene.thread + o->thread_id, (uintptr_t)pthread_self());
	*l->thread = NULL;
	check_found(0, true);
	*l->thread = (void *)scene.thread;
	put_word((uintptr_t)l->runtime + o->ending_thread, other);
	check_found(0, true);
	put_word((uintptr_t)l->runtime + o->ending_thread, scene.thread);
	check_found(scene.n, false);
	put_word((uintptr_t)l->runtime + o->ending_thread, 0);
	/* The entry is another object's now. */
	l->entry.id += 1000;
	check_found(0, false);
	l->entry.id -= 1000;
	/* Beyond the depth. */
	scene.walk.n = 5 + scene.expected[0].run_by;
	if (o->way == SP_PYTHON_BY_LOOP && scene.n_loops > 5)
		check_found(0, true);
	scene.walk.n = C_FRAMES;
	/* Frame and loops do not go together. */
	if (is_paired) {
		put_word(scene.frames[scene.n_frames - 2] + o->frame_previous,
			 0);
		check_found(0, true);
		link_frames(&scene);
	}
	/* A record that is not in the interpreter's C frame. */
	if (!is_paired) {
		unsigned int i = (unsigned int)((scene.records[k] -
						 (uintptr_t)scene.c_stack) /
						(8 * C_WORDS));
		void *was = scene.pcs[i];

		scene.pcs[i] = memory;
		check_found(further_in(k), k + 1 < scene.n_loops);
		scene.pcs[i] = was;
	}
	/* Memory that is not there. */
	check_unreadable(l);
}

static void check_version(struct loaded *l, uint64_t version, bool has_lock)
{
	struct sp_python_interpreter in;
	char unread[SP_PYTHON_VERSION_MAX] = "";

	if (l->version)
		describe(l, version, has_lock);
	assert_true(sp_python_layout_find(&l->entry, &in, unread));
	l->layout = in.layout;
	sp_python_meet(&l->entry);
	for (unsigned int i = 0; i < test_rounds(40, 2000); i++) {
		make_scene(l);
		check_found(scene.n, false);
		check_odd_ones(l);
	}
}

static void check_unread(struct loaded *l, uint64_t version, bool has_lock,
			 const char *text)
{
	struct sp_python_interpreter in;
	char unread[SP_PYTHON_VERSION_MAX] = "";

	describe(l, version, has_lock);
	assert_int_equal(sp_python_layout_find(&l->entry, &in, unread), !*text);
	assert_string_equal(unread, text);
}

TEST(versions)
{
	struct sp_python_interpreter in;
	struct loaded l, old;
	char unread[SP_PYTHON_VERSION_MAX] = "";

	load(FALSE_PYTHON, &l);
	check_unread(&l, 0x030d0000, true, "");
	check_unread(&l, 0x030d0000, false, "3.13t");
	check_unread(&l, 0x030e0000, false, "");
	check_unread(&l, 0x030f0000, false, "3.15t");
	check_unread(&l, 0x03100000, true, "3.16");
	check_unread(&l, 0x03100000, false, "3.16t");
	check_unread(&l, 0x04000000, true, "4.0");
	/* What it says of itself makes no sense. */
	describe(&l, 0x030e0000, true);
	l.runtime[31 + 3] = 5000;
	assert_false(sp_python_layout_find(&l.entry, &in, unread));
	assert_string_equal(unread, "3.14");
	describe(&l, 0x030e0000, true);
	l.runtime[1]++;
	assert_false(sp_python_layout_find(&l.entry, &in, unread));
	/* Older ones. */
	memset(unread, 0, sizeof(unread));
	load(FALSE_PYTHON_3_8, &old);
	assert_false(sp_python_layout_find(&old.entry, &in, unread));
	assert_string_equal(unread, "3.8");
}

TEST(frames)
{
	struct loaded l[3];

	load(FALSE_PYTHON_3_9, &l[0]);
	load(FALSE_PYTHON_3_10, &l[1]);
	load(FALSE_PYTHON, &l[2]);
	check_version(&l[0], 0, true);
	check_version(&l[1], 0, true);
	check_version(&l[2], 0x030b02f0, true);
	check_version(&l[2], 0x030c03f0, true);
	check_version(&l[2], 0x030d05f0, true);
	check_version(&l[2], 0x030e04f0, true);
	check_version(&l[2], 0x030e04f0, false);
	check_version(&l[2], 0x030f02f0, true);
	assert_int_equal(sp_python_count(), 8);
	/* There is no room for more. */
	sp_diag_reset();
	sp_python_meet(&l[2].entry);
	assert_int_equal(sp_python_count(), 8);
	assert_int_equal(sp_diag_lost(SP_LOSS_PYTHON), 1);
}

static int begin(void **state)
{
	uint8_t hint = 0;
	const int r = agent_fixture_begin(state);

	sp_rng_init(&rng, 41, 1);
	lane = sp_lane_take(&hint);
	return r ? r : !lane;
}

TEST_MAIN(begin, agent_fixture_end)
