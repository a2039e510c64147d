/* SPDX-License-Identifier: MIT */
/* Rules of all functions of the loaded objects, beside libdw's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <unistd.h>

#include "agent/cfi.h"
#include "agent/modules.h"

/* Of each object at most so many functions, evenly spread, and of each function
 * so many addresses. */
#define FUNCTIONS_MAX 1500u
#define ADDRESSES_MAX 12u

struct count {
	unsigned long all, said;
};

static bool is_saved_at(const Dwarf_Op *ops, size_t n, int64_t *ret_offset)
{
	if (n == 0 || n > 2 || ops[0].atom != DW_OP_call_frame_cfa)
		return false;
	*ret_offset = n == 2 ? (int64_t)ops[1].number : 0;
	return n == 1 || ops[1].atom == DW_OP_plus_uconst;
}

/* As libdw has it. */
static struct sp_cfi_rule model(Dwarf_CFI *cfi, Dwarf_Addr address)
{
	struct sp_cfi_rule rule = {.kind = SP_CFI_OTHER}, other = rule;
	Dwarf_Op memory[3], *ops;
	Dwarf_Frame *frame;
	int64_t offset = 0;
	bool is_signal;
	size_t n;

	if (dwarf_cfi_addrframe(cfi, address, &frame) != 0)
		return other;
	if (dwarf_frame_info(frame, NULL, NULL, &is_signal) != 16 || is_signal)
		goto out;
	assert_int_equal(dwarf_frame_register(frame, 16, memory, &ops, &n), 0);
	if (n == 0 && ops == memory) {
		rule.kind = SP_CFI_END;
		goto out;
	}
	if (!is_saved_at(ops, n, &offset) || offset != -8)
		goto out;
	assert_int_equal(dwarf_frame_register(frame, 6, memory, &ops, &n), 0);
	if (n == 0 && ops == memory)
		goto out;
	if (n > 0 && !is_saved_at(ops, n, &offset))
		goto out;
	rule.bp_bytes = n > 0 ? (int16_t)offset : 0;
	assert_int_equal(dwarf_frame_cfa(frame, &ops, &n), 0);
	if (n == 1 && ops[0].atom == DW_OP_bregx && ops[0].number == 7)
		rule.kind = SP_CFI_SP;
	if (n == 1 && ops[0].atom == DW_OP_bregx && ops[0].number == 6)
		rule.kind = SP_CFI_BP;
	rule.cfa_bytes = n == 1 ? (int32_t)ops[0].number2 : 0;
out:
	free(frame);
	return rule.kind == SP_CFI_OTHER ? other : rule;
}

static void check_address(const struct sp_module_entry *e, Dwarf_CFI *cfi,
			  uintptr_t pc, struct count *count)
{
	/* The instruction before a return address is what both are about. */
	struct sp_cfi_rule theirs = model(cfi, pc - 1 - e->bias);
	struct sp_cfi_rule ours = sp_cfi_find(e, pc);

	count->all++;
	count->said += ours.kind != SP_CFI_OTHER;
	if (ours.kind != theirs.kind || ours.cfa_bytes != theirs.cfa_bytes ||
	    ours.bp_bytes != theirs.bp_bytes)
		fail_msg("%s+0x%lx: %d %d %d, libdw has %d %d %d", e->name,
			 (unsigned long)(pc - e->bias), ours.kind,
			 ours.cfa_bytes, ours.bp_bytes, theirs.kind,
			 theirs.cfa_bytes, theirs.bp_bytes);
}

/* Functions as .eh_frame_hdr lists them. */
static const int32_t *functions_of(const struct sp_module_entry *e,
				   uintptr_t *ret_base, uint32_t *ret_count)
{
	for (unsigned int i = 0; i < e->n_phdr; i++) {
		if (e->phdr[i].p_type != PT_GNU_EH_FRAME)
			continue;
		*ret_base = e->bias + e->phdr[i].p_vaddr;
		memcpy(ret_count, (const void *)(*ret_base + 8), 4);
		return (const int32_t *)(*ret_base + 12);
	}
	return NULL;
}

static void check_object(const struct sp_module_entry *e, Dwarf_CFI *cfi,
			 struct count *count)
{
	uintptr_t base = 0;
	uint32_t n = 0, stride;
	const int32_t *pairs = functions_of(e, &base, &n);

	assert_non_null(pairs);
	stride = n / FUNCTIONS_MAX + 1;
	for (uint32_t i = 0; i + 1 < n; i += stride) {
		uintptr_t start = base + (uintptr_t)(intptr_t)pairs[2 * i];
		uintptr_t end = base + (uintptr_t)(intptr_t)pairs[2 * i + 2];
		uintptr_t step = (end - start) / ADDRESSES_MAX + 1;

		for (uintptr_t pc = start + 1; pc <= end; pc += step)
			check_address(e, cfi, pc, count);
	}
}

static void test_against_libdw(void **state)
{
	struct count count = {0, 0};
	unsigned int objects = 0;

	(void)state;
	elf_version(EV_CURRENT);
	for (unsigned int i = 0; i < sp_modules_count(); i++) {
		const struct sp_module_entry *e = sp_modules_get(i);
		int fd = open(e->name, O_RDONLY | O_CLOEXEC);
		Elf *elf;
		Dwarf_CFI *cfi;

		if (fd < 0)
			continue; /* the vdso */
		elf = elf_begin(fd, ELF_C_READ, NULL);
		cfi = elf ? dwarf_getcfi_elf(elf) : NULL;
		if (cfi) {
			check_object(e, cfi, &count);
			dwarf_cfi_end(cfi);
			objects++;
		}
		elf_end(elf);
		close(fd);
	}
	/* The program, the C library, the loader, libdw and what it needs. */
	assert_true(objects >= 6);
	assert_true(count.all > 20000);
	/* The rest is padding between functions, and the odd assembly. */
	assert_true((double)count.said > 0.8 * (double)count.all);
}

