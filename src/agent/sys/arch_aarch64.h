/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What these promise: arch.h. */

/* ---- system ---- */

static inline long sp_arch_syscall(long n, long a, long b, long c, long d,
				   long e, long f)
{
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}

static inline void sp_arch_pause(void)
{
	__asm__ volatile("yield");
}

static inline uint64_t sp_arch_ticks(void)
{
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
}

/* Of a counter of 1 MHz to 1 GHz. */
static inline uint64_t sp_arch_microsecond(void)
{
	uint64_t per_second;

	__asm__("mrs %0, cntfrq_el0" : "=r"(per_second));
	return per_second >> 20;
}

static inline uint64_t sp_arch_ask_valgrind(const uint64_t request[6])
{
	register uint64_t answer __asm__("x3") = 0;
	register const uint64_t *at __asm__("x4") = request;

	__asm__ volatile("ror x12, x12, #3\n\t"
			 "ror x12, x12, #13\n\t"
			 "ror x12, x12, #51\n\t"
			 "ror x12, x12, #61\n\t"
			 "orr x10, x10, x10"
			 : "+r"(answer)
			 : "r"(at)
			 : "cc", "memory");
	return answer;
}

#define SP_ARCH_VDSO_CLOCK "__kernel_clock_gettime"

#define SP_ARCH_IS_POINTER(type)                                               \
	((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT ||      \
	 (type) == R_AARCH64_ABS64)
#define SP_ARCH_MACHINE  EM_AARCH64
#define SP_ARCH_RELATIVE R_AARCH64_RELATIVE
#define SP_ARCH_MODULE   R_AARCH64_TLS_DTPMOD

/* It lies above the thread's stack, as what is in front of it does. */
static inline uintptr_t sp_arch_thread(void)
{
	uintptr_t self;

	__asm__("mrs %0, tpidr_el0" : "=r"(self));
	return self;
}

/*
 * The exported function `symbol`: jumps to what next(about) returns, where
 * `about` is the address of an object.  x8 is where a large result goes.  None
 * of the library's code touches vector registers.
 */
#define SP_ARCH_PASS_ON(symbol, next, about)                                   \
	__asm__(".pushsection .text\n\t"                                       \
		".globl " symbol "\n\t.type " symbol ", %function\n"           \
		".balign 16\n" symbol ":\n\t"                                  \
		".cfi_startproc\n\t"                                           \
		"hint #34\n\t"                                                 \
		"stp x29, x30, [sp, #-96]!\n\t"                                \
		".cfi_def_cfa_offset 96\n\t"                                   \
		".cfi_offset 29, -96\n\t.cfi_offset 30, -88\n\t"               \
		"mov x29, sp\n\t"                                              \
		"stp x0, x1, [sp, #16]\n\t"                                    \
		"stp x2, x3, [sp, #32]\n\t"                                    \
		"stp x4, x5, [sp, #48]\n\t"                                    \
		"stp x6, x7, [sp, #64]\n\t"                                    \
		"str x8, [sp, #80]\n\t"                                        \
		"adrp x0, " about "\n\t"                                       \
		"add x0, x0, :lo12:" about "\n\t"                              \
		"bl " next "\n\t"                                              \
		"mov x16, x0\n\t"                                              \
		"ldp x0, x1, [sp, #16]\n\t"                                    \
		"ldp x2, x3, [sp, #32]\n\t"                                    \
		"ldp x4, x5, [sp, #48]\n\t"                                    \
		"ldp x6, x7, [sp, #64]\n\t"                                    \
		"ldr x8, [sp, #80]\n\t"                                        \
		"ldp x29, x30, [sp], #96\n\t"                                  \
		".cfi_def_cfa_offset 0\n\t"                                    \
		".cfi_restore 29\n\t.cfi_restore 30\n\t"                       \
		"br x16\n\t"                                                   \
		".cfi_endproc\n\t"                                             \
		".size " symbol ", . - " symbol "\n\t"                         \
		".popsection")

/* ---- words of memory ---- */

static inline void sp_arch_copy_words(char **to, const char **from, uint64_t n)
{
	uint64_t word;

	for (; n; n--)
		__asm__ volatile("ldr %0, [%2], #8\n\t"
				 "str %0, [%1], #8"
				 : "=&r"(word), "+r"(*to), "+r"(*from)
				 :
				 : "memory");
}

static inline void sp_arch_fill_words(char **to, uint64_t word, uint64_t n)
{
	for (; n; n--)
		__asm__ volatile("str %1, [%0], #8"
				 : "+r"(*to)
				 : "r"(word)
				 : "memory");
}

/* ---- counters ---- */

/*
 * A load and a store that are exclusive (or one instruction, if compiled for
 * ARMv8.1): going back from an exception clears the monitor, so after a signal
 * handler the store fails, and all is done anew.  A handler that leaves by
 * siglongjmp has found it not begun.
 */

static inline void sp_arch_add(uint64_t *word, uint64_t n)
{
	__atomic_fetch_add(word, n, __ATOMIC_RELAXED);
}

static inline uint64_t sp_arch_swap(uint64_t *word, uint64_t value)
{
	return __atomic_exchange_n(word, value, __ATOMIC_RELAXED);
}

static inline bool sp_arch_charge(uint64_t *word, uint64_t n)
{
	return (int64_t)__atomic_sub_fetch(word, n + !n, __ATOMIC_RELAXED) < 0;
}

static inline void sp_arch_uncharge(uint64_t *word, uint64_t n)
{
	__atomic_fetch_add(word, n + !n, __ATOMIC_RELAXED);
}

static inline bool sp_arch_is_low(const uint8_t *byte)
{
	return __atomic_load_n(byte, __ATOMIC_RELAXED) < 128;
}

/* ---- registers ---- */

/* The return address stays in x30 until a function that calls stores it. */
enum {
	SP_ARCH_X19 = 19,
	SP_ARCH_FP = 29,
	SP_ARCH_RETURN,
	SP_ARCH_SP,
	SP_ARCH_PC, /* none of DWARF's */
	SP_ARCH_REGISTERS,
};

#define SP_ARCH_INNERMOST (1ull << SP_ARCH_RETURN)
#define SP_ARCH_KEPT      (0x7ffull << SP_ARCH_X19 | SP_ARCH_INNERMOST)

/* At a siginfo_t of 128 bytes and a ucontext_t, in which all stand in a row. */
static inline unsigned int sp_arch_context(unsigned int i)
{
	return 128 + 184 + 8 * i;
}

static inline __attribute__((always_inline)) uint64_t sp_arch_registers(
	uint64_t v[SP_ARCH_REGISTERS])
{
	uint64_t scratch;

	__asm__ volatile("stp x19, x20, [%1, #152]\n\t"
			 "stp x21, x22, [%1, #168]\n\t"
			 "stp x23, x24, [%1, #184]\n\t"
			 "stp x25, x26, [%1, #200]\n\t"
			 "stp x27, x28, [%1, #216]\n\t"
			 "str x29, [%1, #232]\n\t"
			 "mov %0, sp\n\t"
			 "str %0, [%1, #248]\n\t"
			 "adr %0, 1f\n"
			 "1:	str %0, [%1, #256]"
			 : "=&r"(scratch)
			 : "r"(v)
			 : "memory");
	return (SP_ARCH_KEPT & ~SP_ARCH_INNERMOST) | 1ull << SP_ARCH_SP |
	       1ull << SP_ARCH_PC;
}

/* ---- frames ---- */

#define SP_ARCH_ALIGNED

/* Of what the frame pointer is at, and the end of the frame around it. */
struct sp_call_frame {
	const struct sp_call_frame *up;
	void *pc;
	uintptr_t end;
};

#define SP_FRAME_HERE                                                          \
	(&(const struct sp_call_frame){                                        \
		*(const struct sp_call_frame **)__builtin_frame_address(0),    \
		(void *)sp_arch_return(                                        \
			(uintptr_t)__builtin_return_address(0)),               \
		(uintptr_t)__builtin_dwarf_cfa()})

static inline uintptr_t sp_call_frame_end(const struct sp_call_frame *frame)
{
	return frame->end;
}

/* xpaclri, which older processors take for a hint. */
static inline uintptr_t sp_arch_return(uintptr_t word)
{
	register uintptr_t x30 __asm__("x30") = word;

	__asm__("hint #7" : "+r"(x30));
	return x30;
}

#define SP_ARCH_RECORD_LAST false
#define SP_ARCH_SIGNS       0x2du /* DW_CFA_AARCH64_negate_ra_state */

/* By the other of two keys. */
static inline bool sp_arch_is_signed(char letter)
{
	return letter == 'B';
}

/* ---- rules ---- */

static inline bool sp_arch_fits_one(int64_t bytes)
{
	return bytes % 8 == 0 && bytes / 8 >= INT16_MIN &&
	       bytes / 8 <= INT16_MAX;
}

static inline bool sp_arch_fits(int64_t cfa, int64_t bp, int64_t pc)
{
	return sp_arch_fits_one(cfa) && sp_arch_fits_one(bp) &&
	       sp_arch_fits_one(pc);
}

static inline uint64_t sp_arch_pack(int32_t cfa, int32_t bp, int32_t pc)
{
	return (uint16_t)(cfa / 8) | (uint64_t)(uint16_t)(bp / 8) << 16 |
	       (uint64_t)(uint16_t)(pc / 8) << 32;
}

static inline void sp_arch_unpack(uint64_t word, int32_t *cfa, int32_t *bp,
				  int32_t *pc)
{
	*cfa = 8 * (int16_t)word;
	*bp = 8 * (int16_t)(word >> 16);
	*pc = 8 * (int16_t)(word >> 32);
}
