/* SPDX-License-Identifier: MIT */
/*
 * Walks by tables are libunwind's, in thousands of stacks that differ in their
 * middles; through signals, realigned frames and lazy binding; by frame
 * pointers, up to the right frame: on the stacks of main, threads, deep
 * threads, signal handlers, coroutines and given ones.
 *
 * This file is built with frame pointers.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

#include "agent/unwind/framewalk.h"
#include "agent/unwind/modules.h"
#include "agent/unwind/stack_bounds.h"
#include "support/framewalk_lazy.h"
#include "support/given_stack.h"
#include "support/arch.h"
#include "support/test.h"

#define DEPTH_MAX 512
#define OWN_MAX   16
#define NOINLINE  __attribute__((noinline))

/* Each way remembers its last walk. */
static struct sp_lane *lane, *other_lane;

static int (*unw_backtrace_fn)(void **pcs, int max);

/* What one call saw, in three ways; addresses from its caller's on. */
struct seen {
	int (*between)(struct seen *s); /* called instead of looking */
	void *truth[DEPTH_MAX + OWN_MAX], *pointers[DEPTH_MAX];
	void *tables[DEPTH_MAX];
	int n_truth, n_pointers, n_tables;
	unsigned int looks;
	bool is_cut, is_table_cut;
};

static void check_hash(const struct sp_walk *walk)
{
	struct sp_walk_hash h = SP_WALK_HASH_OUTSIDE;
	const struct sp_walk_hash *got = &walk->hashes[walk->first];

	for (unsigned int i = walk->n; i--;)
		h = sp_walk_hash_add(h, walk->pcs[walk->first + i]);
	assert_true(got->low == h.low && got->high == h.high);
}

static int keep(const struct sp_walk *walk, void **pcs)
{
	assert_non_null(walk);
	assert_true(walk->n <= DEPTH_MAX);
	assert_true(walk->first + walk->n <= walk->room);
	check_hash(walk);
	memcpy(pcs, walk->pcs + walk->first, walk->n * sizeof(pcs[0]));
	return (int)walk->n;
}

static int NOINLINE look(struct seen *s)
{
	const struct sp_call_frame *frame = SP_FRAME_HERE;
	int own = 0;

	s->looks++;
	s->n_truth = unw_backtrace_fn(s->truth, DEPTH_MAX + OWN_MAX);
	for (int i = 0; i < s->n_truth; i++)
		s->truth[i] = test_backtrace_pc(s->truth[i]);
	/* libunwind's own view has frames below ours. */
	while (own < s->n_truth && s->truth[own] != frame->pc)
		own++;
	s->n_truth -= own;
	assert_true(own <= OWN_MAX);
	if (s->n_truth > DEPTH_MAX)
		s->n_truth = DEPTH_MAX;
	memmove(s->truth, s->truth + own,
		(size_t)s->n_truth * sizeof(s->truth[0]));
	s->n_tables = keep(
		sp_framewalk_tables(lane, frame, DEPTH_MAX, &s->is_table_cut),
		s->tables);
	s->n_pointers = keep(
		sp_framewalk_pointers(other_lane, frame, DEPTH_MAX, &s->is_cut),
		s->pointers);
	return 1;
}

/* Frames of different shapes; the call is never the last thing. */
static int NOINLINE descend(unsigned int depth, struct seen *s)
{
	volatile char pad[96];
	int ret;

	pad[depth % 96] = (char)depth;
	if (depth == 0)
		ret = (s->between ? s->between : look)(s);
	else if (depth % 3 == 0)
		ret = descend(depth - 1, s) + pad[depth % 96];
	else
		ret = descend(depth - 1, s) - pad[depth % 96];
	return ret + pad[0];
}

static void check_tables(const struct seen *s, int least)
{
	assert_true(s->n_truth >= least);
	assert_int_equal(s->n_tables, s->n_truth);
	assert_false(s->is_table_cut);
	assert_memory_equal(s->tables, s->truth,
			    (size_t)s->n_truth * sizeof(void *));
}

/* The same through a signal: the addresses of the trampoline and of what was
 * interrupted are one more, and frames behind them are found in any case. */
