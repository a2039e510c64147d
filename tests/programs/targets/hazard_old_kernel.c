/* SPDX-License-Identifier: MIT */
/*
 * program_hazard_old_kernel MISSING PROGRAM ARGUMENT...: the program, with
 * PRELOAD preloaded if there is one, on a kernel that does not know what is
 * MISSING, with commas between: numbers are advices of madvise(2), "futex" is
 * that call with an operation on a word, and names are those of calls, which
 * are "not implemented" then.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "truth.h"

static struct sock_filter code[64];
static unsigned short at;

static void load(size_t offset)
{
	code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						  (unsigned int)offset);
}

/* The next `skip` instructions are for that number only. */
static void only_if(unsigned int number, unsigned char skip)
{
	code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
						  number, 0, skip);
}

static void answer(unsigned int err)
{
	code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
						  SECCOMP_RET_ERRNO | err);
}

#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static const struct {
	const char *name;
	unsigned int number;
} calls[] = {
	{"close_range", SYS_close_range},
	{"getrandom", SYS_getrandom},
	{"memfd_create", SYS_memfd_create},
	{"openat2", SYS_openat2},
	{"process_vm_readv", SYS_process_vm_readv},
	{"process_vm_writev", SYS_process_vm_writev},
	{"renameat2", SYS_renameat2},
	{"statx", SYS_statx},
};

static void refuse(const char *what)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (strcmp(what, calls[i].name) == 0) {
			load(offsetof(struct seccomp_data, nr));
			only_if(calls[i].number, 1);
			answer(ENOSYS);
			return;
		}
	load(offsetof(struct seccomp_data, nr));
	if (strcmp(what, "futex") == 0) {
		only_if(SYS_futex, 3);
		load(offsetof(struct seccomp_data, args[1]));
		only_if(FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 1);
		answer(ENOSYS);
		return;
	}
	only_if(SYS_madvise, 3);
	load(offsetof(struct seccomp_data, args[2]));
	only_if((unsigned int)atoi(what), 1);
	answer(EINVAL);
}

int main(int argc, char **argv)
{
	struct sock_fprog program = {0, code};

	EXPECT(argc > 2);
	for (char *what = strtok(argv[1], ","); what; what = strtok(NULL, ","))
		refuse(what);
	code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
						  SECCOMP_RET_ALLOW);
	program.len = at;
	EXPECT(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	EXPECT(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
	if (getenv("PRELOAD"))
		EXPECT(!setenv("LD_PRELOAD", getenv("PRELOAD"), 1));
	execvp(argv[2], argv + 2);
	return 1;
}
