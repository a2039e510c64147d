/* SPDX-License-Identifier: MIT */
/*
 * Unwind tables made by hand: instructions, encodings, expressions; 200,000
 * damaged ones; those that no header leads to.
 */

#include <sys/mman.h>

#include "agent/sys/diag.h"
#include "agent/unwind/cfi.h"
#include "agent/unwind/cfi_index.h"
#include "agent/unwind/modules.h"
#include "agent/unwind/stack_bounds.h"
#include "support/arch.h"
#include "support/test.h"

static struct sp_cfi_run run;

/*
 * One function of 256 bytes, and what describes it: as an object would have it
 * in memory.  Code is never run, so it need not be any.
 */
struct object {
	struct {
		uint8_t kinds[4];
		int32_t eh_frame;
		uint32_t count;
		int32_t function, entry;
	} header;
	uint8_t frame[256];
	uint8_t code[256];
};

static _Alignas(4096) struct object object;
static ElfW(Phdr) phdr[2];
static struct sp_module_entry entry;

static uint8_t *put(uint8_t *at, const void *bytes, size_t n)
{
	memcpy(at, bytes, n);
	return at + n;
}

static uint8_t *put_word(uint8_t *at, int64_t value)
{
	int32_t word = (int32_t)value;

	return put(at, &word, sizeof(word));
}

#define RETURN SP_ARCH_RETURN
#define FP     SP_ARCH_FP
#define SP     SP_ARCH_SP
/* A return address that is not the last word of its frame. */
#define ELSEWHERE (SP_ARCH_RECORD_LAST ? SP_CFI_OTHER : SP_CFI_SP)

/* A CIE with that augmentation and its data, and an FDE with that program. */
static void make(const char *letters, const void *data, size_t data_bytes,
		 const void *program, size_t bytes)
{
	/* Aligned by 1 and -8, CFA = stack pointer + 8, return address there.
	 */
	static const uint8_t aligns[] = {1, 0x78, RETURN};
	static const uint8_t initial[] = {0x0c, SP, 8, 0x80 + RETURN, 1};
	uint8_t *at = object.frame, *fde;

	memset(&object, 0, sizeof(object));
	at = put_word(at,
		      (int64_t)(4 + 1 + strlen(letters) + 1 + sizeof(aligns) +
				1 + data_bytes + sizeof(initial)));
	at = put_word(at, 0);
	at = put(at, &(uint8_t){1}, 1);
	at = put(at, letters, strlen(letters) + 1);
	at = put(at, aligns, sizeof(aligns));
	at = put(at, &(uint8_t){(uint8_t)data_bytes}, 1);
	at = put(at, data, data_bytes);
	at = put(at, initial, sizeof(initial));
	fde = at;
	at = put_word(at, (int64_t)(4 + 8 + 1 + bytes));
	at = put_word(at, at - object.frame);
	at = put_word(at, object.code - at);
	at = put_word(at, sizeof(object.code));
	at = put(at, &(uint8_t){0}, 1);
	put(at, program, bytes);
	memcpy(object.header.kinds, (uint8_t[]){1, 0x1b, 3, 0x3b}, 4);
	object.header.count = 1;
	object.header.function =
		(int32_t)(object.code - (uint8_t *)&object.header);
	object.header.entry = (int32_t)(fde - (uint8_t *)&object.header);
	phdr[0] = (ElfW(Phdr)){.p_type = PT_GNU_EH_FRAME,
			       .p_memsz = sizeof(object.header)};
	phdr[1] = (ElfW(Phdr)){.p_type = PT_LOAD,
			       .p_flags = PF_R | PF_X,
			       .p_memsz = sizeof(object)};
	entry = (struct sp_module_entry){
		.start = (uintptr_t)&object,
		.end = (uintptr_t)(&object + 1),
		.bias = (uintptr_t)&object,
		.phdr = phdr,
		.n_phdr = 2,
	};
}

static const uint8_t usual_data[] = {0x1b};

static void check_at(int offset, enum sp_cfi_kind kind, int cfa, int bp)
{
	/* The call is the byte before. */
	struct sp_cfi_rule rule = sp_cfi_find(
		&run, &entry, (uintptr_t)(object.code + offset + 1));

	assert_int_equal(rule.kind, kind);
	if (kind == SP_CFI_OTHER || kind == SP_CFI_END || kind == SP_CFI_NONE)
		return;
	assert_int_equal(rule.cfa_bytes, cfa);
	assert_int_equal(rule.bp_bytes, bp);
}

