/* SPDX-License-Identifier: MIT */
/*
 * Functions of an allocator whose entries lead to us.  They are called without
 * the loader, so a compiler that has seen them may know which registers they
 * leave alone, and that they need no aligned stack: all registers are kept,
 * besides the one with the answer, and the stack is aligned.
 *
 * One function of a family may call another, which comes here, too.  What the
 * inner call counts the outer one does not.
 */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "agent/divert/divert.h"
#include "agent/event/recorder.h"
#include "agent/hooks/count.h"

/* What the program called, on the stack below its frame pointer. */
struct call {
	uintptr_t arguments[6];
	uintptr_t r10, rax; /* rax: the answer */
	const struct sp_divert_function *function;
	uintptr_t r11;
};

/* The answer is in the call, or 0: go on at that address. */
uintptr_t sp_divert_call(struct call *call, const struct sp_call_frame *frame)
	__attribute__((visibility("hidden")));
#define SAVED(verb)                                                            \
	verb(rdi, 80) verb(rsi, 72) verb(rdx, 64) verb(rcx, 56) verb(r8, 48)   \
		verb(r9, 40) verb(r10, 32)
#define SAVE(name, at)    "mov %" #name ", -" #at "(%rbp)\n\t"
#define RESTORE(name, at) "mov -" #at "(%rbp), %" #name "\n\t"

__asm__(".pushsection .text\n\t"
	".globl sp_divert_enter\n\t"
	".hidden sp_divert_enter\n\t"
	".type sp_divert_enter, @function\n"
	".balign 16\n"
	"sp_divert_enter:\n\t"
	".cfi_startproc\n\t"
	"endbr64\n\t"
	"push %rbp\n\t.cfi_def_cfa_offset 16\n\t.cfi_offset %rbp, -16\n\t"
	"mov %rsp, %rbp\n\t.cfi_def_cfa_register %rbp\n\t"
	/* Its last word is where r11 has been kept. */
	"sub $80, %rsp\n\t" SAVED(SAVE) SAVE(rax, 24)
		SAVE(r11,
		     16) "mov %rsp, %rdi\n\t"
			 "mov %rbp, %rsi\n\t"
			 "and $-16, %rsp\n\t"
			 "call sp_divert_call\n\t"
			 "test %rax, %rax\n\t"
			 "mov %rax, -16(%rbp)\n\t" SAVED(RESTORE) RESTORE(rax,
									  24)
				 RESTORE(r11, 8) "leave\n\t.cfi_def_cfa %rsp, "
						 "8\n\t.cfi_restore %rbp\n\t"
						 "jz 1f\n\t"
						 "jmp *-24(%rsp)\n"
						 "1:\tret\n\t"
						 ".cfi_endproc\n\t"
						 ".size sp_divert_enter, . - "
						 "sp_divert_enter\n\t"
						 ".popsection");

/* ---- with less work ---- */

/*
 * A function whose first argument is the size: nothing else of the call has to
 * be known when it returns, unless there is a sample.  On the stack, from its
 * end: the frame pointer, r11, the size, the count of objects before, and the
 * function.
 */
#define OBJECTS "16"
#define COUNTS  "8"
static_assert(offsetof(struct sp_thread, remaining) == 0 &&
		      offsetof(struct sp_thread, counts) == 8 &&
		      offsetof(struct sp_thread, objects) == 16,
	      "as below");
static_assert(offsetof(struct sp_size_counts, small) == 0 &&
		      SP_SIZE_COUNTS_SMALL_MAX == 1024,
	      "as below");
static_assert(offsetof(struct sp_divert_function, below) == 8, "as below");
static_assert(SP_FILTER_FACTOR == 0x5851f42d && SP_FILTER_TERM == 0x2545f491,
	      "as below");

void sp_divert_enter(void) __attribute__((visibility("hidden")));
void sp_divert_enter_sized(void) __attribute__((visibility("hidden")));
void sp_divert_enter_free(void) __attribute__((visibility("hidden")));

/* The object at p of n bytes needs more than two counters: its charge was
 * refused (is_refused), or it is a large one and was charged. */
void sp_divert_count(uintptr_t p, size_t n, const struct sp_divert_function *f,
		     const struct sp_call_frame *frame, bool is_refused)
	__attribute__((visibility("hidden")));

#define KEPT(verb)                                                             \
	verb(rax, 40) verb(rdi, 48) verb(rsi, 56) verb(rdx, 64) verb(rcx, 72)  \
		verb(r8, 80) verb(r9, 88) verb(r10, 96)