/* ---- made by hand ---- */

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
static ElfW(Phdr) phdr;
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

/* A CIE with that augmentation and its data, and an FDE with that program. */
static void make(const char *letters, const void *data, size_t data_bytes,
		 const void *program, size_t bytes)
{
	/* Aligned by 1 and -8, return address in register 16, CFA = rsp + 8,
	 * return address there. */
	static const uint8_t aligns[] = {1, 0x78, 16};
	static const uint8_t initial[] = {0x0c, 7, 8, 0x90, 1};
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
	phdr = (ElfW(Phdr)){.p_type = PT_GNU_EH_FRAME,
			    .p_memsz = sizeof(object.header)};
	entry = (struct sp_module_entry){
		.start = (uintptr_t)&object,
		.end = (uintptr_t)(&object + 1),
		.bias = (uintptr_t)&object,
		.phdr = &phdr,
		.n_phdr = 1,
	};
}

static const uint8_t usual_data[] = {0x1b};

static void check_at(unsigned int offset, enum sp_cfi_kind kind, int cfa,
		     int bp)
{
	/* The call is the byte before. */
	struct sp_cfi_rule rule =
		sp_cfi_find(&entry, (uintptr_t)object.code + offset + 1);

	assert_int_equal(rule.kind, kind);
	if (kind == SP_CFI_OTHER || kind == SP_CFI_END)
		return;
	assert_int_equal(rule.cfa_bytes, cfa);
	assert_int_equal(rule.bp_bytes, bp);
}

static void test_by_hand(void **state)
{
	static const uint8_t program[] = {
		0x41, 0x0e, 16,   0x86, 2,       /* push %rbp */
		0x43, 0x0d, 6,                   /* mov %rsp,%rbp */
		0x02, 60,   0x0a,                /* remember: an early return */
		0x0c, 7,    8,                   /* leave */
		0x41, 0x0b,                      /* restore: go on */
		0x03, 50,   0,    0x09, 3, 12,   /* rbx is in r12: who cares */
		0x04, 10,   0,    0,    0, 0xc6, /* rbp is untouched again */
	};

	(void)state;
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
	check_at(UINT32_MAX, SP_CFI_OTHER, 0, 0);
	check_at(256, SP_CFI_OTHER, 0, 0);
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
static void test_others(void **state)
{
	(void)state;
	CHECK(SP_CFI_SP, 0);                   /* nothing at all */
	CHECK(SP_CFI_END, 0x07, 16);           /* the outermost function */
	CHECK(SP_CFI_OTHER, 0x0c, 3, 8);       /* by rbx */
	CHECK(SP_CFI_OTHER, 0x0f, 1, 0x30);    /* by an expression */
	CHECK(SP_CFI_OTHER, 0x90, 2);          /* returns elsewhere */
	CHECK(SP_CFI_OTHER, 0x09, 16, 0);      /* by a register */
	CHECK(SP_CFI_OTHER, 0x07, 6);          /* rbp is lost */
	CHECK(SP_CFI_OTHER, 0x10, 6, 1, 0x30); /* or somewhere */
	CHECK(SP_CFI_OTHER, 0x14, 6, 2);
	CHECK(SP_CFI_OTHER, 0x86, 1); /* where the return address is */
	CHECK(SP_CFI_OTHER, 0x0e, 4); /* the caller's stack is not above */
	CHECK(SP_CFI_OTHER, 0x0b);    /* restores what was not remembered */
	CHECK(SP_CFI_OTHER, 0x3f);    /* an instruction of the future */
	CHECK(SP_CFI_OTHER, 0x0f, 0xff, 0xff, 0x03); /* beyond the end */
	CHECK(SP_CFI_OTHER, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a,
	      0x0a); /* remembers more than anybody */
	/* A signal's frame, and letters and encodings that are not known. */
	make("zRS", usual_data, 1, "", 1);
	check_at(100, SP_CFI_OTHER, 0, 0);
	make("zQ", usual_data, 1, "", 1);
	check_at(100, SP_CFI_OTHER, 0, 0);
	make("zR", "\x03", 1, "", 1);
	check_at(100, SP_CFI_OTHER, 0, 0);
	/* A handler of exceptions and its data are passed over. */
	make("zPLR", "\x9b....\x1b\x1b", 7, "", 1);
	check_at(100, SP_CFI_SP, 8, 0);
	make("zPLR", "\x00........\x1b\x1b", 11, "", 1);
	check_at(100, SP_CFI_SP, 8, 0);
}

/* Any byte of the tables may be anything: nothing is read outside of them. */
static void test_damage(void **state)
{
	static const uint8_t program[] = {0x41, 0x0e, 16,   0x86,
					  2,    0x43, 0x0d, 6};
	uint32_t random = 1;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		make("zPLR", "\x9b....\x1b\x1b", 7, program, sizeof(program));
		for (int k = 0; k < 3; k++) {
			random = random * 1664525u + 1013904223u;
			((uint8_t *)&object)[random % 100] =
				(uint8_t)(random >> 24);
		}
		sp_cfi_find(&entry, (uintptr_t)object.code + 101);
	}
}

static int begin(void **state)
{
	(void)state;
	sp_modules_init("/proc/self/exe");
	return sp_modules_count() ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_libdw),
		cmocka_unit_test(test_by_hand),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, begin, NULL);
}
