/* SPDX-License-Identifier: MIT */
#pragma once

#include <elf.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>

/* The contracts of these names are in cpu.h. */

#define SP_CPU_MACHINE EM_X86_64
#define SP_CPU_NAME    "x86-64"

/* ---- registers ---- */

typedef struct user_regs_struct sp_cpu_regs;

#define SP_CPU_RED_ZONE 128
/* AVX-512 and AMX, the largest state that there is, take less than 12 KiB. */
#define SP_CPU_VECTOR_MAX 16384

/* The library diverts functions (agent/divert). */
#define SP_CPU_DIVERTS 1

static inline bool sp_cpu_read(pid_t tid, sp_cpu_regs *ret)
{
	struct iovec regs = {ret, sizeof(*ret)};

	return ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &regs) == 0;
}

static inline bool sp_cpu_write(pid_t tid, const sp_cpu_regs *to)
{
	sp_cpu_regs copy = *to;
	struct iovec regs = {&copy, sizeof(copy)};

	return ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &regs) == 0;
}

static inline bool sp_cpu_read_vector(pid_t tid, void *ret, uint32_t *ret_bytes)
{
	struct iovec vector = {ret, SP_CPU_VECTOR_MAX};

	if (ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &vector) != 0)
		return false;
	*ret_bytes = (uint32_t)vector.iov_len;
	return true;
}

static inline void sp_cpu_write_vector(pid_t tid, void *from, uint32_t bytes)
{
	struct iovec vector = {from, bytes};

	ptrace(PTRACE_SETREGSET, tid, NT_X86_XSTATE, &vector);
}

static inline uint64_t sp_cpu_pc(const sp_cpu_regs *r)
{
	return r->rip;
}

static inline uint64_t sp_cpu_sp(const sp_cpu_regs *r)
{
	return r->rsp;
}

static inline uint64_t sp_cpu_thread_pointer(const sp_cpu_regs *r)
{
	return r->fs_base;
}

static inline uint64_t sp_cpu_result(const sp_cpu_regs *r)
{
	return r->rax;
}

static inline long sp_cpu_syscall(const sp_cpu_regs *r)
{
	return (long)r->orig_rax;
}

static inline uint64_t sp_cpu_first_argument(const sp_cpu_regs *r)
{
	return r->rdi;
}

/* Results that the kernel has for an interrupted system call until it returns
 * to the program: ERESTARTNOHAND to ERESTARTSYS, ERESTART_RESTARTBLOCK. */
#define SP_CPU_RESTART_FIRST (-514)
#define SP_CPU_RESTART_LAST  (-512)
#define SP_CPU_RESTART_BLOCK (-516)

static inline bool sp_cpu_is_interrupted(const sp_cpu_regs *r)
{
	const long result = (long)r->rax;

	return (result >= SP_CPU_RESTART_FIRST &&
		result <= SP_CPU_RESTART_LAST) ||
	       result == SP_CPU_RESTART_BLOCK;
}

/* orig_rax and rax show that the kernel has interrupted a system call. */
static inline bool sp_cpu_hides_restart(const sp_cpu_regs *r)
{
	(void)r;
	return false;
}

static inline void sp_cpu_take_restart(sp_cpu_regs *r, const sp_cpu_regs *begun)
{
	(void)r;
	(void)begun;
}

/* The kernel does it. */
static inline void sp_cpu_interrupt_wait(sp_cpu_regs *r)
{
	(void)r;
}

static inline bool sp_cpu_skip(pid_t tid)
{
	(void)tid;
	return false;
}

/* The program counter is the last one. */
#define SP_CPU_DWARF_REGS 17

static inline void sp_cpu_dwarf(const sp_cpu_regs *r,
				uint64_t ret[SP_CPU_DWARF_REGS])
{
	const uint64_t regs[SP_CPU_DWARF_REGS] = {
		r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi,
		r->rbp, r->rsp, r->r8,  r->r9,  r->r10, r->r11,
		r->r12, r->r13, r->r14, r->r15, r->rip,
	};

	memcpy(ret, regs, sizeof(regs));
}

static inline uint64_t sp_cpu_strip_signature(const sp_cpu_regs *r,
					      uint64_t address)
{
	(void)r;
	return address;
}

/* ---- system calls ---- */

#define SP_CPU_OLD_WAITS SYS_poll, SYS_select, SYS_epoll_wait, SYS_pause