/* clang-format off */
__asm__(".pushsection .text\n\t"
	".globl sp_divert_enter_sized\n\t"
	".hidden sp_divert_enter_sized\n\t"
	".type sp_divert_enter_sized, @function\n"
	".balign 16\n"
	"sp_divert_enter_sized:\n\t"
	".cfi_startproc\n\t"
	"endbr64\n\t"
	"push %rbp\n\t.cfi_def_cfa_offset 16\n\t.cfi_offset %rbp, -16\n\t"
	"sub $8, %rsp\n\t.cfi_def_cfa_offset 24\n\t"
	"push %rdi\n\t.cfi_def_cfa_offset 32\n\t"
	"mov sp_thread@gottpoff(%rip), %rax\n\t"
	"push %fs:" OBJECTS "(%rax)\n\t.cfi_def_cfa_offset 40\n\t"
	"push %r11\n\t.cfi_def_cfa_offset 48\n\t"
	"call *8(%r11)\n\t"
	"test %rax, %rax\n\t"
	"jz 1f\n\t"
	"mov sp_thread@gottpoff(%rip), %r11\n\t"
	"mov 8(%rsp), %rbp\n\t"
	"cmp %fs:" OBJECTS "(%r11), %rbp\n\t"
	"jne 1f\n\t"
	"mov 16(%rsp), %rbp\n\t"
	"cmp $1, %rbp\n\t"
	"sbb %rbp, %fs:(%r11)\n\t"
	"js 2f\n\t"
	"addq $1, %fs:" OBJECTS "(%r11)\n\t"
	"cmp $1024, %rbp\n\t"
	"ja 3f\n\t"
	"mov %fs:" COUNTS "(%r11), %r11\n\t"
	"addq $1, (%r11, %rbp, 8)\n"
	"1:\tadd $24, %rsp\n\t.cfi_remember_state\n\t.cfi_def_cfa_offset 24\n\t"
	"pop %r11\n\t.cfi_def_cfa_offset 16\n\t"
	"pop %rbp\n\t.cfi_def_cfa_offset 8\n\t.cfi_restore %rbp\n\t"
	"ret\n"
	"2:\t.cfi_restore_state\n\t"
	"stc\n\t"
	"jmp 4f\n"
	"3:\tclc\n"
	"4:\tlea 32(%rsp), %rbp\n\t.cfi_def_cfa %rbp, 16\n\t"
	"lea -64(%rsp), %rsp\n\t" KEPT(SAVE)
	"setc %r8b\n\t"
	"movzbl %r8b, %r8d\n\t"
	"mov %rax, %rdi\n\t"
	"mov -16(%rbp), %rsi\n\t"
	"mov -32(%rbp), %rdx\n\t"
	"mov %rbp, %rcx\n\t"
	"and $-16, %rsp\n\t"
	"call sp_divert_count\n\t" KEPT(RESTORE)
	"lea -8(%rbp), %rsp\n\t"
	"pop %r11\n\t"
	"pop %rbp\n\t.cfi_def_cfa %rsp, 8\n\t.cfi_restore %rbp\n\t"
	"ret\n\t"
	".cfi_endproc\n\t"
	".size sp_divert_enter_sized, . - sp_divert_enter_sized\n\t"

	/* sp_filter_may_have, in rax and rcx alone. */
	".globl sp_divert_enter_free\n\t"
	".hidden sp_divert_enter_free\n\t"
	".type sp_divert_enter_free, @function\n"
	".balign 16\n"
	"sp_divert_enter_free:\n\t"
	".cfi_startproc\n\t"
	"endbr64\n\t"
	"mov %rax, -24(%rsp)\n\t"
	"mov %rcx, -32(%rsp)\n\t"
	"mov sp_filter(%rip), %rcx\n\t"
	"imul $0x5851f42d, %rdi, %rax\n\t"
	"add $0x2545f491, %rax\n\t"
	"imul %rdi, %rax\n\t"
	"shr %cl, %rax\n\t"
	"cmpb $0, (%rcx, %rax)\n\t"
	"mov -24(%rsp), %rax\n\t"
	"mov -32(%rsp), %rcx\n\t"
	"jns sp_divert_enter\n\t"
	"mov 8(%r11), %r11\n\t"
	"mov %r11, -24(%rsp)\n\t"
	"mov -16(%rsp), %r11\n\t"
	"jmp *-24(%rsp)\n\t"
	".cfi_endproc\n\t"
	".size sp_divert_enter_free, . - sp_divert_enter_free\n\t"
	".popsection");
/* clang-format on */

static uintptr_t call_below(const struct call *c)
{
	const uintptr_t *a = c->arguments;

	return c->function->below(a[0], a[1], a[2], a[3], a[4], a[5]);
}

static uintptr_t go_on(const struct call *c)
{
	return (uintptr_t)c->function->below;
}

static uintptr_t free_object(const struct call *c,
			     const struct sp_call_frame *frame)
{
	const void *p = (const void *)c->arguments[c->function->name->old];

	if (sp_filter_may_have(p)) {
		sp_recorder_free(p);
		if (sp_thread.inside)
			sp_agent_look(frame);
	}
	return go_on(c);
}