TEST(by_hand)
{
	static const uint8_t program[] = {
		0x41,      0x0e, 16,   0x80 + FP, 2, /* push %rbp */
		0x43,      0x0d, FP,                 /* mov %rsp,%rbp */
		0x02,      60,   0x0a, /* remember: an early return */
		0x0c,      SP,   8,    /* leave */
		0x41,      0x0b,       /* restore: go on */
		0x03,      50,   0,    0x09,      3,
		12, /* rbx is in r12: who cares */
		0x04,      10,   0,    0,         0,
		0xc0 + FP, /* rbp is untouched again */
	};

	make("zR", usual_data, 1, program, sizeof(program));
	check_at(0, SP_CFI_SP, 8, 0);
	check_at(1, SP_CFI_SP, 16, -16);
	check_at(3, SP_CFI_SP, 16, -16);
	check_at(4, SP_CFI_BP, 16, -16);
	check_at(63, SP_CFI_BP, 16, -16);
	check_at(64, SP_CFI_SP, 8, -16);
	check_at(65, SP_CFI_BP, 16, -16);
	check_at(115, SP_CFI_BP, 16, -16);
	check_at(125, SP_CFI_BP, 16, 0);
	check_at(255, SP_CFI_BP, 16, 0);
	/* Before the function, and behind it. */
	check_at(256, SP_CFI_NONE, 0, 0);
	/* Nobody calls there: its beginning, as the end of a stack. */
	check_at(-1, SP_CFI_END, 0, 0);
	assert_true(sp_cfi_find(&run, &entry, (uintptr_t)object.code).is_exact);
	memcpy((uint8_t *)&object + offsetof(struct object, code) -
		       (sizeof(TEST_CALL) - 1),
	       TEST_CALL, sizeof(TEST_CALL) - 1);
	check_at(-1, SP_CFI_NONE, 0, 0);
}

static void check_program(const void *program, size_t bytes,
			  enum sp_cfi_kind kind)
{
	make("zR", usual_data, 1, program, bytes);
	check_at(100, kind, 8, 0);
}

#define CHECK(kind, ...)                                                       \
	check_program((const uint8_t[]){__VA_ARGS__},                          \
		      sizeof((const uint8_t[]){__VA_ARGS__}), kind)

/* All that is not as simple as a rule. */
TEST(others)
{
	CHECK(SP_CFI_SP, 0);                    /* nothing at all */
	CHECK(SP_CFI_END, 0x07, RETURN);        /* the outermost function */
	CHECK(SP_CFI_OTHER, 0x0c, 3, 8);        /* by rbx */
	CHECK(SP_CFI_OTHER, 0x0f, 1, 0x30);     /* by an expression */
	CHECK(ELSEWHERE, 0x80 + RETURN, 2);     /* returns elsewhere */
	CHECK(SP_CFI_OTHER, 0x09, RETURN, 0);   /* by a register */
	CHECK(SP_CFI_OTHER, 0x07, FP);          /* rbp is lost */
	CHECK(SP_CFI_OTHER, 0x10, FP, 1, 0x30); /* or somewhere */
	CHECK(SP_CFI_OTHER, 0x14, FP, 2);
	CHECK(SP_CFI_OTHER, 0x80 + FP, 1); /* where the return address is */
	CHECK(SP_CFI_OTHER, 0x0e, 4);      /* the caller's stack is not above */
	CHECK(SP_CFI_OTHER, 0x0b); /* restores what was not remembered */
	CHECK(SP_CFI_OTHER, 0x3f); /* an instruction of the future */
	CHECK(SP_CFI_OTHER, 0x0f, 0xff, 0xff, 0x03); /* beyond the end */
	CHECK(SP_CFI_OTHER, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a,
	      0x0a); /* remembers more than anybody */
	/* A signal's frame, and letters that are not known. */
	make("zRS", usual_data, 1, "", 1);
	check_at(100, SP_CFI_OTHER, 0, 0);
	make("zQ", usual_data, 1, "", 1);
	check_at(100, SP_CFI_OTHER, 0, 0);
	/* A function's address that is relative to what no compiler uses. */
	make("zR", "\x3b", 1, "", 1);
	check_at(100, SP_CFI_OTHER, 0, 0);
	/* A handler of exceptions and its data are passed over. */
	make("zPLR", "\x9b....\x1b\x1b", 7, "", 1);
	check_at(100, SP_CFI_SP, 8, 0);
	make("zPLR", "\x00........\x1b\x1b", 11, "", 1);
	check_at(100, SP_CFI_SP, 8, 0);
}

