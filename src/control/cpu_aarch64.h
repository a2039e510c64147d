/* SPDX-License-Identifier: MIT */
#pragma once

#include <asm/ptrace.h>
#include <asm/sigcontext.h>
#include <elf.h>
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <time.h>

/* The contracts of these names are in cpu.h. */

#define SP_CPU_MACHINE EM_AARCH64
#define SP_CPU_NAME    "aarch64"

/* ---- registers ---- */

/* Older kernel headers do not have these. */
#define SP_CPU_NT_PAC_MASK 0x406
#define SP_CPU_NT_SSVE     0x40b

typedef struct {
	struct user_regs_struct general;
	uint64_t thread;    /* tpidr_el0 */
	uint64_t signature; /* mask: the signature's bits in an address */
	uint64_t call;      /* x8, even if the kernel restarts another call */
	uint32_t code[2];   /* the instruction before pc, the one at pc */
} sp_cpu_regs;

#define SP_CPU_RED_ZONE 0
/* SVE registers of 2048 bits, the longest ones, take less than 9 KiB. */
#define SP_CPU_VECTOR_MAX 16384

static inline bool sp_cpu_read_set(pid_t tid, long set, void *ret, size_t bytes)
{
	struct iovec there = {ret, bytes};

	return ptrace(PTRACE_GETREGSET, tid, set, &there) == 0 &&
	       there.iov_len == bytes;
}

/* In streaming mode the thread has other vector registers, and many
 * instructions raise a fault: functions of the C library would fail. */
static inline bool sp_cpu_is_streaming(pid_t tid)
{
	struct user_sve_header header;

	return sp_cpu_read_set(tid, SP_CPU_NT_SSVE, &header, sizeof(header)) &&
	       (header.flags & SVE_PT_REGS_MASK) == SVE_PT_REGS_SVE &&
	       header.size > sizeof(header);
}

/* The library diverts functions (agent/divert). */
#define SP_CPU_DIVERTS 0

static inline bool sp_cpu_read(pid_t tid, sp_cpu_regs *ret)
{
	uint64_t masks[2] = {0, 0}; /* for addresses of data, of code */
	struct iovec here = {ret->code, sizeof(ret->code)}, there;

	if (!sp_cpu_read_set(tid, NT_PRSTATUS, &ret->general,
			     sizeof(ret->general)) ||
	    !sp_cpu_read_set(tid, NT_ARM_TLS, &ret->thread,
			     sizeof(ret->thread)) ||
	    sp_cpu_is_streaming(tid))
		return false;
	if (!sp_cpu_read_set(tid, SP_CPU_NT_PAC_MASK, masks, sizeof(masks)))
		masks[1] = 0;
	ret->signature = masks[1];
	ret->call = ret->general.regs[8];
	there.iov_base = (void *)(uintptr_t)(ret->general.pc - 4);
	there.iov_len = sizeof(ret->code);
	if (process_vm_readv(tid, &here, 1, &there, 1, 0) !=
	    (ssize_t)sizeof(ret->code))
		memset(ret->code, 0, sizeof(ret->code));
	return true;
}

static inline bool sp_cpu_write(pid_t tid, const sp_cpu_regs *to)
{
	struct user_regs_struct copy = to->general;
	struct iovec regs = {&copy, sizeof(copy)};

	return ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &regs) == 0;
}

/* The set NT_ARM_SVE exists only on processors with SVE. */
static inline bool sp_cpu_read_vector(pid_t tid, void *ret, uint32_t *ret_bytes)
{
	struct iovec vector = {ret, SP_CPU_VECTOR_MAX};

	if (ptrace(PTRACE_GETREGSET, tid, NT_ARM_SVE, &vector) != 0) {
		vector.iov_len = sizeof(struct user_fpsimd_state);
		if (ptrace(PTRACE_GETREGSET, tid, NT_PRFPREG, &vector) != 0)
			return false;
	}
	*ret_bytes = (uint32_t)vector.iov_len;
	return true;
}

static inline bool sp_cpu_has_sve(uint32_t vector_bytes)
{
	return vector_bytes != sizeof(struct user_fpsimd_state);
}

