/* SPDX-License-Identifier: MIT */
/*
 * A library whose constructor runs before the profiler's, and takes away what
 * REFUSE says: a system call by its number (REFUSE=CALL:ERRNO), descriptors
 * (REFUSE=descriptors), the environment (REFUSE=environment), or private
 * mappings of more than a MiB (REFUSE=reservations).
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "hazard_filter.h"

#define LOAD(field)                                                            \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))

/* As under vm.overcommit_memory=2 when everything is promised. */
static void refuse_reservations(void)
{
	struct sock_filter code[] = {
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 5),
		LOAD(args[3]),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_PRIVATE, 0, 3),
		LOAD(args[1]),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 1 << 20, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(*code), code};

	EXPECT(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	EXPECT(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static void __attribute__((constructor)) construct(void)
{
	const char *what = getenv("REFUSE");
	int call, err;

	EXPECT(what);
	if (strcmp(what, "descriptors") == 0) {
		while (open("/dev/null", O_RDONLY) >= 0)
			;
		return;
	}
	if (strcmp(what, "reservations") == 0) {
		refuse_reservations();
		return;
	}
	if (strcmp(what, "environment") == 0) {
		environ = NULL;
		return;
	}
	EXPECT(sscanf(what, "%d:%d", &call, &err) == 2);
	hazard_filter(&call, 1, SECCOMP_RET_ERRNO | (unsigned int)err,
		      SECCOMP_RET_ALLOW);
}
