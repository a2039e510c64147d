/* SPDX-License-Identifier: MIT */
/*
 * A process to be attached to, at places where that is hard.  It does what its
 * standard input says:
 *
 *   go      allocate some objects, with a line of how much
 *   exec    execute itself anew
 *   vfork   wait for a child as vfork does, until somebody kills the child
 *   hold    load the library argv[1] in a thread, whose constructor waits, with
 *           the loader's lock; "drop": until now
 *   leave   end the main thread; another one goes on
 *   filter  die from here on of opening a file, of making one in memory, and of
 *           mapping code
 *   exchange
 *           on SIGUSR1 put the file argv[1] in the place of a memory file of
 *           the library
 *   load    the library argv[1]; or, if it is a directory, what is in it
 *   deny    have no memory from here on that is both written to and executed
 *   strict  die of any system call but read and write
 *   context do all further on a stack made by makecontext
 *   crowd   have 5,000 more threads, each of which allocates once and waits
 *
 * "end" ends it, with "ok".
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "truth.h"

#define OBJECTS 1000
#define BYTES   1000
#define HELD    99 /* descriptors of the constructor, attached_holding.c */
#define BEGUN   100
#define CROWD   5000

static int held[2], begun[2];

static void allocate_some(void)
{
	struct truth truth = {0, 0};

	for (int i = 0; i < OBJECTS; i++) {
		void *p = malloc(BYTES);

		truth_add(&truth, p, BYTES);
		free(p);
	}
	truth_print("totals", &truth);
}

static void answer(const char *name)
{
	const struct truth none = {0, 0};

	truth_print(name, &none);
}

static void wait_as_vfork(void)
{
	pid_t child = vfork();
	int status;

	if (child == 0)
		for (;;)
			pause();
	EXPECT(child > 0 && waitpid(child, &status, 0) == child);
	answer("back");
}

static void *load(void *path)
{
	EXPECT(dlopen(path, RTLD_NOW));
	return NULL;
}

static void load_all(char *path)
{
	DIR *folder = opendir(path);
	struct dirent *e;
	char name[512];

	if (!folder)
		load(path);
	while (folder && (e = readdir(folder)) != NULL) {
		snprintf(name, sizeof(name), "%s/%s", path, e->d_name);
		if (e->d_name[0] != '.')
			load(name);
	}
	if (folder)
		closedir(folder);
	answer("loaded");
}

static pthread_t hold_lock(char *path)
{
	pthread_t t;
	char c;

	EXPECT(pipe(held) == 0 && pipe(begun) == 0);
	EXPECT(dup2(held[0], HELD) == HELD && dup2(begun[1], BEGUN) == BEGUN);
	EXPECT(pthread_create(&t, NULL, load, path) == 0);
	EXPECT(read(begun[0], &c, 1) == 1);
	answer("held");
	return t;
}

static void drop_lock(pthread_t t)
{
	EXPECT(write(held[1], "", 1) == 1);
	pthread_join(t, NULL);
	answer("dropped");
}

static int obey(char **argv);

static void *go_on(void *arg)
{
	exit(obey(arg));
}

static void leave_alone(char **argv)
{
	pthread_t t;

	answer("left");
	EXPECT(pthread_create(&t, NULL, go_on, argv) == 0);
	pthread_exit(NULL);
}

#define LOAD(field)                                                            \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define DIES BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static void filter_calls(void)
{
	struct sock_filter code[] = {
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 4),
		DIES,
		LOAD(args[2]),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
		DIES,
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(code) / sizeof(code[0]),
					   code};

	EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	EXPECT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
	answer("filtered");
}

static void put_in_place(int file)
{
	char path[64], name[64];

	for (int fd = 0; fd < 64; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, name, sizeof(name) - 1);
		if (n > 0 && memmem(name, (size_t)n, "libsampleprof", 13))
			EXPECT(dup2(file, fd) == fd);
	}
}

static void *exchange(void *path)
{
	/* It may have no right to read the file. */
	int file = open(path, O_RDONLY), signal;
	sigset_t set;

	if (file < 0)
		file = open(path, O_PATH);
	EXPECT(file >= 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	for (;;) {
		EXPECT(sigwait(&set, &signal) == 0);
		put_in_place(file);
	}
	return NULL;
}

static void exchange_files(char *path)
{
	sigset_t set;
	pthread_t t;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	EXPECT(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
	EXPECT(pthread_create(&t, NULL, exchange, path) == 0);
	answer("ready");
}

#ifndef PR_SET_MDWE
#define PR_SET_MDWE              65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

static void deny_written_code(void)
{
	const int r = prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0);

	answer(r == 0 ? "denied" : "allowed");
}

static void forbid_calls(void)
{
	answer("strict");
	EXPECT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
}

static pthread_barrier_t crowd;

static void *allocate_one(void *arg)
{
	free(malloc(BYTES));
	pthread_barrier_wait(&crowd);
	for (;;)
		pause();
	return arg;
}

static void have_threads(void)
{
	pthread_attr_t small;
	pthread_t t;

	EXPECT(pthread_barrier_init(&crowd, NULL, CROWD + 1) == 0);
	EXPECT(pthread_attr_init(&small) == 0);
	EXPECT(pthread_attr_setstacksize(&small, 65536) == 0);
	for (int i = 0; i < CROWD; i++)
		EXPECT(pthread_create(&t, &small, allocate_one, NULL) == 0);
	pthread_barrier_wait(&crowd);
	answer("crowd");
}

static void serve(char **argv);

static char **arguments;

static void serve_on(void)
{
	answer("context");
	serve(arguments);
	exit(0);
}

static void change_stack(char **argv)
{
	static char stack[1 << 18];
	static ucontext_t context;

	arguments = argv;
	EXPECT(getcontext(&context) == 0);
	context.uc_stack.ss_sp = stack;
	context.uc_stack.ss_size = sizeof(stack);
	makecontext(&context, serve_on, 0);
	setcontext(&context);
}

static void serve(char **argv)
{
	pthread_t holder = 0;
	char line[64];

	while (fgets(line, sizeof(line), stdin) && strcmp(line, "end\n") != 0) {
		if (strcmp(line, "go\n") == 0)
			allocate_some();
		else if (strcmp(line, "exec\n") == 0)
			execv("/proc/self/exe", argv);
		else if (strcmp(line, "vfork\n") == 0)
			wait_as_vfork();
		else if (strcmp(line, "hold\n") == 0 && argv[1])
			holder = hold_lock(argv[1]);
		else if (strcmp(line, "drop\n") == 0)
			drop_lock(holder);
		else if (strcmp(line, "leave\n") == 0)
			leave_alone(argv);
		else if (strcmp(line, "filter\n") == 0)
			filter_calls();
		else if (strcmp(line, "exchange\n") == 0 && argv[1])
			exchange_files(argv[1]);
		else if (strcmp(line, "load\n") == 0 && argv[1])
			load_all(argv[1]);
		else if (strcmp(line, "deny\n") == 0)
			deny_written_code();
		else if (strcmp(line, "strict\n") == 0)
			forbid_calls();
		else if (strcmp(line, "context\n") == 0)
			change_stack(argv);
		else if (strcmp(line, "crowd\n") == 0)
			have_threads();
	}
	puts("ok");
}

static int obey(char **argv)
{
	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, NULL, _IONBF, 0);
	answer("begun");
	serve(argv);
	return 0;
}

int main(int argc, char **argv)
{
	(void)argc;
	return obey(argv);
}
