/* SPDX-License-Identifier: MIT */
/* hazard_state SCENARIO: what a call of malloc must leave as it was. */
#include <fcntl.h>
#include <fenv.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "hazard.h"

#define ROUNDS 300

static volatile size_t huge = HUGE_BYTES;

static int errno_at_start = -1;

/* ---- errno ---- */

/* What `expression` makes of errno. */
#define ERRNO_OF(expression)                                                   \
	(errno = 4242, (void)(expression),                                     \
	 printf("%s: %d\n", #expression, errno == 4242 ? 0 : errno))

static void do_errno(char **arguments)
{
	void *volatile p = NULL;
	void *q;

	(void)arguments;
	printf("at start: %d\n", errno_at_start);
	for (int i = 0; i < 2; i++) {
		ERRNO_OF(p = malloc(10));
		ERRNO_OF(p = realloc(p, 200000));
		ERRNO_OF(p = realloc(p, 300));
		ERRNO_OF(q = realloc(p, huge));
		ERRNO_OF(free(p));
		ERRNO_OF(p = malloc(1000000));
		ERRNO_OF(free(p));
		ERRNO_OF(p = calloc(7, 9));
		ERRNO_OF(free(p));
		ERRNO_OF(free(NULL));
		ERRNO_OF(p = aligned_alloc(64, 640));
		ERRNO_OF(p = realloc(p, 0));
		ERRNO_OF(posix_memalign(&q, 32, 10));
		ERRNO_OF(free(q));
		ERRNO_OF(posix_memalign(&q, 3, 10));
		ERRNO_OF(malloc(huge));
		ERRNO_OF(calloc(huge, 4));
		ERRNO_OF(aligned_alloc(64, huge));
	}
}

/* ---- floating point ---- */

struct float_state {
	uint64_t control, status;
};

static struct float_state float_state(void)
{
	struct float_state s = {0, 0};

#ifdef __x86_64__
	uint32_t mxcsr;
	uint16_t control, status;

	__asm__ volatile("stmxcsr %0\n\tfnstcw %1\n\tfnstsw %2"
			 : "=m"(mxcsr), "=m"(control), "=m"(status));
	s = (struct float_state){control, (uint64_t)mxcsr << 16 | status};
#else
	__asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr"
			 : "=r"(s.control), "=r"(s.status));
#endif
	return s;
}

/* Every exception traps, if the processor can do that, and results are rounded
 * up. */
static void do_float(char **arguments)
{
	struct float_state before, after;
	int traps;

	(void)arguments;
	EXPECT(!fesetround(FE_UPWARD));
	traps = feenableexcept(FE_ALL_EXCEPT);
#ifdef __x86_64__
	EXPECT(traps >= 0);
#endif
	(void)traps;
	before = float_state();
	hazard_work(ROUNDS);
	after = float_state();
	EXPECT(!memcmp(&before, &after, sizeof(before)));
	printf("%" PRIx64 " %" PRIx64 "\n", after.control, after.status);
}

/* ---- signals ---- */

/* The lines about signals and threads in /proc/self/status, but for SigQ, which
 * counts those of all processes of the user. */
static void print_status(void)
{
	static char text[8192];
	int fd = open("/proc/self/status", O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	EXPECT(n > 0);
	text[n] = '\0';
	close(fd);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if ((!strncmp(line, "Sig", 3) && line[3] != 'Q') ||
		    !strncmp(line, "ShdPnd", 6) || !strncmp(line, "Threads", 7))
			puts(line);
}

static void do_signals(char **arguments)
{
	sigset_t odd;

	(void)arguments;
	print_status();
	sigemptyset(&odd);
	sigaddset(&odd, SIGALRM);
	sigaddset(&odd, SIGRTMIN + 3);
	EXPECT(!sigprocmask(SIG_BLOCK, &odd, NULL));
	hazard_work(ROUNDS);
	print_status();
}

/* A process-directed signal that this thread waits for: in a process with
 * another thread it would be that thread's, and end the process. */
static void do_waited_signal(char **arguments)
{
	sigset_t set;
	int got = 0;

	(void)arguments;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	EXPECT(!sigprocmask(SIG_BLOCK, &set, NULL));
	hazard_work(ROUNDS);
	usleep(20000); /* time for the other thread to start */
	EXPECT(!kill(getpid(), SIGUSR2));
	EXPECT(!sigwait(&set, &got) && got == SIGUSR2);
	printf("signal %d\n", got);
}

/* ---- stack ---- */

#define STACK_BYTES ((size_t)64 << 10)

static ucontext_t caller, measured;
static void *volatile kept;

static void nothing(void)
{
}

static void call_malloc(void)
{
	kept = malloc(100);
}

static void call_realloc(void)
{
	kept = realloc(kept, 400);
}

static void call_free(void)
{
	free(kept);
}

/* Bytes of a painted stack that `run` touches. */
static size_t depth_of(unsigned char *stack, void (*run)(void))
{
	size_t i = 0;

	memset(stack, 0xaa, STACK_BYTES);
	EXPECT(!getcontext(&measured));
	measured.uc_stack.ss_sp = stack;
	measured.uc_stack.ss_size = STACK_BYTES;
	measured.uc_link = &caller;
	makecontext(&measured, run, 0);
	EXPECT(!swapcontext(&caller, &measured));
	while (i < STACK_BYTES && stack[i] == 0xaa)
		i++;
	return STACK_BYTES - i;
}

/* depths: "NAME BYTES" of each call on a stack that is not the thread's. */
static void do_depths(char **arguments)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} calls[] = {{"nothing", nothing},
		     {"malloc", call_malloc},
		     {"realloc", call_realloc},
		     {"free", call_free}};
	unsigned char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)arguments;
	EXPECT(stack != MAP_FAILED);
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		printf("%s %zu\n", calls[i].name,
		       depth_of(stack, calls[i].run));
}

