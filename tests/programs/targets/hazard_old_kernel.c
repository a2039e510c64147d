/* SPDX-License-Identifier: MIT */
/*
 * program_hazard_old_kernel NUMBERS PROGRAM ARGUMENT...: the program, with
 * PRELOAD preloaded, on a kernel that does not know these advices of
 * madvise(2), numbers with commas between them; "futex" among them: nor that
 * call with an operation on a word, which is "not implemented" then.
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

static void refuse(const char *what)
{
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
	EXPECT(!setenv("LD_PRELOAD", getenv("PRELOAD"), 1));
	execvp(argv[2], argv + 2);
	return 1;
}
