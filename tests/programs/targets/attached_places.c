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
 *   leave   end the main thread; another one stays
 *   filter  die from here on of opening a file, of making one in memory, and of
 *           mapping code
 *
 * "end" ends it, with "ok".
 */
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "truth.h"

#define OBJECTS 1000
#define BYTES   1000
#define HELD    99 /* descriptors of the constructor, attached_holding.c */
#define BEGUN   100

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

static void *stay(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void leave_alone(void)
{
	pthread_t t;

	EXPECT(pthread_create(&t, NULL, stay, NULL) == 0);
	answer("left");
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

int main(int argc, char **argv)
{
	pthread_t holder = 0;
	char line[64];

	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, NULL, _IONBF, 0);
	answer("begun");
	while (fgets(line, sizeof(line), stdin) && strcmp(line, "end\n") != 0) {
		if (strcmp(line, "go\n") == 0)
			allocate_some();
		else if (strcmp(line, "exec\n") == 0)
			execv("/proc/self/exe", argv);
		else if (strcmp(line, "vfork\n") == 0)
			wait_as_vfork();
		else if (strcmp(line, "hold\n") == 0 && argc == 2)
			holder = hold_lock(argv[1]);
		else if (strcmp(line, "drop\n") == 0)
			drop_lock(holder);
		else if (strcmp(line, "leave\n") == 0)
			leave_alone();
		else if (strcmp(line, "filter\n") == 0)
			filter_calls();
	}
	puts("ok");
	return 0;
}