static void check_signal(const struct seen *s, int least)
{
	int signals = 0;

	assert_true(s->n_tables >= least);
	assert_true(s->n_tables >= s->n_truth);
	assert_false(s->is_table_cut);
	for (int i = 0; i < s->n_truth; i++) {
		signals += s->tables[i] != s->truth[i];
		assert_true(s->tables[i] == s->truth[i] ||
			    s->tables[i] == (char *)s->truth[i] + 1);
	}
	assert_int_equal(signals, 2);
}

/* The same as far as this file's frames go, with the one that called it. */
static void check_pointers(const struct seen *s, int least)
{
	assert_true(s->n_pointers >= least);
	assert_true(s->n_pointers <= s->n_truth);
	assert_memory_equal(s->pointers, s->truth,
			    (size_t)s->n_pointers * sizeof(void *));
}

TEST(main_stack)
{
	static const unsigned int depths[] = {0, 1, 2, 3, 10, 50, 200, 300};
	/* Volatile, so that both times it is the same call. */
	volatile int passes = 2;

	for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
		struct seen s = {.between = NULL};

		for (int pass = 0; pass < passes; pass++) {
			descend(depths[i], &s);
			/* cmocka, between main and the test, has no frame
			 * pointers. */
			check_tables(&s, (int)depths[i] + 5);
			check_pointers(&s, (int)depths[i] + 2);
		}
	}
}

static int through_library(const void *a, const void *b, void *arg)
{
	struct seen *s = arg;

	if (!s->looks)
		look(s);
	return *(const int *)a - *(const int *)b;
}

/* Called back by a library without frame pointers, that walk ends and says so;
 * rules lead through. */
TEST(through_library)
{
	int numbers[] = {3, 1, 2};
	struct seen s = {.between = NULL};

	qsort_r(numbers, 3, sizeof(numbers[0]), through_library, &s);
	assert_int_equal(numbers[0], 1);
	check_tables(&s, 5);
	check_pointers(&s, 2);
	if (TEST_ARE_POINTERS_KEPT)
		return;
	assert_true(s.n_pointers < s.n_truth);
	assert_true(s.is_cut);
}

static void *look_in_thread(void *arg)
{
	descend(30, arg);
	return NULL;
}

static void run_thread(const pthread_attr_t *attributes, void *(*run)(void *),
		       struct seen *s)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, attributes, run, s), 0);
	pthread_join(thread, NULL);
}

/* ThreadSanitizer begins threads in code of its own, which was compiled without
 * frame pointers. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif

static void check_whole(const struct seen *s)
{
#ifdef __SANITIZE_THREAD__
	(void)s;
#else
	assert_false(s->is_cut);
#endif
}

TEST(thread)
{
	struct seen s = {.between = NULL};

	run_thread(NULL, look_in_thread, &s);
	check_tables(&s, 33);
	/* As far as the C library's start of the thread. */
	check_pointers(&s, 33);
	check_whole(&s);
}

static int NOINLINE look_far_down(struct seen *s)
{
	volatile char pad[200000];

	pad[0] = pad[199999] = 1;
	return look(s) + pad[0];
}

/* Beyond what is known without asking. */
TEST(deep_thread)
{
	struct seen s = {.between = look_far_down};

	for (int i = 0; i < 2; i++) {
		run_thread(NULL, look_in_thread, &s);
		check_tables(&s, 34);
		check_pointers(&s, 34);
		check_whole(&s);
	}
}

TEST(given_stack)
{
	struct seen s = {.between = NULL};
	char *stack = map_stack();
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, stack, STACK_BYTES);
	run_thread(&attributes, look_in_thread, &s);
	pthread_attr_destroy(&attributes);
	check_tables(&s, 33);
	check_pointers(&s, 33);
	unmap_stack(stack);
}

/* ---- signals ---- */

static struct seen in_handler;

static void handle(int signal)
{
	(void)signal;
	descend(20, &in_handler);
}

/* Steps over the instruction that is none. */
static void handle_and_step(int signal, siginfo_t *info, void *context)
{
	ucontext_t *c = context;

	(void)signal;
	(void)info;
	descend(20, &in_handler);
	TEST_STEP(c);
}