static inline void sp_cpu_write_vector(pid_t tid, void *from, uint32_t bytes)
{
	struct iovec vector = {from, bytes};

	ptrace(PTRACE_SETREGSET, tid,
	       sp_cpu_has_sve(bytes) ? NT_ARM_SVE : NT_PRFPREG, &vector);
}

static inline uint64_t sp_cpu_pc(const sp_cpu_regs *r)
{
	return r->general.pc;
}

static inline uint64_t sp_cpu_sp(const sp_cpu_regs *r)
{
	return r->general.sp;
}

static inline uint64_t sp_cpu_thread_pointer(const sp_cpu_regs *r)
{
	return r->thread;
}

static inline uint64_t sp_cpu_result(const sp_cpu_regs *r)
{
	return r->general.regs[0];
}

static inline uint64_t sp_cpu_strip_signature(const sp_cpu_regs *r,
					      uint64_t address)
{
	return address & ~r->signature;
}

/* The return address in x30 may be signed. */
#define SP_CPU_DWARF_REGS 32

static inline void sp_cpu_dwarf(const sp_cpu_regs *r,
				uint64_t ret[SP_CPU_DWARF_REGS])
{
	memcpy(ret, r->general.regs, sizeof(r->general.regs));
	ret[30] = sp_cpu_strip_signature(r, r->general.regs[30]);
	ret[31] = r->general.sp;
}

/* ---- system calls ---- */

/* There are none.  SYS_read is in the list already, but an initialiser needs
 * an element. */
#define SP_CPU_OLD_WAITS SYS_read
#define SP_CPU_SVC       0xd4000001u

/*
 * Before a stop outside a system call, the kernel sets pc back to the
 * instruction of the interrupted system call, and forgets the number.  x8 still
 * has the number.
 */
static inline long sp_cpu_syscall(const sp_cpu_regs *r)
{
	return r->code[0] == SP_CPU_SVC || r->code[1] == SP_CPU_SVC
		       ? (long)r->general.regs[8]
		       : -1;
}

static inline uint64_t sp_cpu_first_argument(const sp_cpu_regs *r)
{
	return r->general.regs[0];
}

static inline bool sp_cpu_is_interrupted(const sp_cpu_regs *r)
{
	return r->code[1] == SP_CPU_SVC;
}

/*
 * For a call that waits for a relative time, the kernel has kept the end of
 * that time, and restarts the call as SYS_restart_syscall.  It does so only if
 * it resumes the thread from this stop: after remote calls the thread would
 * wait for the full time once more.
 */
static inline bool sp_cpu_hides_restart(const sp_cpu_regs *r)
{
	const unsigned long long *args = r->general.regs;

	if (!sp_cpu_is_interrupted(r))
		return false;
	switch (args[8]) {
	case SYS_nanosleep:
		return true;
	case SYS_clock_nanosleep:
		return !(args[1] & TIMER_ABSTIME);
	case SYS_futex:
		return (args[1] & FUTEX_CMD_MASK) == FUTEX_WAIT && args[3];
	default:
		return false;
	}
}

static inline void sp_cpu_take_restart(sp_cpu_regs *r, const sp_cpu_regs *begun)
{
	r->general.regs[8] = begun->general.regs[8];
}

/* The kernel set pc back to the call before the signal was pending, so it does
 * not return EINTR by itself. */
static inline void sp_cpu_interrupt_wait(sp_cpu_regs *r)
{
	if (!sp_cpu_is_interrupted(r))
		return;
	switch (r->general.regs[8]) {
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_restart_syscall:
	case SYS_ppoll:
	case SYS_pselect6:
	case SYS_rt_sigsuspend:
		r->general.regs[0] = (unsigned long long)-EINTR;
		r->general.pc += 4;
	}
}

static inline bool sp_cpu_skip(pid_t tid)
{
	int none = -1;
	struct iovec number = {&none, sizeof(none)};

	return ptrace(PTRACE_SETREGSET, tid, NT_ARM_SYSTEM_CALL, &number) == 0;
}

/* The code of getppid: at the instruction of a call that waits, the kernel
 * would restart that call. */
