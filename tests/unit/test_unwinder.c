/* SPDX-License-Identifier: MIT */
/* libunwind as the agent uses it, beside backtrace() of the C library. */
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/diag.h"
#include "agent/linkmap.h"
#include "agent/modules.h"
#include "agent/stack.h"
#include "agent/thread.h"
#include "agent/unwinder.h"
#include "agent/unwinder_imports.h"
#include "support/agent_fixture.h"

#define DEPTH_MAX 512

/* What was seen at the innermost point, by us and by the C library. */
struct trace {
	void *ours[DEPTH_MAX];
	void *theirs[DEPTH_MAX];
	int n_ours, n_theirs;
	int max;
};

static struct sp_lane *lane;

static void __attribute__((noinline)) look(struct trace *t)
{
	t->n_ours = sp_unwinder_trace(lane, t->max);
	memcpy(t->ours, lane->pcs, (size_t)t->n_ours * sizeof(t->ours[0]));
	t->n_theirs = backtrace(t->theirs, DEPTH_MAX);
}

typedef void look_fn(struct trace *t);

/* Frames of different shapes; the call is never the last thing. */
static int __attribute__((noinline))
descend(unsigned int depth, look_fn *at_end, struct trace *t)
{
	volatile char pad[64];
	int ret = 0;

	pad[depth % 64] = (char)depth;
	if (depth == 0)
		at_end(t);
	else if (depth % 3 == 0)
		ret = descend(depth - 1, at_end, t) + pad[depth % 64];
	else
		ret = descend(depth - 1, at_end, t) - pad[depth % 64];
	return ret + pad[0];
}

static int index_of(void *const *pcs, int n, const void *pc)
{
	for (int i = 0; i < n; i++)
		if (pcs[i] == pc)
			return i;
	return -1;
}

/* From the caller of look on, both see the same return addresses.  (Above it
 * are frames of the two libraries themselves.) */
static void check_same(const struct trace *t, int least)
{
	int theirs = 0, ours;

	/* The first frame below `look`'s own is the same call for both. */
	while (theirs < t->n_theirs &&
	       index_of(t->ours, t->n_ours, t->theirs[theirs]) < 0)
		theirs++;
	assert_true(theirs <= 2);
	ours = index_of(t->ours, t->n_ours, t->theirs[theirs]);
	assert_true(ours <= 3);
	assert_int_equal(t->n_ours - ours, t->n_theirs - theirs);
	assert_true(t->n_ours - ours >= least);
	assert_memory_equal(t->ours + ours, t->theirs + theirs,
			    (size_t)(t->n_ours - ours) * sizeof(void *));
}

static void test_like_backtrace(void **state)
{
	static const unsigned int depths[] = {0, 1, 2, 3, 10, 50, 200, 300};
	struct trace t;

	(void)state;
	for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
		t.max = DEPTH_MAX;
		descend(depths[i], look, &t);
		check_same(&t, (int)depths[i] + 3);
	}
	/* Again, from the caches. */
	for (int i = 0; i < 200; i++) {
		descend(20, look, &t);
		check_same(&t, 23);
	}
}

static int compare(const void *a, const void *b, void *arg)
{
	struct trace *t = arg;

	if (!t->n_ours)
		look(t);
	return *(const int *)a - *(const int *)b;
}

/* Through a library's frames. */
static void test_through_library(void **state)
{
	int numbers[] = {3, 1, 2};
	struct trace t = {.max = DEPTH_MAX};

	(void)state;
	qsort_r(numbers, 3, sizeof(numbers[0]), compare, &t);
	assert_int_equal(numbers[0], 1);
	check_same(&t, 5);
}