/* What a thread does with its first event may be in vectors. */
static __attribute__((noinline, cold)) void sample_object(
	const struct sp_divert_function *f, uintptr_t p, size_t n,
	const struct sp_call_frame *frame)
{
	_Alignas(16) char vectors[SP_ARCH_VECTORS_BYTES];

	sp_arch_save_vectors(vectors);
	sp_agent_count((void *)p, n, f->name->entry, frame);
	sp_arch_restore_vectors(vectors);
}

void sp_divert_count(uintptr_t p, size_t n, const struct sp_divert_function *f,
		     const struct sp_call_frame *frame, bool is_refused)
{
	if (is_refused) {
		sp_thread_undo_charge(n);
		sample_object(f, p, n, frame);
	} else {
		sp_size_counts_count_large(sp_thread.counts, n);
	}
}

static void count_object(const struct call *c, uintptr_t p, size_t n,
			 uint64_t before, const struct sp_call_frame *frame)
{
	if (!p || sp_thread.objects != before)
		return;
	if (sp_thread_charge(n)) {
		sample_object(c->function, p, n, frame);
	} else {
		sp_thread_count_object();
		sp_size_counts_count(sp_thread.counts, n);
	}
}

static uintptr_t allocate_object(struct call *c, size_t n,
				 const struct sp_call_frame *frame)
{
	const uint64_t before = sp_thread.objects;
	uintptr_t p;

	c->rax = p = call_below(c);
	if (c->function->name->does == SP_DIVERT_STORES)
		p = (int)p == 0 ? *(const uintptr_t *)c->arguments[0] : 0;
	else if (c->function->name->does == SP_DIVERT_COPIES && p)
		n = strlen((const char *)p) + 1;
	count_object(c, p, n, before, frame);
	return 0;
}

/* As realloc of interpose.c.  Whether rallocx, which has no size of 0, has
 * failed is said by its answer alone. */
static uintptr_t move_object(struct call *c, size_t n,
			     const struct sp_call_frame *frame)
{
	const void *old = (const void *)c->arguments[c->function->name->old];
	const uint64_t before = sp_thread.objects;
	struct sp_recorder_end end;
	int saved_errno = errno;

	if (n && !sp_filter_may_have(old)) {
		c->rax = call_below(c);
		count_object(c, c->rax, n, before, frame);
		return 0;
	}
	sp_recorder_free_begin(old, &end);
	errno = 0;
	c->rax = call_below(c);
	if (!c->rax && (n || errno == ENOMEM))
		sp_recorder_free_cancel(old, &end);
	else
		sp_recorder_free_commit(&end);
	if (!errno)
		errno = saved_errno;
	count_object(c, c->rax, n, before, frame);
	return 0;
}

static uintptr_t resize_object(struct call *c, size_t n,
			       const struct sp_call_frame *frame)
{
	const uintptr_t *a = c->arguments;
	const uint64_t counted = sp_thread.objects;
	const uintptr_t before =
		c->function->answers(a[0], a[3], a[2], a[3], a[4], a[5]);

	c->rax = call_below(c);
	if (c->rax == before)
		return 0;
	if (sp_filter_may_have((const void *)a[0]))
		sp_recorder_free((const void *)a[0]);
	count_object(c, a[0], n, counted, frame);
	return 0;
}

uintptr_t sp_divert_call(struct call *c, const struct sp_call_frame *frame)
{
	const struct sp_divert_name *name = c->function->name;
	size_t n = name->size < 0 ? 0 : c->arguments[name->size];

	if (name->does == SP_DIVERT_FREES)
		return free_object(c, frame);
	if (name->times >= 0 &&
	    __builtin_mul_overflow(n, c->arguments[name->times], &n))
		return go_on(c);
	if (name->does == SP_DIVERT_MOVES)
		return move_object(c, n, frame);
	if (name->does == SP_DIVERT_RESIZES)
		return resize_object(c, n, frame);
	return allocate_object(c, n, frame);
}

/* ---- the loader ---- */

/* The loader calls it directly, too. */
__attribute__((no_caller_saved_registers, force_align_arg_pointer)) static void
look_at_loaded(void)
{
	_Alignas(16) char vectors[SP_ARCH_VECTORS_BYTES];

	sp_arch_save_vectors(vectors);
	sp_agent_look_at_loaded(SP_FRAME_HERE);
	sp_arch_restore_vectors(vectors);
}

const struct sp_divert_hooks sp_divert_hooks = {
	.enter = sp_divert_enter,
	.enter_sized = sp_divert_enter_sized,
	.enter_free = sp_divert_enter_free,
	.loaded = look_at_loaded,
};