#ifdef __x86_64__

/* Call a function with the stack eight bytes off, as old assembly does. */
static void *call_misaligned(void *function, size_t a, size_t b)
{
	void *ret;

	__asm__ volatile("pushq %%rbp\n\t"
			 "movq %%rsp, %%rbp\n\t"
			 "andq $-16, %%rsp\n\t"
			 "subq $136, %%rsp\n\t"
			 "call *%1\n\t"
			 "movq %%rbp, %%rsp\n\t"
			 "popq %%rbp"
			 : "=a"(ret), "+b"(function), "+D"(a), "+S"(b)
			 :
			 : "rcx", "rdx", "r8", "r9", "r10", "r11", "memory",
			   "cc");
	return ret;
}

static void do_misaligned(char **arguments)
{
	(void)arguments;
	hazard_work(1); /* nothing is looked up any more */
	for (size_t i = 0; i < ROUNDS; i++) {
		void *p = call_misaligned((void *)malloc, 100 + i, 0);

		p = call_misaligned((void *)realloc, (size_t)p, 2000);
		call_misaligned((void *)free, (size_t)p, 0);
		p = call_misaligned((void *)calloc, i + 1, 10);
		EXPECT(p);
		call_misaligned((void *)free, (size_t)p, 0);
	}
	puts("misaligned");
}

/* ---- code without a frame ---- */

/* push %rbp; mov $0xdead00000001, %rbp; call *%rax; pop %rbp; ret: code of a
 * just-in-time compiler, in no object, with a frame pointer that is a number.
 */
static const unsigned char jitted[] = {
	0x55, 0x48, 0xbd, 0x01, 0x00, 0x00, 0x00, 0xad,
	0xde, 0x00, 0x00, 0xff, 0xd0, 0x5d, 0xc3,
};

static void do_generated_code(char **arguments)
{
	char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)arguments;
	EXPECT(code != MAP_FAILED);
	memcpy(code, jitted, sizeof(jitted));
	EXPECT(!mprotect(code, 4096, PROT_READ | PROT_EXEC));
	for (int i = 0; i < ROUNDS; i++) {
		void *p = (void *)malloc;

		__asm__ volatile("subq $128, %%rsp\n\t"
				 "call *%1\n\t"
				 "addq $128, %%rsp"
				 : "+a"(p)
				 : "b"(code), "D"(100)
				 : "rcx", "rdx", "rsi", "r8", "r9", "r10",
				   "r11", "memory", "cc");
		EXPECT(p);
		free(p);
	}
	puts("generated");
}

#endif

/* ---- descriptors ---- */

/* The lowest free descriptor is 3 before and after. */
static void do_descriptors(char **arguments)
{
	(void)arguments;
	for (int i = 0; i < 2; i++) {
		int fd = open("/dev/null", O_RDONLY);

		printf("descriptor %d\n", fd);
		close(fd);
		hazard_work(ROUNDS);
	}
}

/* Started with descriptor 2 closed, it has a file of its own there. */
static void do_closed_error(char **arguments)
{
	int fd = open(arguments[0], O_RDWR | O_CREAT | O_TRUNC, 0600);
	char text[100] = "";

	if (fd != 2)
		_exit(70);
	hazard_work(ROUNDS);
	if (write(fd, "mine", 4) != 4 || pread(fd, text, 99, 0) < 0)
		_exit(71);
	puts(text);
}

static void do_user_namespace(char **arguments)
{
	(void)arguments;
	hazard_work(ROUNDS);
	usleep(20000); /* time for the other thread to start */
	puts(unshare(CLONE_NEWUSER) ? strerror(errno) : "entered");
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{"errno", do_errno},
		{"float", do_float},
		{"signals", do_signals},
		{"waited_signal", do_waited_signal},
		{"depths", do_depths},
#ifdef __x86_64__
		{"misaligned", do_misaligned},
		{"generated_code", do_generated_code},
#endif
		{"descriptors", do_descriptors},
		{"closed_error", do_closed_error},
		{"user_namespace", do_user_namespace},
		{NULL, NULL},
	};

	errno_at_start = errno;
	(void)argc;
	return hazard_run(scenarios, argv);
}