static void test_cut(void **state)
{
	struct trace t, whole = {.max = DEPTH_MAX};

	(void)state;
	for (int max = 1; max < 60; max += 7) {
		memset(lane->pcs, 0x55, sizeof(lane->pcs));
		t.max = max;
		for (int pass = 0; pass < 2; pass++)
			descend(100, look, pass ? &whole : &t);
		assert_int_equal(t.n_ours, max);
		/* Both passes are the same call: the same outermost part. */
		assert_memory_equal(t.ours, whole.ours,
				    (size_t)max * sizeof(void *));
	}
}

static void *look_in_thread(void *arg)
{
	sp_thread.lane = sp_lane_number(lane);
	descend(30, look, arg);
	sp_thread.lane = 0;
	return NULL;
}

static void test_other_thread(void **state)
{
	struct trace t = {.max = DEPTH_MAX};
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, look_in_thread, &t), 0);
	pthread_join(thread, NULL);
	check_same(&t, 33);
}

/* Captured stacks: this object's own frames are taken off (here they are those
 * of the test), the rest is resolved, the depth is kept to. */
static unsigned int captured;
static uint32_t captured_flags;
static unsigned int captured_depth;

static int capture(const void *a, const void *b, void *arg)
{
	(void)arg;
	if (!captured) {
		struct sp_stack_walk walk;

		sp_stack_walk(lane, captured_depth, SP_FRAME_HERE, &walk);
		sp_stack_resolve(lane, captured_depth, SP_FRAME_HERE, &walk);
		captured = walk.n;
		captured_flags = walk.flags;
		/* All of it was there when the program began. */
		assert_true(walk.is_permanent);
	}
	return *(const int *)a - *(const int *)b;
}

static void capture_below(unsigned int depth)
{
	int numbers[] = {3, 1, 2};

	captured = 0;
	captured_depth = depth;
	qsort_r(numbers, 3, sizeof(numbers[0]), capture, NULL);
}

static void check_frames(void)
{
	for (unsigned int i = 0; i < captured; i++) {
		const struct sp_record_frame *f = &lane->frames[i];
		const struct sp_module_entry *e;

		assert_true(f->module >= 1 && f->module <= sp_modules_count());
		e = sp_modules_get(f->module - 1);
		assert_true(f->offset <= e->end - e->start);
		/* Innermost is the library that called us back. */
		if (i == 0)
			assert_false(
				sp_modules_is_self(e->start + f->offset - 1));
	}
}

static void test_capture(void **state)
{
	unsigned int whole;

	(void)state;
	capture_below(128);
	whole = captured;
	assert_true(whole >= 4);
	assert_int_equal(captured_flags, 0);
	check_frames();
	for (unsigned int depth = 1; depth <= whole; depth++) {
		capture_below(depth);
		assert_int_equal(captured, depth);
		assert_int_equal(captured_flags,
				 depth < whole ? SP_STACK_TRUNCATED : 0);
		check_frames();
	}
	assert_true(agent_fixture_losses() == 0);
}

static void caller_only(void *caller)
{
	const struct sp_call_frame frame = {NULL, caller};
	struct sp_stack_walk walk;

	sp_stack_walk(lane, 128, &frame, &walk);
	assert_int_equal(walk.n, 0);
	sp_stack_resolve(lane, 128, &frame, &walk);
	assert_int_equal(walk.n, 1);
	assert_int_equal(walk.flags, SP_STACK_CALLER_ONLY);
	assert_false(walk.is_permanent);
}

/* Without the library: the one frame that is known, and a loss. */
static void test_caller_only(void **state)
{
	uint64_t losses[SP_FORMAT_LOSSES];
	void *caller = __builtin_return_address(0);
	struct sp_module_entry *e;

	(void)state;
	assert_non_null(sp_unwinder_why());
	assert_int_equal(sp_unwinder_trace(lane, 10), 0);
	caller_only(caller);
	e = sp_modules_find((uintptr_t)caller - 1, NULL);
	assert_non_null(e);
	assert_int_equal(lane->frames[0].module, e->id);
	assert_true(lane->frames[0].offset == (uintptr_t)caller - e->start);
	/* Code in no object: the address itself. */
	caller_only((void *)0x10);
	assert_int_equal(lane->frames[0].module, 0);
	assert_true(lane->frames[0].offset == 0x10);
	/* A call that is an object's last instruction belongs to it. */
	e = sp_modules_get(sp_modules_count() - 1);
	caller_only((void *)e->end);
	assert_int_equal(lane->frames[0].module, e->id);
	assert_true(lane->frames[0].offset == e->end - e->start);
	sp_diag_read(losses);
	assert_true(losses[SP_LOSS_UNWIND_EARLY] == 3);
	sp_diag_reset();
}