static void NOINLINE interrupt_between(int flags)
{
	struct sigaction action = {.sa_sigaction = handle_and_step,
				   .sa_flags = flags | SA_SIGINFO};
	int found = 0;
	void *place;

	sigaction(SIGILL, &action, NULL);
	TEST_PLACE(place);
	signal(SIGILL, SIG_DFL);
	check_signal(&in_handler, 25);
	for (int i = 0; i < in_handler.n_tables; i++)
		found += in_handler.tables[i] == (char *)place + 1;
	assert_int_equal(found, 1);
}

static void interrupt_call(int flags)
{
	struct sigaction action = {.sa_handler = handle, .sa_flags = flags};

	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	signal(SIGUSR1, SIG_DFL);
	check_signal(&in_handler, 25);
	check_pointers(&in_handler, 22);
}

TEST(signal)
{
	/* Volatile, so that both times it is the same call. */
	volatile int passes = 2;

	for (int i = 0; i < passes; i++) {
		interrupt_call(0);
		interrupt_between(0);
	}
}

/* From there back onto the stack that was interrupted. */
TEST(alternate_stack)
{
	stack_t alternate = {.ss_sp = map_stack(), .ss_size = STACK_BYTES}, old;
	volatile int passes = 2;

	assert_int_equal(sigaltstack(&alternate, &old), 0);
	for (int i = 0; i < passes; i++) {
		interrupt_call(SA_ONSTACK);
		interrupt_between(SA_ONSTACK);
	}
	assert_int_equal(sigaltstack(&old, NULL), 0);
	unmap_stack(alternate.ss_sp);
}

static void *interrupt_thread(void *arg)
{
	(void)arg;
	/* libunwind takes memory when a thread asks it first. */
	descend(1, &in_handler);
	interrupt_call(0);
	test_alternate_stack(NULL);
	return NULL;
}

TEST(signal_in_thread)
{
	run_thread(NULL, interrupt_thread, NULL);
}

/* ---- frames that are rare ---- */

/* One that is realigned and grows. */
static int NOINLINE look_realigned(struct seen *s)
{
	_Alignas(64) volatile char first[64];
	volatile char *second = __builtin_alloca(s->looks + 40);

	first[0] = second[0] = 1;
	return descend(3, s) + first[0] + second[0];
}

TEST(realigned)
{
	struct seen s = {.between = NULL};
	volatile int passes = 3;

	for (int i = 0; i < passes; i++) {
		look_realigned(&s);
		check_tables(&s, 8);
	}
}

/* Through the loader's lazy binding, whose frame is found by rbx. */
static struct seen in_resolver;

static void look_in_resolver(void)
{
	descend(3, &in_resolver);
}

TEST(lazy_binding)
{
	framewalk_lazy_hook = look_in_resolver;
	assert_int_equal(framewalk_lazy(), 42);
	assert_int_equal(in_resolver.looks, 1);
	if (!SP_ARCH_RECORD_LAST) {
		/* glibc 2.36 says for aarch64 that the frame of its resolver
		 * ends 16 bytes before it does; libunwind is lost, too. */
		assert_true(in_resolver.n_tables >= 9);
		return;
	}
	check_tables(&in_resolver, 10);
}

/* ---- coroutines ---- */

static ucontext_t main_context, coroutine;
static struct seen in_coroutine;

static void run_coroutine(void)
{
	descend(20, &in_coroutine);
}

static void switch_to_coroutine(char *stack)
{
	assert_int_equal(getcontext(&coroutine), 0);
	coroutine.uc_stack.ss_sp = stack;
	coroutine.uc_stack.ss_size = STACK_BYTES;
	coroutine.uc_link = &main_context;
	makecontext(&coroutine, run_coroutine, 0);
	assert_int_equal(swapcontext(&main_context, &coroutine), 0);
}

/* Nobody calls a coroutine: it ends at the function that makecontext has put
 * there, whose address is its own beginning. */
