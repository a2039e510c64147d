/* SPDX-License-Identifier: MIT */
/* hazard_threads SCENARIO: ways to leave a thread, and a function. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>

#include "hazard.h"

/* Memory with a page in front of it that nobody may touch. */
static char *guarded(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, page + bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(p != MAP_FAILED);
	EXPECT(!mprotect(p, page, PROT_NONE));
	return p + page;
}

static void join_all(pthread_t *threads, int n)
{
	for (int i = 0; i < n; i++)
		EXPECT(!pthread_join(threads[i], NULL));
}

/* ---- cancellation ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *allocate_under_mutex(void *arg)
{
	for (;;) {
		EXPECT(!pthread_mutex_lock(&mutex));
		hazard_work(1);
		EXPECT(!pthread_mutex_unlock(&mutex));
		pthread_testcancel();
	}
	return arg;
}

/* Were malloc a point of cancellation, a thread would end with the mutex. */
static void do_cancel(char **arguments)
{
	struct timespec patience;

	(void)arguments;
	for (int i = 0; i < 60; i++) {
		pthread_t threads[3];
		void *ret;

		for (int n = 0; n < 3; n++)
			EXPECT(!pthread_create(&threads[n], NULL,
					       allocate_under_mutex, NULL));
		usleep(300);
		for (int n = 0; n < 3; n++)
			EXPECT(!pthread_cancel(threads[n]));
		clock_gettime(CLOCK_REALTIME, &patience);
		patience.tv_sec += HUNG_S;
		EXPECT(!pthread_mutex_timedlock(&mutex, &patience));
		EXPECT(!pthread_mutex_unlock(&mutex));
		for (int n = 0; n < 3; n++) {
			EXPECT(!pthread_join(threads[n], &ret));
			EXPECT(ret == PTHREAD_CANCELED);
		}
	}
	puts("cancelled");
}

/* ---- small stacks ---- */

static atomic_int handled;

static void allocate_in_handler(int number)
{
	(void)number;
	free(malloc(100));
	handled++;
}

static void handle(int number, void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler,
				   .sa_flags = SA_ONSTACK};

	EXPECT(!sigaction(number, &action, NULL));
}

/* What a handler has left of a stack of 8 KiB where the kernel saves AVX-512's
 * registers on it.  What it saves here is measured. */
#define LEFT_FOR_HANDLER ((size_t)4560)

static _Thread_local char *handler_frame;

static void measure_frame(int number)
{
	(void)number;
	handler_frame = __builtin_frame_address(0);
}

static void use_alternate_stack(void)
{
	const size_t large = 64 * 1024;
	stack_t stack = {.ss_sp = guarded(large), .ss_size = large};

	EXPECT(!sigaltstack(&stack, NULL));
	handle(SIGUSR2, measure_frame);
	EXPECT(!raise(SIGUSR2));
	stack.ss_size = (size_t)((char *)stack.ss_sp + large - handler_frame) +
			LEFT_FOR_HANDLER;
	stack.ss_sp = guarded(stack.ss_size);
	EXPECT(!sigaltstack(&stack, NULL));
}

static void *raise_often(void *arg)
{
	use_alternate_stack();
	for (int i = 0; i < 100; i++)
		EXPECT(!raise(SIGUSR1));
	return arg;
}

/* In the main thread and in others. */
static void do_alternate_stack(char **arguments)
{
	pthread_t threads[4];

	(void)arguments;
	handle(SIGUSR1, allocate_in_handler);
	raise_often(NULL);
	for (int i = 0; i < 4; i++)
		EXPECT(!pthread_create(&threads[i], NULL, raise_often, NULL));
	join_all(threads, 4);
	printf("handled %d\n", handled);
}

/* Every 200 us, whatever is just going on, until that was 600 times.  For an
 * allocator that bears it. */
static void do_interrupted(char **arguments)
{
	struct itimerval often = {{0, 200}, {0, 200}};

	(void)arguments;
	use_alternate_stack();
	handle(SIGALRM, allocate_in_handler);
	setitimer(ITIMER_REAL, &often, NULL);
	while (handled < 600)
		free(malloc(50));
	setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
	puts("interrupted");
}

static sigjmp_buf surface;
static volatile int depth;

static void surface_from_overflow(int number)
{
	(void)number;
	free(malloc(200));
	siglongjmp(surface, 1);
}

static NOINLINE int sink_into_the_stack(int n)
{
	volatile char frame[1000];

	frame[0] = (char)n;
	depth = n;
	if (n < 0)
		return 0;
	return sink_into_the_stack(n + 1) + frame[0];
}

static void do_stack_overflow(char **arguments)
{
	(void)arguments;
	use_alternate_stack();
	handle(SIGSEGV, surface_from_overflow);
	for (volatile int i = 0; i < 5; i++)
		if (!sigsetjmp(surface, 1))
			sink_into_the_stack(0);
	hazard_work(10);
	printf("surfaced %d\n", depth > 1000);
}

#define COROUTINES      8
#define COROUTINE_BYTES (16 * (size_t)1024)

static ucontext_t scheduler, coroutines[COROUTINES];