#define SP_CPU_SYSCALL_AT 4
static const uint32_t sp_cpu_syscall_code[] = {
	0xd2800008u | SYS_getppid << 5, /* mov x8, #SYS_getppid */
	SP_CPU_SVC, 0xd65f03c0,         /* ret */
};
static const uint32_t sp_cpu_sigreturn_code[] = {
	0xd2800008u | SYS_rt_sigreturn << 5, /* mov x8, #SYS_rt_sigreturn */
	SP_CPU_SVC,
};

/* PSTATE.BTYPE.  If it is zero, no branch was made, and the instruction at pc
 * need not be a branch target. */
#define SP_CPU_BRANCHED 0xc00u

static inline void sp_cpu_set_syscall(sp_cpu_regs *r, uint64_t pc, long n,
				      const uint64_t args[6])
{
	r->general.pc = pc;
	r->general.pstate &= ~(uint64_t)SP_CPU_BRANCHED;
	r->general.regs[8] = r->call = (uint64_t)n;
	for (int i = 0; i < 6; i++)
		r->general.regs[i] = args[i];
}

static inline void sp_cpu_set_sigreturn(sp_cpu_regs *r, uint64_t frame,
					uint64_t code)
{
	r->general.sp = frame;
	r->general.regs[30] = code;
}

/* ---- calls ---- */

/* x8 has the address for a large result.  x19: calls, x20: n, x21: frame, x23:
 * in a hurry. */
static const uint32_t sp_cpu_code[] = {
	0xb4000174,                    /* next: cbz x20, done */
	0xa9408660,                    /* ldp x0, x1, [x19, #8] */
	0xa9418e62,                    /* ldp x2, x3, [x19, #24] */
	0xa9429664,                    /* ldp x4, x5, [x19, #40] */
	0xaa0003e8,                    /* mov x8, x0 */
	0xf9400270,                    /* ldr x16, [x19] */
	0xd63f0200,                    /* blr x16 */
	0xf9001e60,                    /* str x0, [x19, #56] */
	0x91010273,                    /* add x19, x19, #64 */
	0xd1000694,                    /* sub x20, x20, #1 */
	0x17fffff6,                    /* b next */
	0xd2800008u | SYS_getpid << 5, /* done: mov x8, #SYS_getpid */
	SP_CPU_SVC,                    /* svc #0 */
	0xaa0003f6,                    /* mov x22, x0 */
	0xd2800008u | SYS_gettid << 5, /* mov x8, #SYS_gettid */
	SP_CPU_SVC,                    /* svc #0 */
	0xaa0003e1,                    /* mov x1, x0 */
	0xaa1603e0,                    /* mov x0, x22 */
	0xd2800002u | SIGWINCH << 5,   /* mov x2, #SIGWINCH */
	0xd2800008u | SYS_tgkill << 5, /* mov x8, #SYS_tgkill */
	SP_CPU_SVC,                    /* svc #0 */
	0xb4000237,                    /* cbz x23, back */
	0xd2800000,                    /* mov x0, #0 */
	0xd2a80001,                    /* mov x1, #SP_HURRY_CALM */
	0xf81f0fff,                    /* str xzr, [sp, #-16]! */
	0x910003e2,                    /* mov x2, sp */
	0xd2800008u | SYS_sched_setscheduler << 5, /* mov x8, #... */
	SP_CPU_SVC,                                /* svc #0 */
	0xd2800000,                                /* mov x0, #PRIO_PROCESS */
	0xd2800001,                                /* mov x1, #0 */
	0xd2800002,                                /* mov x2, #SP_HURRY_NICE */
	0xd2800008u | SYS_setpriority << 5,        /* mov x8, #... */
	SP_CPU_SVC,                                /* svc #0 */
	0xd2800000,                                /* mov x0, #0 */
	0xd2800001, /* mov x1, #SP_HURRY_POLICY */
	0x910003e2, /* mov x2, sp */
	0xd2800008u | SYS_sched_setscheduler << 5, /* mov x8, #... */
	SP_CPU_SVC,                                /* svc #0 */
	0x910002bf,                                /* back: mov sp, x21 */
	0xd2800008u | SYS_rt_sigreturn << 5, /* mov x8, #SYS_rt_sigreturn */
	SP_CPU_SVC,                          /* svc #0 */
};

#define SP_CPU_CODE_END 0x54

