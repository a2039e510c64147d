/* SPDX-License-Identifier: MIT */
/*
 * A thread is in the first bytes of an allocator's function, for a signal
 * handler has interrupted it there, and waits.  Does what its standard input
 * says: "on": the thread goes on; "go": allocates, with a line of how much;
 * "end" ends it, with "ok".
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "truth.h"

void *je_malloc(size_t n, const long *where);
void je_free(void *p);

/* The second instruction reads *where. */
__asm__(".pushsection .text\n"
	".globl je_malloc\n.type je_malloc, @function\n"
	"je_malloc:\n\t"
	"mov %rdi, %rax\n\t"
	"mov (%rsi), %rcx\n\t"
	"lea object(%rip), %rax\n\t"
	"ret\n"
	".size je_malloc, . - je_malloc\n"
	".globl je_free\n.type je_free, @function\n"
	"je_free:\n\t"
	"mov %rdi, %rax\n\t"
	"mov %rax, %rdi\n\t"
	"ret\n"
	".size je_free, . - je_free\n"
	".popsection");

_Alignas(16) char object[64];
static long *where;
static int pipe_ends[2];
static atomic_bool is_inside, is_done;

static void wait_inside(int signal)
{
	char c;

	(void)signal;
	atomic_store(&is_inside, true);
	EXPECT(read(pipe_ends[0], &c, 1) == 1);
	EXPECT(mprotect(where, 4096, PROT_READ) == 0);
}

static void *work(void *arg)
{
	(void)arg;
	EXPECT(je_malloc(1, where) == object);
	atomic_store(&is_done, true);
	return NULL;
}

int main(void)
{
	const struct sigaction action = {.sa_handler = wait_inside};
	struct truth all = {0, 0};
	char line[64];
	pthread_t t;

	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, NULL, _IONBF, 0);
	where = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(where != MAP_FAILED && pipe(pipe_ends) == 0);
	sigaction(SIGSEGV, &action, NULL);
	EXPECT(pthread_create(&t, NULL, work, NULL) == 0);
	while (!atomic_load(&is_inside))
		usleep(100);
	truth_print("inside", &all);
	while (fgets(line, sizeof(line), stdin) && strcmp(line, "end\n") != 0) {
		if (strcmp(line, "on\n") == 0) {
			EXPECT(write(pipe_ends[1], "x", 1) == 1);
			while (!atomic_load(&is_done))
				usleep(100);
			pthread_join(t, NULL);
		} else {
			for (size_t n = 1; n < 1000; n++) {
				truth_add(&all, je_malloc(n, where), n);
				je_free(object);
			}
		}
		truth_print("totals", &all);
	}
	puts("ok");
	return 0;
}
