/* SPDX-License-Identifier: MIT */
/*
 * To be built without unwind tables: allocates in functions of many shapes.
 * Each calls take() with a size of its own, and some library functions allocate
 * for themselves.
 */
#include <alloca.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "../../support/arch.h"

#define SHAPE  __attribute__((noipa))
#define USE(p) __asm__ volatile("" : : "r"(p) : "memory")

static void *volatile sink;
static volatile int zero;

SHAPE void take(size_t bytes)
{
	sink = malloc(bytes);
	free(sink);
}

SHAPE void plainly(size_t bytes)
{
	take(bytes);
	sink = NULL;
}

SHAPE long with_registers(long a, long b, long c, long d, long e, long f)
{
	long sum = 0;

	for (long i = 0; i < 3; i++) {
		take(2001);
		sum += a * i + b - c * d + e / (f + i + 1);
	}
	return sum + a + b + c + d + e + f;
}

SHAPE void with_array(void)
{
	char text[3000];

	USE(text);
	take(2002);
	USE(text);
}

SHAPE void with_alloca(size_t n)
{
	char *text = alloca(n + 1);

	memset(text, 1, n);
	take(2003);
	sink = text;
	take(2003);
	sink = NULL;
}

SHAPE void with_branches(int n)
{
	switch (n) {
	case 0:
		take(2004);
		break;
	case 1:
		plainly(1);
		take(2004);
		return;
	case 2:
		if (zero)
			plainly(2);
		take(2004);
		plainly(3);
		break;
	case 3:
		take(2004);
		abort();
	default:
		plainly(4);
	}
	plainly(5);
}

SHAPE int recursive(int n)
{
	if (n == 0) {
		take(2005);
		return 1;
	}
	return recursive(n - 1) * n + recursive(0);
}

SHAPE void by_pointer(void (*function)(size_t), size_t bytes)
{
	function(bytes);
	function(bytes);
	sink = NULL;
}

/* Never returns: what follows the call is another function. */
static jmp_buf back;

SHAPE _Noreturn void give_up(void)
{
	take(2006);
	longjmp(back, 1);
}

SHAPE void in_despair(void)
{
	char text[200];

	USE(text);
	give_up();
}

SHAPE long after_despair(long a)
{
	return a + 1;
}

/* ---- signals ---- */

static void handle(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	take(2007);
	TEST_STEP((ucontext_t *)context);
}

SHAPE void interrupted(void)
{
	sink = NULL;
	__asm__ volatile(TEST_TRAP);
	sink = NULL;
	take(1);
}

/* ---- no way back ---- */

#ifdef __x86_64__
static _Alignas(16) char other_stack[1 << 16];

/* Calls on another stack, and remembers its own where nobody looks. */
SHAPE void without_trace(void)
{
	char *top = other_stack + sizeof(other_stack);

	__asm__ volatile("movq %%rsp, %%r12\n\t"
			 "movq %%rbp, %%r13\n\t"
			 "movq %%rsi, %%rsp\n\t"
			 "xorl %%ebp, %%ebp\n\t"
			 "movl $2008, %%edi\n\t"
			 "call take\n\t"
			 "movq %%r13, %%rbp\n\t"
			 "movq %%r12, %%rsp"
			 : "+S"(top)
			 :
			 : "r12", "r13", "rax", "rcx", "rdx", "rdi", "r8", "r9",
			   "r10", "r11", "memory", "cc");
}
#else
SHAPE void without_trace(void)
{
	sink = NULL;
}
#endif

/* ---- all ---- */

SHAPE void shapes(void)
{
	plainly(2000);
	with_registers(1, 2, 3, 4, 5, 6);
	with_array();
	with_alloca(500);
	for (int i = 0; i < 3; i++)
		with_branches(i);
	recursive(5);
	by_pointer(plainly, 2009);
	if (!setjmp(back))
		in_despair();
	sink = (void *)after_despair(1);
	interrupted();
}

SHAPE void in_files(void)
{
	const int fd = open("/dev/null", O_RDONLY);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	DIR *directory = opendir("/");
	char *line = NULL;
	size_t room = 0;

	if (file)
		fclose(file);
	if (directory)
		closedir(directory);
	/* Of another file, which has a line. */
	file = fopen("/proc/self/stat", "r");
	if (file && getdelim(&line, &room, ' ', file) > 0)
		sink = NULL;
	free(line);
	if (file)
		fclose(file);
}

SHAPE void in_library(void)
{
	char *text = strdup("text"), *other = NULL;
	FILE *file = fopen("/dev/null", "r");

	if (file)
		fclose(file);
	if (asprintf(&other, "%s %d", text, zero) > 0)
		free(other);
	free(text);
	in_files();
}

static void *run_thread(void *arg)
{
	shapes();
	sink = arg;
	return sink;
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = handle,
				   .sa_flags = SA_SIGINFO};
	pthread_t thread;

	sigaction(SIGILL, &action, NULL);
	shapes();
	in_library();
	without_trace();
	if (pthread_create(&thread, NULL, run_thread, NULL) != 0)
		return 1;
	pthread_join(thread, NULL);
	puts("done");
	return 0;
}