#define SP_CPU_SYSCALL_AT    0
#define SP_CPU_SYSCALL_BYTES 2
static const unsigned char sp_cpu_syscall_code[] = {
	0x0f, 0x05, /* syscall */
	0xc3,       /* ret */
};
static const unsigned char sp_cpu_sigreturn_code[] = {
	0x48, 0xc7, 0xc0, SYS_rt_sigreturn,
	0,    0,    0, /* mov $SYS_rt_sigreturn, %rax */
	0x0f, 0x05,    /* syscall */
};

/* ---- calls ---- */

/* rbx: calls, r12: n, rbp: frame + 8, r14: in a hurry. */
static const unsigned char sp_cpu_code[] = {
	0x4d, 0x85,
	0xe4,       /* next: test %r12, %r12 */
	0x74, 0x29, /* je done */
	0x48, 0x8b,
	0x7b, 0x08, /* mov 8(%rbx), %rdi */
	0x48, 0x8b,
	0x73, 0x10, /* mov 16(%rbx), %rsi */
	0x48, 0x8b,
	0x53, 0x18, /* mov 24(%rbx), %rdx */
	0x48, 0x8b,
	0x4b, 0x20, /* mov 32(%rbx), %rcx */
	0x4c, 0x8b,
	0x43, 0x28, /* mov 40(%rbx), %r8 */
	0x4c, 0x8b,
	0x4b, 0x30, /* mov 48(%rbx), %r9 */
	0x31, 0xc0, /* xor %eax, %eax */
	0xff, 0x13, /* call *(%rbx) */
	0x48, 0x89,
	0x43, 0x38, /* mov %rax, 56(%rbx) */
	0x48, 0x83,
	0xc3, 0x40, /* add $64, %rbx */
	0x49, 0xff,
	0xcc,       /* dec %r12 */
	0xeb, 0xd2, /* jmp next */
	0xb8, SYS_getpid,
	0,    0,
	0,          /* done: mov $SYS_getpid, %eax */
	0x0f, 0x05, /* syscall */
	0x49, 0x89,
	0xc5, /* mov %rax, %r13 */
	0xb8, SYS_gettid,
	0,    0,
	0,          /* mov $SYS_gettid, %eax */
	0x0f, 0x05, /* syscall */
	0x48, 0x89,
	0xc6, /* mov %rax, %rsi */
	0x4c, 0x89,
	0xef, /* mov %r13, %rdi */
	0xba, SIGWINCH,
	0,    0,
	0, /* mov $SIGWINCH, %edx */
	0xb8, SYS_tgkill,
	0,    0,
	0,          /* mov $SYS_tgkill, %eax */
	0x0f, 0x05, /* syscall */
	0x4d, 0x85,
	0xf6,       /* test %r14, %r14 */
	0x74, 0x28, /* je back */
	0x31, 0xff, /* xor %edi, %edi */
	0xbe, 0x00,
	0x00, 0x00,
	0x40,       /* mov $SP_HURRY_CALM, %esi */
	0x6a, 0x00, /* push $0 */
	0x48, 0x89,
	0xe2, /* mov %rsp, %rdx */
	0xb8, SYS_sched_setscheduler,
	0,    0,
	0,          /* mov $SYS_sched_setscheduler, %eax */
	0x0f, 0x05, /* syscall */
	0x31, 0xf6, /* xor %esi, %esi; edi is PRIO_PROCESS */
	0x31, 0xd2, /* xor %edx, %edx: SP_HURRY_NICE */
	0xb8, SYS_setpriority,
	0,    0,
	0,          /* mov $SYS_setpriority, %eax */
	0x0f, 0x05, /* syscall */
	0x48, 0x89,
	0xe2, /* mov %rsp, %rdx; esi is SP_HURRY_POLICY */
	0xb8, SYS_sched_setscheduler,
	0,    0,
	0,          /* mov $SYS_sched_setscheduler, %eax */
	0x0f, 0x05, /* syscall */
	0x48, 0x89,
	0xec, /* back: mov %rbp, %rsp */
	0xb8, SYS_rt_sigreturn,
	0,    0,
	0,          /* mov $SYS_rt_sigreturn, %eax */
	0x0f, 0x05, /* syscall */
};

#define SP_CPU_CODE_END 0x51

