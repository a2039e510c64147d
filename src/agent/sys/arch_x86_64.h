/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What these promise: arch.h. */

/* ---- system ---- */

static inline long sp_arch_syscall(long n, long a, long b, long c, long d,
				   long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8),
			   "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

static inline void sp_arch_pause(void)
{
	__builtin_ia32_pause();
}

static inline uint64_t sp_arch_ticks(void)
{
	return __builtin_ia32_rdtsc();
}

/* At 2 GHz. */
static inline uint64_t sp_arch_microsecond(void)
{
	return 2048;
}

static inline uint64_t sp_arch_ask_valgrind(const uint64_t request[6])
{
	uint64_t answer = 0;

	__asm__ volatile("rolq $3, %%rdi\n\t"
			 "rolq $13, %%rdi\n\t"
			 "rolq $61, %%rdi\n\t"
			 "rolq $51, %%rdi\n\t"
			 "xchgq %%rbx, %%rbx"
			 : "+d"(answer)
			 : "a"(request)
			 : "cc", "memory");
	return answer;
}

#define SP_ARCH_VDSO_CLOCK "__vdso_clock_gettime"

#define SP_ARCH_IS_POINTER(type)                                               \
	((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT ||        \
	 (type) == R_X86_64_64)
#define SP_ARCH_MACHINE  EM_X86_64
#define SP_ARCH_RELATIVE R_X86_64_RELATIVE
#define SP_ARCH_MODULE   R_X86_64_DTPMOD64

/* Its first word is its address. */
static inline uintptr_t sp_arch_thread(void)
{
	uintptr_t self;

	__asm__("movq %%fs:0, %0" : "=r"(self));
	return self;
}

/*
 * The exported function `symbol`: jumps to what next(about) returns, where
 * `about` is the address of an object.  rax says how many vector registers a
 * call with any number of arguments has; none of the library's code touches
 * them.
 */
#define SP_ARCH_PASS_ON(symbol, next, about)                                   \
	__asm__(".pushsection .text\n\t"                                       \
		".globl " symbol "\n\t.type " symbol ", @function\n"           \
		".balign 16\n" symbol ":\n\t"                                  \
		".cfi_startproc\n\t"                                           \
		"endbr64\n\t"                                                  \
		"push %rdi\n\t.cfi_adjust_cfa_offset 8\n\t"                    \
		"push %rsi\n\t.cfi_adjust_cfa_offset 8\n\t"                    \
		"push %rdx\n\t.cfi_adjust_cfa_offset 8\n\t"                    \
		"push %rcx\n\t.cfi_adjust_cfa_offset 8\n\t"                    \
		"push %r8\n\t.cfi_adjust_cfa_offset 8\n\t"                     \
		"push %r9\n\t.cfi_adjust_cfa_offset 8\n\t"                     \
		"push %rax\n\t.cfi_adjust_cfa_offset 8\n\t"                    \
		"lea " about "(%rip), %rdi\n\t"                                \
		"call " next "\n\t"                                            \
		"mov %rax, %r11\n\t"                                           \
		"pop %rax\n\t.cfi_adjust_cfa_offset -8\n\t"                    \
		"pop %r9\n\t.cfi_adjust_cfa_offset -8\n\t"                     \
		"pop %r8\n\t.cfi_adjust_cfa_offset -8\n\t"                     \
		"pop %rcx\n\t.cfi_adjust_cfa_offset -8\n\t"                    \
		"pop %rdx\n\t.cfi_adjust_cfa_offset -8\n\t"                    \
		"pop %rsi\n\t.cfi_adjust_cfa_offset -8\n\t"                    \
		"pop %rdi\n\t.cfi_adjust_cfa_offset -8\n\t"                    \
		"jmp *%r11\n\t"                                                \
		".cfi_endproc\n\t"                                             \
		".size " symbol ", . - " symbol "\n\t"                         \
		".popsection")

/* ---- words of memory ---- */

static inline void sp_arch_copy_words(char **to, const char **from, uint64_t n)
{
	__asm__ volatile("rep movsq"
			 : "+D"(*to), "+S"(*from), "+c"(n)
			 :
			 : "memory");
}

static inline void sp_arch_fill_words(char **to, uint64_t word, uint64_t n)
{
	__asm__ volatile("rep stosq"
			 : "+D"(*to), "+c"(n)
			 : "a"(word)
			 : "memory");
}

/* ---- counters ---- */

/* One instruction each. */

static inline void sp_arch_add(uint64_t *word, uint64_t n)
{
	__asm__("addq %1, %0" : "+m"(*word) : "er"(n));
}

static inline uint64_t sp_arch_swap(uint64_t *word, uint64_t value)
{
	__asm__ volatile("xchgq %0, %1" : "+r"(value), "+m"(*word));
	return value;
}

/* One compare and one subtract with borrow, so that zero costs nothing extra.
 */
static inline bool sp_arch_charge(uint64_t *word, uint64_t n)
{
	bool is_less;

	__asm__("cmpq $1, %2\n\t"
		"sbbq %2, %0"
		: "+m"(*word), "=@ccs"(is_less)
		: "r"(n));
	return is_less;
}

static inline void sp_arch_uncharge(uint64_t *word, uint64_t n)
{
	__asm__("cmpq $1, %1\n\t"
		"adcq %1, %0"
		: "+m"(*word)
		: "r"(n)
		: "cc");
}

static inline bool sp_arch_is_low(const uint8_t *byte)
{
	bool is_low;

	__asm__("cmpb $0, %1" : "=@ccns"(is_low) : "m"(*byte));
	return is_low;
}

/* ---- registers ---- */

enum {
	SP_ARCH_RBX = 3,
	SP_ARCH_FP = 6,
	SP_ARCH_SP,
	SP_ARCH_R12 = 12,
	SP_ARCH_PC = 16,
	SP_ARCH_RETURN = SP_ARCH_PC,
	SP_ARCH_REGISTERS,
};

#define SP_ARCH_KEPT                                                           \
	(1ull << SP_ARCH_RBX | 1ull << SP_ARCH_FP | 0xfull << SP_ARCH_R12)
#define SP_ARCH_INNERMOST 0ull

/* At a ucontext_t. */
static inline unsigned int sp_arch_context(unsigned int i)
{
	static const uint8_t at[SP_ARCH_REGISTERS] = {
		144, 136, 152, 128, 112, 104, 120, 160, 40,
		48,  56,  64,  72,  80,  88,  96,  168};

	return at[i];
}

static inline __attribute__((always_inline)) uint64_t sp_arch_registers(
	uint64_t v[SP_ARCH_REGISTERS])
{
	__asm__ volatile("movq %%rbx, %0\n\t"
			 "movq %%rbp, %1\n\t"
			 "movq %%rsp, %2\n\t"
			 "movq %%r12, %3\n\t"
			 "movq %%r13, %4\n\t"
			 "movq %%r14, %5\n\t"
			 "movq %%r15, %6\n\t"
			 "leaq 1f(%%rip), %7\n"
			 "1:"
			 : "=m"(v[SP_ARCH_RBX]), "=m"(v[SP_ARCH_FP]),
			   "=m"(v[SP_ARCH_SP]), "=m"(v[SP_ARCH_R12]),
			   "=m"(v[SP_ARCH_R12 + 1]), "=m"(v[SP_ARCH_R12 + 2]),
			   "=m"(v[SP_ARCH_R12 + 3]), "=r"(v[SP_ARCH_PC]));
	return SP_ARCH_KEPT | 1ull << SP_ARCH_SP | 1ull << SP_ARCH_PC;
}

#define SP_ARCH_VECTORS_BYTES 512

static inline void sp_arch_save_vectors(void *to)
{
	__asm__ volatile("fxsave64 (%0)" : : "r"(to) : "memory");
}

static inline void sp_arch_restore_vectors(const void *from)
{
	__asm__ volatile("fxrstor64 (%0)" : : "r"(from) : "memory");
}

/* ---- frames ---- */

#define SP_ARCH_ALIGNED __attribute__((force_align_arg_pointer))

/* As a function leaves it at its frame pointer. */
struct sp_call_frame {
	const struct sp_call_frame *up;
	void *pc;
};

#define SP_FRAME_HERE ((const struct sp_call_frame *)__builtin_frame_address(0))

static inline uintptr_t sp_call_frame_end(const struct sp_call_frame *frame)
{
	return (uintptr_t)(frame + 1);
}

static inline uintptr_t sp_arch_return(uintptr_t word)
{
	return word;
}

#define SP_ARCH_RECORD_LAST true
#define SP_ARCH_SIGNS       0xffu /* none */

static inline bool sp_arch_is_signed(char letter)
{
	(void)letter;
	return false;
}

/* ---- rules ---- */

/* The return address is the last word of every frame. */
static inline bool sp_arch_fits(int64_t cfa, int64_t bp, int64_t pc)
{
	return cfa >= INT32_MIN && cfa <= INT32_MAX && bp >= INT16_MIN &&
	       bp <= INT16_MAX && pc == -8;
}

static inline uint64_t sp_arch_pack(int32_t cfa, int32_t bp, int32_t pc)
{
	(void)pc;
	return (uint32_t)cfa | (uint64_t)(uint16_t)bp << 32;
}

static inline void sp_arch_unpack(uint64_t word, int32_t *cfa, int32_t *bp,
				  int32_t *pc)
{
	*cfa = (int32_t)(uint32_t)word;
	*bp = (int16_t)(word >> 32);
	*pc = -8;
}