/* gcc's frames of functions that align their stack. */
TEST(realigned)
{
	static const uint8_t program[] = {
		0x10,      FP,   2,
		0x70 + FP, 0, /* rbp is at rbp */
		0x0f,      3,    0x70 + FP,
		0x78,      0x06, /* CFA is the word at rbp - 8 */
	};

	make("zR", usual_data, 1, program, sizeof(program));
	check_at(100, SP_CFI_REALIGNED, -8, 0);
	CHECK(SP_CFI_OTHER, 0x10, FP, 2, 0x70 + FP, 0, 0x0f, 3, 0x73, 0x78,
	      0x06);
	CHECK(SP_CFI_OTHER, 0x10, FP, 2, 0x70 + FP, 0, 0x0f, 2, 0x70 + FP,
	      0x78);
	CHECK(SP_CFI_OTHER, 0x10, FP, 3, 0x70 + FP, 0, 0x06, 0x0f, 3, 0x70 + FP,
	      0x78, 0x06);
	CHECK(SP_CFI_OTHER, 0x0f, 3, 0x70 + FP, 0x78, 0x06);
}

/* ---- expressions ---- */

static bool evaluate_bytes(const uint8_t *bytes, uint64_t *ret)
{
	static const uint64_t word = 0x8877665544332211;
	struct sp_cfi_registers registers = {.known = 1ull << SP_ARCH_SP};
	struct sp_stack_bounds_span nothing = {0, 0, 0};

	registers.value[SP_ARCH_SP] = (uintptr_t)&word;
	return sp_cfi_evaluate(bytes, &registers, NULL, &nothing, ret);
}

#define VALUE(expected, ...)                                                   \
	do {                                                                   \
		const uint8_t ops[] = {__VA_ARGS__};                           \
		uint8_t bytes[64] = {sizeof(ops)};                             \
		uint64_t value = 0;                                            \
                                                                               \
		memcpy(bytes + 1, ops, sizeof(ops));                           \
		assert_true(evaluate_bytes(bytes, &value));                    \
		assert_true(value == (uint64_t)(expected));                    \
	} while (0)

#define NO_VALUE(...)                                                          \
	do {                                                                   \
		const uint8_t ops[] = {__VA_ARGS__};                           \
		uint8_t bytes[64] = {sizeof(ops)};                             \
		uint64_t value;                                                \
                                                                               \
		memcpy(bytes + 1, ops, sizeof(ops));                           \
		assert_false(evaluate_bytes(bytes, &value));                   \
	} while (0)

TEST(expressions)
{
	VALUE(0, 0x30);
	VALUE(31, 0x4f);
	VALUE(200, 0x08, 200);
	VALUE(-56, 0x09, 200);
	VALUE(0xfedc, 0x0a, 0xdc, 0xfe);
	VALUE(-0x124, 0x0b, 0xdc, 0xfe);
	VALUE(-2, 0x0d, 0xfe, 0xff, 0xff, 0xff);
	VALUE(0xfffffffe, 0x0c, 0xfe, 0xff, 0xff, 0xff);
	VALUE(0x0807060504030201, 0x0e, 1, 2, 3, 4, 5, 6, 7, 8);
	VALUE(300, 0x10, 0xac, 0x02);
	VALUE(-1, 0x11, 0x7f);
	VALUE(0x8877665544332211, 0x70 + SP, 0, 0x06);
	VALUE(0x8877665544332211, 0x92, SP, 0, 0x06);
	VALUE(0x2211, 0x70 + SP, 0, 0x94, 2);
	VALUE(3, 0x31, 0x32, 0x22);  /* plus */
	VALUE(-1, 0x31, 0x32, 0x1c); /* minus */
	VALUE(6, 0x32, 0x33, 0x1e);  /* mul */
	VALUE(2, 0x33, 0x36, 0x1a);  /* and */
	VALUE(7, 0x33, 0x36, 0x21);  /* or */
	VALUE(5, 0x33, 0x36, 0x27);  /* xor */
	VALUE(8, 0x31, 0x33, 0x24);  /* shl */
	VALUE(0, 0x31, 0x08, 64, 0x24);
	VALUE(1, 0x38, 0x33, 0x25);        /* shr */
	VALUE(-1, 0x11, 0x7e, 0x31, 0x26); /* shra */
	VALUE(-1, 0x11, 0x7e, 0x08, 99, 0x26);
	VALUE(-5, 0x35, 0x1f);      /* neg */
	VALUE(-1, 0x30, 0x20);      /* not */
	VALUE(9, 0x35, 0x23, 4);    /* plus_uconst */
	VALUE(1, 0x31, 0x31, 0x29); /* eq, ge, gt, le, lt, ne */
	VALUE(1, 0x31, 0x11, 0x7f, 0x2a);
	VALUE(0, 0x31, 0x31, 0x2b);
	VALUE(1, 0x11, 0x7f, 0x31, 0x2c);
	VALUE(0, 0x31, 0x31, 0x2d);
	VALUE(0, 0x31, 0x31, 0x2e);
	VALUE(2, 0x31, 0x12, 0x22);          /* dup */
	VALUE(1, 0x31, 0x32, 0x13);          /* drop */
	VALUE(1, 0x31, 0x32, 0x14);          /* over */
	VALUE(1, 0x31, 0x32, 0x33, 0x15, 2); /* pick */
	VALUE(1, 0x31, 0x32, 0x16);          /* swap */
	VALUE(2, 0x31, 0x32, 0x33, 0x17);    /* rot */
	VALUE(3, 0x31, 0x32, 0x33, 0x17, 0x13, 0x13, 0x96);
	VALUE(4, 0x34, 0x2f, 1, 0, 0x35);       /* skip */
	VALUE(4, 0x34, 0x31, 0x28, 1, 0, 0x35); /* bra */
	VALUE(5, 0x34, 0x30, 0x28, 1, 0, 0x35);
}

