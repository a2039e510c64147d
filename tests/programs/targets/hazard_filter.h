/* SPDX-License-Identifier: MIT */
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "truth.h"

/*
 * From now on `action` (SECCOMP_RET_*) for the n system calls, at most 32, and
 * `otherwise` for all others.
 */
static inline void hazard_filter(const int *calls, unsigned int n,
				 unsigned int action, unsigned int otherwise)
{
	struct sock_filter code[36];
	struct sock_fprog program = {0, code};
	unsigned int at = 0;

	EXPECT(n <= 32);
	code[at++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (unsigned int i = 0; i < n; i++)
		code[at++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)calls[i],
			(unsigned char)(n - i), 0);
	code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise);
	code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
	program.len = (unsigned short)at;
	EXPECT(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	EXPECT(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}