TEST(coroutine)
{
	char *stack = map_stack();
	const struct seen *s = &in_coroutine;
	volatile int passes = 2;

	for (int i = 0; i < passes; i++) {
		switch_to_coroutine(stack);
		/* libunwind goes on, to what follows on the stack. */
		assert_true(s->n_truth >= s->n_tables && s->n_tables >= 23);
		assert_false(s->is_table_cut);
		assert_memory_equal(s->tables, s->truth,
				    (size_t)(s->n_tables - 1) * sizeof(void *));
		assert_ptr_equal(s->tables[s->n_tables - 1],
				 (char *)s->truth[s->n_tables - 1] + 1);
		check_pointers(s, 21);
	}
	unmap_stack(stack);
}

/* No more than was asked for, in either way. */
static int NOINLINE look_briefly(struct seen *s)
{
	const struct sp_call_frame *frame = SP_FRAME_HERE;

	for (int max = 1; max < 20; max++) {
		void *by_pointers[DEPTH_MAX], *by_tables[DEPTH_MAX];
		int n = keep(sp_framewalk_pointers(other_lane, frame,
						   (unsigned int)max,
						   &s->is_cut),
			     by_pointers);

		assert_int_equal(n, max);
		assert_false(s->is_cut);
		n = keep(sp_framewalk_tables(lane, frame, (unsigned int)max,
					     &s->is_table_cut),
			 by_tables);
		assert_int_equal(n, max);
		assert_memory_equal(by_tables, by_pointers,
				    (size_t)max * sizeof(void *));
	}
	return look(s);
}

TEST(cut)
{
	/* By the same instruction, which is known then. */
	static int (*const between[])(struct seen *) = {look, look_briefly};
	struct seen s;

	for (int i = 0; i < 2; i++) {
		s.between = between[i];
		descend(40, &s);
		check_tables(&s, 40);
	}
}

/* ---- memory of the last walk ---- */

static unsigned int random_state = 1;

static unsigned int draw(unsigned int n)
{
	random_state = random_state * 1664525u + 1013904223u;
	return (random_state >> 8) % n;
}

static int NOINLINE wander(unsigned int depth, struct seen *s);

/* Two ways to the same place, so that stacks differ in their middles. */
static int NOINLINE one_way(unsigned int depth, struct seen *s)
{
	return wander(depth - 1, s) + 1;
}

static int NOINLINE other_way(unsigned int depth, struct seen *s)
{
	volatile int pad = 1;

	return wander(depth - 1, s) + pad;
}

static int NOINLINE wander(unsigned int depth, struct seen *s)
{
	int ret = 0;

	if (depth == 0 || draw(8) == 0) {
		ret = look(s);
		check_tables(s, 5);
	}
	for (int i = 0; depth > 0 && i < 2; i++)
		ret += draw(2) ? one_way(depth, s) : other_way(depth, s);
	return ret;
}

/* Thousands of walks, each beside libunwind's. */
TEST(wandering)
{
	struct seen s = {.between = NULL};

	wander(10, &s);
	assert_true(s.looks > 1000);
}

/* Around the limit, so that a walk often ends there and the next one, nearer to
 * the outermost frame, has the same frames and some beyond. */
TEST(deeper_than_the_limit)
{
	struct seen s = {.between = NULL};

	for (int i = 0; i < 500; i++) {
		descend(DEPTH_MAX - 60 + draw(120), &s);
		check_tables(&s, DEPTH_MAX - 60);
		check_pointers(&s, DEPTH_MAX - 60);
	}
}

static void find_oracle(void)
{
	void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
	void *address = library ? dlsym(library, "unw_backtrace") : NULL;

	if (!address)
		fail_msg("libunwind.so.8 is missing: install libunwind8");
	memcpy(&unw_backtrace_fn, &address, sizeof(address));
}

static int begin(void **state)
{
	uint8_t hint = 0;

	(void)state;
	sp_modules_init("/opt/program");
	sp_stack_bounds_init(environ, 0);
	find_oracle();
	lane = sp_lane_take(&hint);
	other_lane = sp_lane_take(&hint);
	return 0;
}

TEST_MAIN(begin, NULL)