static inline void sp_cpu_set_run(sp_cpu_regs *r, uint64_t pc, uint64_t calls,
				  uint64_t n, uint64_t frame, bool in_hurry)
{
	r->rip = pc;
	r->r14 = in_hurry;
	r->rbx = calls;
	r->r12 = n;
	r->rbp = frame + 8;
	r->rsp = (frame & ~15ull) - SP_CPU_RED_ZONE;
	r->orig_rax = (unsigned long long)-1;
	r->eflags &= ~0x400ull; /* the direction flag; the ABI wants 0 */
}

static inline void sp_cpu_set_syscall(sp_cpu_regs *r, uint64_t pc, long n,
				      const uint64_t args[6])
{
	r->rip = pc;
	r->rax = (unsigned long long)n;
	r->orig_rax = (unsigned long long)-1;
	r->rdi = args[0];
	r->rsi = args[1];
	r->rdx = args[2];
	r->r10 = args[3];
	r->r8 = args[4];
	r->r9 = args[5];
}

/* The return instruction after the system call takes the address from the
 * frame. */
static inline void sp_cpu_set_sigreturn(sp_cpu_regs *r, uint64_t frame,
					uint64_t code)
{
	(void)code;
	r->rsp = frame;
}

/* ---- signal frames ---- */

/* The stack pointer is as after a call, which pushes the return address. */
#define SP_CPU_FRAME_OFFSET 8

struct sp_cpu_frame {
	uint64_t return_address;
	struct {
		uint64_t flags, link;
		uint64_t stack[3];
		uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
		uint64_t rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip;
		uint64_t eflags;
		uint16_t cs, gs, fs, ss;
		uint64_t err, trapno, oldmask, cr2;
		uint64_t fpstate;
		uint64_t reserved[8];
		uint64_t sigmask;
	} context;
	char info[128];
};

#define SP_CPU_VECTOR_MAGIC1   0x46505853u
#define SP_CPU_VECTOR_MAGIC2   0x46505845u
#define SP_CPU_VECTOR_SOFTWARE 464 /* offset in the vector state */

/* UC_FP_XSTATE, UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS: the frame has extended
 * vector state, and ss is saved and to be restored. */
#define SP_CPU_FRAME_FLAGS 7u

/* The frame has an alternate stack of 0 bytes.  The kernel refuses that one and
 * continues, so the thread keeps its own. */
static inline void sp_cpu_make_frame(struct sp_cpu_frame *f,
				     const sp_cpu_regs *r, uint64_t sigmask,
				     unsigned char *vector, uint32_t n,
				     uint64_t vector_at, uint64_t code)
{
	const uint32_t end = SP_CPU_VECTOR_MAGIC2;
	struct {
		uint32_t magic, extended_bytes;
		uint64_t features;
		uint32_t bytes;
	} software = {SP_CPU_VECTOR_MAGIC1, n + 4, 0, n};

	memset(f, 0, sizeof(*f));
	f->return_address = code;
	f->context.flags = SP_CPU_FRAME_FLAGS;
	f->context.r8 = r->r8;
	f->context.r9 = r->r9;
	f->context.r10 = r->r10;
	f->context.r11 = r->r11;
	f->context.r12 = r->r12;
	f->context.r13 = r->r13;
	f->context.r14 = r->r14;
	f->context.r15 = r->r15;
	f->context.rdi = r->rdi;
	f->context.rsi = r->rsi;
	f->context.rbp = r->rbp;
	f->context.rbx = r->rbx;
	f->context.rdx = r->rdx;
	f->context.rax = r->rax;
	f->context.rcx = r->rcx;
	f->context.rsp = r->rsp;
	f->context.rip = r->rip;
	f->context.eflags = r->eflags;
	f->context.cs = (uint16_t)r->cs;
	f->context.ss = (uint16_t)r->ss;
	f->context.fpstate = vector_at;
	f->context.sigmask = sigmask;
	memcpy(&software.features, vector + SP_CPU_VECTOR_SOFTWARE, 8);
	memcpy(vector + SP_CPU_VECTOR_SOFTWARE, &software, sizeof(software));
	memcpy(vector + n, &end, sizeof(end));
	if ((long)r->orig_rax < 0)
		return;
	/* The kernel drops its state of a wait with a time limit when a frame
	 * is restored.  So the call begins again with its full time: the wait
	 * is longer, but it does not fail. */
	if (!sp_cpu_is_interrupted(r))
		return;
	f->context.rax = r->orig_rax;
	f->context.rip -= SP_CPU_SYSCALL_BYTES;
}
