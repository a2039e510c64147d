/* SPDX-License-Identifier: MIT */
/*
 * Stacks that are not the usual ones.
 *
 *   unwind_rare all    allocate in each kind of them
 *   unwind_rare wait   allocate 7777 bytes below functions of many kinds, print
 *                      "ready" and wait there until standard input ends
 */
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

#include "../../support/arch.h"

#define NOINLINE __attribute__((noinline))

static void *volatile sink;

static NOINLINE void take(size_t bytes)
{
	sink = malloc(bytes);
	free(sink);
}

/* ---- exceptions ---- */

struct holder {
	/* Allocates while the stack is unwound. */
	~holder()
	{
		take(1001);
	}
};

static NOINLINE int throw_below(int depth)
{
	holder h;

	if (!depth)
		throw std::runtime_error(std::string(100, 'x'));
	return throw_below(depth - 1) + 1;
}

static NOINLINE void catch_one()
{
	try {
		throw_below(10);
	} catch (const std::exception &e) {
		std::string text(e.what());

		text += text;
		take(1002);
	}
}

/* ---- signals ---- */

static void handle(int)
{
	take(1003);
}

static NOINLINE void interrupted()
{
	sink = nullptr;
	__asm__ volatile(TEST_TRAP); /* this line was interrupted */
	sink = nullptr;
}

static void handle_and_step(int, siginfo_t *, void *context)
{
	take(1004);
	TEST_STEP(static_cast<ucontext_t *>(context));
}

static void take_signals(int flags)
{
	struct sigaction action = {};

	action.sa_handler = handle;
	action.sa_flags = flags;
	sigaction(SIGUSR1, &action, nullptr);
	raise(SIGUSR1);
	action = {};
	action.sa_sigaction = handle_and_step;
	action.sa_flags = flags | SA_SIGINFO;
	sigaction(SIGILL, &action, nullptr);
	interrupted();
}

static void take_signals_elsewhere()
{
	static char memory[1 << 16];
	stack_t stack = {}, old;

	stack.ss_sp = memory;
	stack.ss_size = sizeof(memory);
	sigaltstack(&stack, &old);
	take_signals(SA_ONSTACK);
	sigaltstack(&old, nullptr);
}

/* ---- frames ---- */

static NOINLINE void realigned(size_t n)
{
	alignas(64) char first[64];
	void *second = __builtin_alloca(n);

	__asm__ volatile("" : : "r"(first), "r"(second) : "memory");
	take(1005);
	__asm__ volatile("" : : "r"(first), "r"(second) : "memory");
}

static ucontext_t main_context, coroutine;

static void run_coroutine()
{
	take(1006);
}

static void switch_to_coroutine()
{
	static char memory[1 << 16];

	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = memory;
	coroutine.uc_stack.ss_size = sizeof(memory);
	coroutine.uc_link = &main_context;
	makecontext(&coroutine, run_coroutine, 0);
	swapcontext(&main_context, &coroutine);
}

static NOINLINE void do_all()
{
	std::map<int, std::string> map;

	for (int i = 0; i < 20; i++) {
		catch_one();
		realigned(static_cast<size_t>(i) + 1);
		map[i] = std::string(50, 'a');
	}
	take_signals(0);
	take_signals_elsewhere();
}

/* ---- what a debugger sees ---- */

static NOINLINE int wait_here()
{
	char byte;

	sink = malloc(7777);
	puts("ready");
	fflush(stdout);
	return static_cast<int>(read(0, &byte, 1));
}

static NOINLINE int compare(const void *a, const void *b)
{
	static bool has_waited;

	if (!has_waited) {
		has_waited = true;
		wait_here();
	}
	return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

static NOINLINE void sort_in(size_t n)
{
	alignas(64) int numbers[16] = {3, 1, 2};
	void *more = __builtin_alloca(n);

	__asm__ volatile("" : : "r"(more) : "memory");
	qsort(numbers, 3, sizeof(numbers[0]), compare);
}

static void handle_and_wait(int)
{
	sort_in(33);
}

static NOINLINE void catch_and_wait()
{
	try {
		throw_below(3);
	} catch (...) {
		signal(SIGUSR1, handle_and_wait);
		raise(SIGUSR1);
	}
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "all") == 0) {
		do_all();
		std::thread(do_all).join();
		switch_to_coroutine();
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], "wait") == 0) {
		catch_and_wait();
		return 0;
	}
	fputs("usage: unwind_rare all|wait\n", stderr);
	return 2;
}