TEST(no_values)
{
	NO_VALUE(0x22); /* nothing to add */
	NO_VALUE(0x31, 0x22);
	NO_VALUE(0x31, 0x16);
	NO_VALUE(0x31, 0x15, 1);
	NO_VALUE(0x30, 0x06); /* address 0 */
	NO_VALUE(0x70 + SP, 0, 0x94, 9);
	NO_VALUE(0x70, 0);     /* a register that is not known */
	NO_VALUE(0x92, 99, 0); /* or none */
	NO_VALUE(0x0e, 1, 2);  /* beyond the end */
	NO_VALUE(0x2f, 100, 0);
	NO_VALUE(0x2f, 0x80, 0xff);
	NO_VALUE(0x2f, 0xfd, 0xff); /* for ever */
	NO_VALUE(0x31, 0x12, 0x2f, 0xfc, 0xff);
	NO_VALUE(0xff);
}

/* Any byte of the tables may be anything: nothing is read outside of them. */
TEST(damage)
{
	static const uint8_t program[] = {
		0x41,      0x0e,      16,   0x80 + FP, 2,    0x43,
		0x0d,      FP,        0x0a, 0x0b,      0x10, FP,
		2,         0x70 + FP, 0,    0x16,      3,    4,
		0x70 + SP, 8,         0x06, 0x31,      0x0f, 3,
		0x70 + FP, 0x78,      0x06, 0x09,      12,   13};
	/* A stack that is all zero, with each register in the middle. */
	static uint64_t stack[1u << 16];
	struct sp_stack_bounds_span memory = {(uintptr_t)stack,
					      (uintptr_t)stack + sizeof(stack),
					      UINTPTR_MAX};
	uint32_t random = 1;

	for (int i = 0; i < 200000; i++) {
		struct sp_cfi_registers registers = {.known = ~0ull};
		uintptr_t pc = (uintptr_t)object.code + 101;
		bool is_signal = false;

		make("zPLR", "\x9b....\x1b\x1b", 7, program, sizeof(program));
		for (int k = 0; k < 3; k++) {
			random = random * 1664525u + 1013904223u;
			((uint8_t *)&object)[random % 120] =
				(uint8_t)(random >> 24);
		}
		sp_cfi_find(&run, &entry, pc);
		for (int k = 0; k < SP_ARCH_REGISTERS; k++)
			registers.value[k] = (uintptr_t)&stack[1u << 15];
		registers.value[SP_ARCH_PC] = pc;
		sp_cfi_step(&run, &entry, &registers, &memory, &is_signal);
	}
}

/* ---- without a header ---- */

/* An object of n functions in reverse order, 16 bytes each, whose entries have
 * 24 bytes each, behind bytes that are none. */
#define N         1000
#define FUNCTIONS 16
#define CODE      ((size_t)N * FUNCTIONS)
#define TABLES    (32 + 24 + (size_t)N * 24 + 4)

