/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What tests have of one architecture:
 *
 * TEST_TRAP          an instruction that raises SIGILL
 * TEST_STEP(context) past it: what a signal handler does to its ucontext_t
 * TEST_PLACE(ret)    the address of that instruction, which comes next
 * TEST_CALL_FIRST    a function that calls its first argument
 * TEST_CALL          an instruction that calls, as bytes
 * TEST_FORK          fork by a system call alone
 * TEST_STORE_VECTOR  a store of 16 bytes; on x86-64 it traps if they are not
 *                    aligned
 * TEST_CALLS         every kind of instruction that calls, and others, which
 *                    are at TEST_BEHIND_CALLS (TEST_N_CALLS) and three at
 *                    TEST_NOT_BEHIND
 * TEST_ARE_POINTERS_KEPT   do all libraries have frame pointers?
 * test_backtrace_pc  what libunwind 1.6 has for an address, made that address
 * TEST_FRAME         a struct sp_call_frame in front of its caller's stack
 * test_frame         a struct sp_call_frame of the two words at `record`
 */
#if defined(__x86_64__)
#define TEST_TRAP          "ud2"
#define TEST_STEP(context) ((context)->uc_mcontext.gregs[REG_RIP] += 2)
#define TEST_PLACE(ret)                                                        \
	__asm__ volatile("leaq 1f(%%rip), %0\n1:	" TEST_TRAP : "=r"(ret))
#define TEST_CALL_FIRST                                                        \
	"	sub $8, %rsp\n"                                                      \
	"	call *%rdi\n"                                                        \
	"	add $8, %rsp\n"                                                      \
	"	ret\n"
#define TEST_CALL             "\xff\xd0"
#define TEST_FORK()           syscall(SYS_fork)
#define TEST_STORE_VECTOR(to) __asm__ volatile("movaps %%xmm0, %0" : "=m"(to))
#define TEST_CALLS                                                             \
	"	.skip 16, 0x90\n"                                                    \
	"	call *%rax\n1:	call *%r11\n2:	call *(%rbx)\n"                        \
	"3:	call *(%r12)\n4:	call *8(%rbp)\n5:	call "                          \
	"*8(%rsp)\n"                                                           \
	"6:	call *0x100(%rcx)\n7:	call *0x100(%r12)\n"                         \
	"8:	call *(%rax,%rbx,8)\n9:	call *0x1234(,%rbx,8)\n"                   \
	"10:	call *10b(%rip)\n11:	call 11b\n12:	notrack call *%rdx\n"          \
	"13:	jmp *%rax\n"                                                      \
	"14:	.skip 16, 0x90\n"
#define TEST_BEHIND_CALLS "1b,2b,3b,4b,5b,6b,7b,8b,9b,10b,11b,12b,13b"
#define TEST_N_CALLS      13
#define TEST_NOT_BEHIND   "14b, 14b + 8, 1b - 2"
#define TEST_FRAME(up, pc, end)                                                \
	{                                                                      \
		up, pc                                                         \
	}
#define TEST_ARE_POINTERS_KEPT false
#define test_backtrace_pc(pc)  (pc)
#define test_frame(record)                                                     \
	((const struct sp_call_frame *)(const void *)(record))
#else
#define TEST_TRAP          "udf #0"
#define TEST_STEP(context) ((context)->uc_mcontext.pc += 4)
#define TEST_PLACE(ret)                                                        \
	__asm__ volatile("adr %0, 1f\n1:	" TEST_TRAP : "=r"(ret))
#define TEST_CALL_FIRST                                                        \
	"	stp x29, x30, [sp, #-16]!\n"                                         \
	"	mov x29, sp\n"                                                       \
	"	blr x0\n"                                                            \
	"	ldp x29, x30, [sp], #16\n"                                           \
	"	ret\n"
#define TEST_CALL             "\x00\x00\x3f\xd6"
#define TEST_FORK()           syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)
#define TEST_STORE_VECTOR(to) __asm__ volatile("str q0, %0" : "=m"(to))
#define TEST_CALLS                                                             \
	"	.skip 16, 0\n"                                                       \
	"	bl 1f\n1:	blr x0\n2:	blr x29\n3:	.word "                             \
	"0xd63f081f\n"                                                         \
	"4:	.word 0xd63f0c1f\n5:	.word 0xd73f0821\n"                           \
	"6:	.word 0xd73f0fff\n7:	br x0\n8:	b 1b\n9:	"                          \
	"ret\n10:	.skip 16, 0\n"
#define TEST_BEHIND_CALLS "1b, 2b, 3b, 4b, 5b, 6b, 7b"
#define TEST_N_CALLS      7
#define TEST_NOT_BEHIND   "8b, 9b, 1b - 2"
#define TEST_FRAME(up, pc, end)                                                \
	{                                                                      \
		up, pc, (uintptr_t)(end)                                       \
	}
#define TEST_ARE_POINTERS_KEPT true
#define test_backtrace_pc(pc)  ((void *)(((uintptr_t)(pc) + 1) & ~3ul))
#define test_frame(record)                                                     \
	(&(struct sp_call_frame){(const void *)(record)->up, (record)->pc,     \
				 (uintptr_t)((record) + 1)})
#endif