/* x0 must not look like the result of an interrupted system call. */
static inline void sp_cpu_set_run(sp_cpu_regs *r, uint64_t pc, uint64_t calls,
				  uint64_t n, uint64_t frame, bool in_hurry)
{
	r->general.pc = pc;
	r->general.regs[23] = in_hurry;
	r->general.sp = frame;
	r->general.pstate &= ~(uint64_t)SP_CPU_BRANCHED;
	r->general.regs[0] = 0;
	r->general.regs[19] = calls;
	r->general.regs[20] = n;
	r->general.regs[21] = frame;
	r->general.regs[29] = 0; /* ends the chain of frame pointers */
	r->general.regs[30] = 0;
}

/* ---- signal frames ---- */

#define SP_CPU_FRAME_OFFSET 0

struct sp_cpu_frame {
	char info[128];
	uint64_t flags, link;
	uint64_t stack[3];
	uint64_t sigmask;
	uint64_t reserved[15];
	uint64_t padding; /* to a multiple of 16 */
	struct sigcontext context;
};

/*
 * Writes the records of vector registers: always the 128-bit record, and the
 * SVE record if the thread uses SVE and the record fits, as it does up to 512
 * bits.  With longer registers, a thread that returns through this frame loses
 * the bits above 128.
 */
static inline void sp_cpu_make_vectors(unsigned char *to, size_t room,
				       const unsigned char *vector, uint32_t n)
{
	const struct user_sve_header *sve = (const void *)vector;
	const bool has_sve = sp_cpu_has_sve(n);
	const bool is_sve =
		has_sve && (sve->flags & SVE_PT_REGS_MASK) == SVE_PT_REGS_SVE;
	const unsigned char *all = vector + (has_sve ? SVE_PT_REGS_OFFSET : 0);
	struct fpsimd_context simd = {.head = {FPSIMD_MAGIC, sizeof(simd)}};
	struct sve_context context = {.head = {SVE_MAGIC, 0}};
	const unsigned int words = is_sve ? sve_vq_from_vl(sve->vl) : 0;
	const size_t end = SVE_SIG_REGS_OFFSET + SVE_SIG_REGS_SIZE(words);

	if (!is_sve) {
		const struct user_fpsimd_state *state = (const void *)all;

		memcpy(simd.vregs, state->vregs, sizeof(simd.vregs));
		simd.fpsr = state->fpsr;
		simd.fpcr = state->fpcr;
		memcpy(to, &simd, sizeof(simd));
		return;
	}
	for (unsigned int i = 0; i < 32; i++)
		memcpy(&simd.vregs[i],
		       vector + SVE_PT_SVE_ZREG_OFFSET(words, i), 16);
	memcpy(&simd.fpsr, vector + SVE_PT_SVE_FPSR_OFFSET(words), 4);
	memcpy(&simd.fpcr, vector + SVE_PT_SVE_FPCR_OFFSET(words), 4);
	memcpy(to, &simd, sizeof(simd));
	context.head.size = (uint32_t)((end + 15) & ~(size_t)15);
	context.vl = sve->vl;
	if (sizeof(simd) + context.head.size + 16 > room)
		return;
	to += sizeof(simd);
	memcpy(to, &context, sizeof(context));
	memcpy(to + SVE_SIG_REGS_OFFSET, all, SVE_SIG_REGS_SIZE(words));
}

static inline void sp_cpu_make_frame(struct sp_cpu_frame *f,
				     const sp_cpu_regs *r, uint64_t sigmask,
				     unsigned char *vector, uint32_t n,
				     uint64_t vector_at, uint64_t code)
{
	(void)vector_at;
	(void)code;
	memset(f, 0, sizeof(*f));
	f->sigmask = sigmask;
	memcpy(f->context.regs, r->general.regs, sizeof(f->context.regs));
	/* The kernel drops its state of a wait with a time limit when a frame
	 * is restored.  So the call begins again with its full time: the wait
	 * is longer, but it does not fail. */
	if (sp_cpu_is_interrupted(r))
		f->context.regs[8] = r->call;
	f->context.sp = r->general.sp;
	f->context.pc = r->general.pc;
	f->context.pstate = r->general.pstate;
	sp_cpu_make_vectors(f->context.__reserved,
			    sizeof(f->context.__reserved), vector, n);
}