static uint8_t *make_apart(bool is_permanent, size_t bytes)
{
	static const uint8_t cie[] = {
		1,  'z', 'R',           0, 1, 0x78, RETURN, 1, 0x1b, 0x0c,
		SP, 8,   0x80 + RETURN, 1, 0, 0};
	uint8_t *memory = mmap(NULL, 1u << 20, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *at = memory + 65536, *first;

	assert_true(memory != MAP_FAILED);
	memset(at, 0x11, 32);
	first = at += 32;
	at = put_word(at, 4 + sizeof(cie));
	at = put_word(at, 0);
	at = put(at, cie, sizeof(cie));
	for (int i = N; i-- > 0;) {
		at = put_word(at, 20);
		at = put_word(at, at - first);
		at = put_word(at, memory + (size_t)i * FUNCTIONS - at);
		at = put_word(at, FUNCTIONS);
		at = put(at, "\0\0\0\0\0\0\0", 8);
	}
	phdr[0] = (ElfW(Phdr)){.p_type = PT_LOAD,
			       .p_flags = PF_R | PF_X,
			       .p_filesz = CODE,
			       .p_memsz = CODE};
	phdr[1] = (ElfW(Phdr)){.p_type = PT_LOAD,
			       .p_flags = PF_R,
			       .p_vaddr = 65536,
			       .p_filesz = bytes,
			       .p_memsz = bytes};
	entry = (struct sp_module_entry){
		.start = (uintptr_t)memory,
		.end = (uintptr_t)memory + (1u << 20),
		.code_start = (uintptr_t)memory,
		.code_end = (uintptr_t)memory + CODE,
		.bias = (uintptr_t)memory,
		.permanent = is_permanent,
		.phdr = phdr,
		.n_phdr = 2,
	};
	return memory;
}

static enum sp_cfi_kind kind_at(const uint8_t *memory, int function)
{
	return sp_cfi_find(&run, &entry,
			   (uintptr_t)memory + (size_t)function * FUNCTIONS + 8)
		.kind;
}

static void forget(uint8_t *memory)
{
	if (entry.index)
		sp_cfi_index_free(entry.index);
	munmap(memory, 1u << 20);
}

TEST(without_header)
{
	uint8_t *memory = make_apart(true, TABLES);

	for (int i = 0; i < N; i++)
		assert_int_equal(kind_at(memory, i), SP_CFI_SP);
	/* Behind the last. */
	assert_int_equal(kind_at(memory, N), SP_CFI_NONE);
	forget(memory);
}

/* The last entry reaches beyond the segment: it is refused, and nothing behind
 * the segment is read. */
TEST(straddling)
{
	uint8_t *memory = make_apart(true, 32 + 24 + (size_t)N * 24 - 8);

	assert_int_equal(kind_at(memory, 0), SP_CFI_NONE);
	for (int i = 1; i < N; i++)
		assert_int_equal(kind_at(memory, i), SP_CFI_SP);
	forget(memory);
	/* In front of an unreadable page, too, which the segment has. */
	memory = make_apart(true, 65536);
	assert_int_equal(mprotect(memory + 65536 + 32768, 32768, PROT_NONE), 0);
	assert_int_equal(kind_at(memory, 1), SP_CFI_NONE);
	forget(memory);
}

static bool is_touched(const uint8_t *page)
{
	unsigned char in_core = 0;

	assert_int_equal(mincore((void *)(uintptr_t)page, 4096, &in_core), 0);
	return in_core & 1;
}

static uint64_t count_lost(void)
{
	uint64_t losses[SP_FORMAT_LOSSES];

	sp_diag_read(losses);
	return losses[SP_LOSS_TABLES];
}

/* No more of a segment than its end is looked at, and that is told. */
TEST(bounded_search)
{
	const uint64_t lost = count_lost();
	uint8_t *memory = make_apart(true, 65536 + 16 * CODE + 65536);

	assert_int_equal(kind_at(memory, 1), SP_CFI_NONE);
	assert_false(is_touched(memory + 65536 + 32768));
	assert_true(count_lost() > lost);
	forget(memory);
}

/* A library of data only, and all where frame pointers are followed (last:
 * this is for good), have no index, and nobody looks for tables. */
TEST(nothing_is_searched)
{
	const size_t far = 1u << 19;
	uint8_t *memory = make_apart(true, 1u << 19);

	entry.code_start = UINTPTR_MAX;
	entry.code_end = 0;
	assert_true(sp_cfi_index_find(&entry, (uintptr_t)memory) == 0);
	assert_null(entry.index);
	assert_false(is_touched(memory + far));
	forget(memory);
	memory = make_apart(true, TABLES);
	sp_cfi_index_forbid();
	assert_int_equal(kind_at(memory, 1), SP_CFI_NONE);
	assert_null(entry.index);
	forget(memory);
}

TEST_MAIN(NULL, NULL)