static void test_init(void **state)
{
	(void)state;
	sp_thread.lane = 0;
	if (!sp_unwinder_init())
		fail_msg("%s", sp_unwinder_why());
	assert_null(sp_unwinder_why());
	assert_int_equal(sp_thread.lane, 0);
	sp_thread.lane = sp_lane_number(lane);
}

/* Where the library keeps the address of a function that it binds lazily. */
static void **slot_of(const struct link_map *library, const char *name)
{
	const ElfW(Rela) *rela =
		(const void *)sp_linkmap_dynamic(library, DT_JMPREL);
	const ElfW(Sym) *symbols =
		(const void *)sp_linkmap_dynamic(library, DT_SYMTAB);
	const char *strings =
		(const void *)sp_linkmap_dynamic(library, DT_STRTAB);
	size_t n = sp_linkmap_dynamic(library, DT_PLTRELSZ) / sizeof(*rela);

	for (size_t i = 0; i < n; i++) {
		const ElfW(Sym) *s = &symbols[ELF64_R_SYM(rela[i].r_info)];

		if (strcmp(strings + s->st_name, name) == 0)
			return (void **)(library->l_addr + rela[i].r_offset);
	}
	return NULL;
}

/* The loader has put an original back, as a thread of the program can make it
 * do at any time. */
static void test_binding_that_comes_late(void **state)
{
	const char *const names[] = {"dl_iterate_phdr", "sigprocmask",
				     "syscall"};
	const struct link_map *library =
		dlopen("libunwind.so.8", RTLD_LAZY | RTLD_NOLOAD);
	struct trace t = {.max = DEPTH_MAX};

	(void)state;
	assert_non_null(library);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		void **slot = slot_of(library, names[i]);
		void *ours;

		assert_non_null(slot);
		ours = *slot;
		assert_ptr_not_equal(ours, dlsym(RTLD_DEFAULT, names[i]));
		*slot = dlsym(RTLD_DEFAULT, names[i]);
		descend(5, look, &t);
		check_same(&t, 8);
		assert_ptr_equal(*slot, ours);
	}
}

/* In a forked child with nobody in the middle of it, it goes on working. */
static void test_after_fork(void **state)
{
	struct trace t = {.max = DEPTH_MAX};

	(void)state;
	sp_unwinder_imports_reset();
	assert_false(sp_unwinder_imports_broken());
	descend(5, look, &t);
	check_same(&t, 8);
}

static int begin(void **state)
{
	uint8_t hint = 0;

	(void)state;
	agent_fixture_dir();
	agent_fixture_open(1 << 20);
	sp_modules_init("/opt/program");
	lane = sp_lane_take(&hint);
	sp_thread.lane = sp_lane_number(lane);
	/* The C library loads its own unwinder now, not in a comparison. */
	backtrace(&(void *){NULL}, 1);
	return 0;
}

static int end(void **state)
{
	(void)state;
	agent_fixture_close();
	agent_fixture_remove_dir();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_caller_only),
		cmocka_unit_test(test_init),
		cmocka_unit_test(test_like_backtrace),
		cmocka_unit_test(test_through_library),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_other_thread),
		cmocka_unit_test(test_capture),
		cmocka_unit_test(test_binding_that_comes_late),
		cmocka_unit_test(test_after_fork),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