static NOINLINE void in_coroutine(int i)
{
	for (int n = 0; n < 20; n++) {
		free(malloc(30));
		EXPECT(!swapcontext(&coroutines[i], &scheduler));
	}
	STAY();
}

static NOINLINE void make_coroutine(int i)
{
	ucontext_t *c = &coroutines[i];

	EXPECT(!getcontext(c));
	c->uc_stack.ss_sp = guarded(COROUTINE_BYTES);
	c->uc_stack.ss_size = COROUTINE_BYTES;
	c->uc_link = &scheduler;
	makecontext(c, (void (*)(void))in_coroutine, 1, i);
}

static void do_coroutines(char **arguments)
{
	(void)arguments;
	for (int i = 0; i < COROUTINES; i++)
		make_coroutine(i);
	for (int n = 0; n < 21; n++)
		for (int i = 0; i < COROUTINES; i++)
			EXPECT(!swapcontext(&scheduler, &coroutines[i]));
	puts("coroutines");
}

/* ---- jumps ---- */

static jmp_buf way_out;

static int compare(const void *a, const void *b)
{
	free(malloc(40));
	if (*(const int *)a == 7 || *(const int *)b == 7)
		longjmp(way_out, 1);
	return *(const int *)a - *(const int *)b;
}

static NOINLINE void sort(void)
{
	int numbers[] = {5, 9, 1, 8, 7, 2};

	qsort(numbers, 6, sizeof(int), compare);
}

static void do_jump_out_of_callback(char **arguments)
{
	volatile int jumps = 0;

	(void)arguments;
	while (jumps < 200) {
		if (!setjmp(way_out))
			sort();
		jumps++;
		free(malloc(60));
	}
	printf("jumps %d\n", jumps);
}

static void jump_away(int number)
{
	(void)number;
	siglongjmp(surface, 1);
}

/* Prints how many objects it made, and how often it jumped.  The timer is set
 * anew behind each jump, so that some are made between two of them however slow
 * signals are. */
static void jump_often(void)
{
	struct itimerval once = {{0, 0}, {0, 100}};
	volatile int jumps = 0, objects = 0, in_vain = 0;

	handle(SIGALRM, jump_away);
	if (sigsetjmp(surface, 1)) {
		jumps++;
		EXPECT(++in_vain < 1000);
	}
	setitimer(ITIMER_REAL, &once, NULL);
	while (jumps < 500 || objects < 5000) {
		free(malloc(70));
		objects++;
		in_vain = 0;
	}
	setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
	fprintf(stderr, "%d %d\n", objects, jumps);
}

/* Out of malloc and out of the profiler, for an allocator that bears it; and
 * the program goes on. */
static void do_jump_out_of_malloc(char **arguments)
{
	pthread_t thread;
	sigset_t alarms;

	(void)arguments;
	handle(SIGUSR1, allocate_in_handler);
	jump_often();
	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	EXPECT(!pthread_sigmask(SIG_BLOCK, &alarms, NULL));
	EXPECT(!pthread_create(&thread, NULL, raise_often, NULL));
	EXPECT(!pthread_join(thread, NULL));
	free(malloc(80));
	handled = 0;
	puts("jumped");
}

/* ---- ends ---- */

static void *allocate_for_ever(void *arg)
{
	for (;;)
		hazard_work(1);
	return arg;
}

/* main returns while four threads allocate, in 25 children. */
static void do_exit_while_busy(char **arguments)
{
	(void)arguments;
	hazard_work(20);
	for (int i = 0; i < 25; i++) {
		pid_t pid = fork();
		pthread_t thread;
		int status;

		EXPECT(pid >= 0);
		if (pid == 0) {
			alarm(HUNG_S);
			for (int n = 0; n < 4; n++)
				EXPECT(!pthread_create(&thread, NULL,
						       allocate_for_ever,
						       NULL));
			usleep((useconds_t)i * 100);
			exit(0);
		}
		EXPECT(waitpid(pid, &status, 0) == pid);
		EXPECT(status == 0);
	}
	puts("ended");
}

static long resident_pages(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long size, resident;

	EXPECT(f && fscanf(f, "%ld %ld", &size, &resident) == 2);
	fclose(f);
	return resident;
}

static void *allocate_little(void *arg)
{
	hazard_work(1);
	return arg;
}

/* Memory does not grow with the number of threads that have been. */
static void do_churn(char **arguments)
{
	long before = 0;

	(void)arguments;
	for (int i = 0; i < 10000; i++) {
		pthread_t thread;

		EXPECT(!pthread_create(&thread, NULL, allocate_little, NULL));
		EXPECT(!pthread_join(thread, NULL));
		if (i == 1000)
			before = resident_pages();
	}
	EXPECT(resident_pages() - before < 100);
	puts("churned");
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{"cancel", do_cancel},
		{"alternate_stack", do_alternate_stack},
		{"interrupted", do_interrupted},
		{"stack_overflow", do_stack_overflow},
		{"coroutines", do_coroutines},
		{"jump_out_of_callback", do_jump_out_of_callback},
		{"jump_out_of_malloc", do_jump_out_of_malloc},
		{"exit_while_busy", do_exit_while_busy},
		{"churn", do_churn},
		{NULL, NULL},
	};

	(void)argc;
	return hazard_run(scenarios, argv);
}
