/* SPDX-License-Identifier: MIT */
/* hazard_resources SCENARIO: what a process may be refused, or give up, while
 * it runs. */
#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "hazard.h"
#include "hazard_filter.h"

#define ROUNDS 2000
#define NOBODY 65534

static void limit(int which, rlim_t to)
{
	struct rlimit l = {to, to};

	EXPECT(!setrlimit(which, &l));
}

static NOINLINE void in_child(void)
{
	hazard_work(20);
	STAY();
}

/* A child that allocates, and may or may not get a file for that. */
static void have_child(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		in_child();
		exit(0);
	}
	EXPECT(pid > 0);
	EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
}

static NOINLINE void before(void)
{
	hazard_work(ROUNDS);
	STAY();
}

static NOINLINE void after(void)
{
	hazard_work(ROUNDS);
	STAY();
}

/* Whoever writes from now on gets SIGXFSZ. */
static void do_file_size(char **arguments)
{
	(void)arguments;
	before();
	limit(RLIMIT_FSIZE, 0);
	after();
	have_child();
}

/* Pages of address space. */
static rlim_t address_space(void)
{
	char text[64] = "";
	int fd = open("/proc/self/statm", O_RDONLY);

	EXPECT(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	return strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* ARGUMENT more bytes of address space; all that is freed can be used again. */
static void do_address_space(char **arguments)
{
	(void)arguments;
	before();
	limit(RLIMIT_AS, address_space() + strtoull(arguments[0], NULL, 10));
	EXPECT(!malloc((size_t)1 << 30));
	after();
}

static void fill(int fd, size_t step)
{
	static const char text[65536] = "full";
	off_t at = lseek(fd, 0, SEEK_END);

	while (step >= 4096)
		if (posix_fallocate(fd, at, (off_t)step))
			step /= 2;
		else
			at += (off_t)step;
	EXPECT(lseek(fd, at, SEEK_SET) == at);
	for (step = sizeof(text); step; step /= 2)
		while (write(fd, text, step) > 0)
			;
	EXPECT(errno == ENOSPC);
}

/* The file system of ARGUMENT has no room any more, and everything is written
 * out: whoever stores to a page of it now may need more. */
static void do_full_disk(char **arguments)
{
	int fd = open(arguments[0], O_CREAT | O_WRONLY, 0600);

	EXPECT(fd >= 0);
	before();
	for (int i = 0; i < 3; i++) {
		fill(fd, (size_t)1 << 28);
		EXPECT(!syncfs(fd));
		after();
	}
	have_child();
	close(fd);
	puts("full");
}

static void do_locked_memory(char **arguments)
{
	struct rusage usage;

	(void)arguments;
	EXPECT(!mlockall(MCL_CURRENT | MCL_FUTURE));
	before();
	EXPECT(!getrusage(RUSAGE_SELF, &usage));
	EXPECT(usage.ru_maxrss < 48 << 10);
	after();
}

static void do_descriptors(char **arguments)
{
	(void)arguments;
	before();
	limit(RLIMIT_NOFILE, 32);
	while (open("/dev/null", O_RDONLY) >= 0)
		;
	EXPECT(errno == EMFILE);
	after();
	have_child();
}

static void do_chroot(char **arguments)
{
	before();
	EXPECT(!chroot(arguments[0]) && !chdir("/"));
	after();
	have_child();
}

/* As servers do once they have their port. */
static void do_dropped_privileges(char **arguments)
{
	(void)arguments;
	before();
	EXPECT(!setgroups(0, NULL));
	EXPECT(!setresgid(NOBODY, NOBODY, NOBODY));
	EXPECT(!setresuid(NOBODY, NOBODY, NOBODY));
	EXPECT(!prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
	after();
	have_child();
}

/* The directory ARGUMENT is elsewhere for a while. */
static void do_vanished_directory(char **arguments)
{
	char elsewhere[4096];

	before();
	snprintf(elsewhere, sizeof(elsewhere), "%s.away", arguments[0]);
	EXPECT(!rename(arguments[0], elsewhere));
	after();
	have_child();
	EXPECT(!rename(elsewhere, arguments[0]));
}

static void *work_in_thread(void *arg)
{
	after();
	return arg;
}

/* Only what an allocator needs: everything else ends the process. */
static void enter_sandbox(void)
{
	static const int calls[] = {
		SYS_write, SYS_mmap,  SYS_munmap,   SYS_mremap, SYS_madvise,
		SYS_brk,   SYS_futex, SYS_mprotect, SYS_exit,   SYS_exit_group,
	};

	hazard_filter(calls, sizeof(calls) / sizeof(*calls), SECCOMP_RET_ALLOW,
		      SECCOMP_RET_KILL_PROCESS);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Longer than what a profiler may do every 100 ms is left alone. */
static void do_sandbox(char **arguments)
{
	uint64_t start;

	(void)arguments;
	before();
	enter_sandbox();
	start = now_ns();
	while (now_ns() - start < 150000000u)
		;
	after();
}

/* The child enters it before it has allocated anything. */
static void do_sandboxed_child(char **arguments)
{
	pid_t pid;
	int status;

	(void)arguments;
	before();
	pid = fork();
	if (pid == 0) {
		enter_sandbox();
		in_child();
		exit(0);
	}
	EXPECT(pid > 0);
	EXPECT(waitpid(pid, &status, 0) == pid);
	printf("status %d\n", status);
}

/* No more memory from the system, no more files: errors, not signals. */
static void do_refused_memory(char **arguments)
{
	static const int calls[] = {
		SYS_mmap, SYS_mremap, SYS_madvise,
		SYS_brk,  SYS_openat, SYS_ftruncate,
#ifdef SYS_open
		SYS_open,
#endif
	};
	pthread_t thread;

	(void)arguments;
	before();
	EXPECT(!pthread_create(&thread, NULL, work_in_thread, NULL));
	hazard_filter(calls, sizeof(calls) / sizeof(*calls),
		      SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW);
	after();
	EXPECT(!pthread_join(thread, NULL));
}

/* ARGUMENT objects that stay, with a limit of the address space since before
 * the start: how many pieces can be mapped then, and threads be made. */
static void do_address_space_left(char **arguments)
{
	const size_t piece = 256 << 10;
	unsigned long n = strtoul(arguments[0], NULL, 10), pieces = 0;
	pthread_attr_t stack;
	pthread_t thread;

	for (unsigned long i = 0; i < n; i++)
		EXPECT(malloc(100));
	EXPECT(!pthread_attr_init(&stack));
	EXPECT(!pthread_attr_setstacksize(&stack, piece));
	EXPECT(!pthread_create(&thread, &stack, work_in_thread, NULL));
	EXPECT(!pthread_join(thread, NULL));
	while (mmap(NULL, piece, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0) != MAP_FAILED)
		pieces++;
	printf("pieces %lu\n", pieces);
}

/* Every third request fails: "given BYTES OBJECTS". */
static NOINLINE void in_failing(struct truth *truth)
{
	char *p = malloc(100), *q = calloc(10, 30), *r;

	truth_add(truth, p, 100);
	truth_add(truth, q, 300);
	r = realloc(p, 700);
	truth_add(truth, r, 700);
	free(r ? r : p);
	free(q);
	p = aligned_alloc(64, 128);
	truth_add(truth, p, 128);
	free(p);
	STAY();
}

static void do_failing_allocator(char **arguments)
{
	int *failing = dlsym(RTLD_DEFAULT, "hazard_failing");
	struct truth truth = {0, 0};

	(void)arguments;
	EXPECT(failing);
	before();
	*failing = 1;
	for (int i = 0; i < ROUNDS; i++)
		in_failing(&truth);
	*failing = 0;
	truth_print("given", &truth);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{"file_size", do_file_size},
		{"address_space", do_address_space},
		{"address_space_left", do_address_space_left},
		{"full_disk", do_full_disk},
		{"locked_memory", do_locked_memory},
		{"descriptors", do_descriptors},
		{"chroot", do_chroot},
		{"dropped_privileges", do_dropped_privileges},
		{"vanished_directory", do_vanished_directory},
		{"sandbox", do_sandbox},
		{"sandboxed_child", do_sandboxed_child},
		{"refused_memory", do_refused_memory},
		{"failing_allocator", do_failing_allocator},
		{NULL, NULL},
	};

	(void)argc;
	return hazard_run(scenarios, argv);
}
