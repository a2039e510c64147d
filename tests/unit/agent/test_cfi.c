/* SPDX-License-Identifier: MIT */
/*
 * Rules, and all registers of the caller, are libdw's at more than 100,000
 * addresses: nearly every call of all objects that the test has loaded, in the
 * long form of all that are installed.
 */

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <unistd.h>

#include "agent/unwind/cfi.h"
#include "agent/unwind/code.h"
#include "agent/unwind/modules.h"
#include "agent/unwind/stack_bounds.h"
#include "support/installed.h"
#include "support/test.h"

/* Of each object at most so many functions, evenly spread. */
#define FUNCTIONS_MAX 3000u

struct count {
	unsigned long all, calls, rules, realigned, steps, signals, invalid;
};

static struct sp_cfi_run run;

/* ---- rules ---- */

static bool is_saved_at(const Dwarf_Op *ops, size_t n, int64_t *ret_offset)
{
	if (n == 0 || n > 2 || ops[0].atom != DW_OP_call_frame_cfa)
		return false;
	*ret_offset = n == 2 ? (int64_t)ops[1].number : 0;
	return n == 1 || ops[1].atom == DW_OP_plus_uconst;
}

static bool is_word_at_bp(const Dwarf_Op *ops, size_t n, int64_t *ret_offset)
{
	*ret_offset = n ? (int64_t)ops[0].number : 0;
	return n == 2 && ops[0].atom == DW_OP_breg0 + SP_ARCH_FP &&
	       ops[1].atom == DW_OP_deref;
}

static struct sp_cfi_rule model_realigned(const Dwarf_Op *cfa, size_t n_cfa,
					  const Dwarf_Op *bp, size_t n_bp,
					  int64_t pc)
{
	struct sp_cfi_rule rule = {.kind = SP_CFI_OTHER};
	int64_t cfa_at;

	if (!is_word_at_bp(cfa, n_cfa, &cfa_at) || n_bp != 2 ||
	    bp[0].atom != DW_OP_call_frame_cfa ||
	    bp[1].atom != DW_OP_breg0 + SP_ARCH_FP)
		return rule;
	rule.kind = SP_CFI_REALIGNED;
	rule.cfa_bytes = (int32_t)cfa_at;
	rule.bp_bytes = (int32_t)bp[1].number;
	rule.pc_bytes = (int32_t)pc;
	return rule;
}

/* As libdw has it. */
static struct sp_cfi_rule model(Dwarf_Frame *frame, bool is_signal)
{
	struct sp_cfi_rule rule = {.kind = SP_CFI_OTHER}, other = rule;
	Dwarf_Op memory[3], bp_memory[3], *ops, *bp_ops;
	int64_t offset = 0, pc = 0;
	size_t n, n_bp;

	if (is_signal)
		return other;
	assert_int_equal(
		dwarf_frame_register(frame, SP_ARCH_RETURN, memory, &ops, &n),
		0);
	if (n == 0 && ops == memory)
		return (struct sp_cfi_rule){.kind = SP_CFI_END};
	if (!is_saved_at(ops, n, &pc) || !sp_arch_fits(8, 0, pc))
		return other;
	assert_int_equal(dwarf_frame_register(frame, SP_ARCH_FP, bp_memory,
					      &bp_ops, &n_bp),
			 0);
	if (n_bp == 0 && bp_ops == bp_memory)
		return other;
	assert_int_equal(dwarf_frame_cfa(frame, &ops, &n), 0);
	if (n_bp > 0 && !is_saved_at(bp_ops, n_bp, &offset))
		return model_realigned(ops, n, bp_ops, n_bp, pc);
	rule.bp_bytes = n_bp > 0 ? (int32_t)offset : 0;
	if (n == 1 && ops[0].atom == DW_OP_bregx && ops[0].number == SP_ARCH_SP)
		rule.kind = SP_CFI_SP;
	if (n == 1 && ops[0].atom == DW_OP_bregx && ops[0].number == SP_ARCH_FP)
		rule.kind = SP_CFI_BP;
	rule.cfa_bytes = n == 1 ? (int32_t)ops[0].number2 : 0;
	rule.pc_bytes = (int32_t)pc;
	if (!sp_arch_fits(rule.cfa_bytes, rule.bp_bytes, pc))
		return other;
	return rule.kind == SP_CFI_OTHER ? other : rule;
}

static void check_rule(struct sp_module_entry *e, uintptr_t pc, bool is_call,
		       Dwarf_Frame *frame, bool is_signal, struct count *count)
{
	struct sp_cfi_rule theirs = model(frame, is_signal);
	struct sp_cfi_rule ours = sp_cfi_find(&run, e, pc);

	if (is_call)
		count->rules += ours.kind != SP_CFI_OTHER;
	count->realigned += ours.kind == SP_CFI_REALIGNED;
	/* By its code, what libdw knows by its tables. */
	if (ours.kind == SP_CFI_SIGNAL && is_signal)
		return;
	if (ours.kind != theirs.kind || ours.cfa_bytes != theirs.cfa_bytes ||
	    ours.bp_bytes != theirs.bp_bytes ||
	    (ours.kind != SP_CFI_OTHER && ours.pc_bytes != theirs.pc_bytes))
		fail_msg("%s+0x%lx: %d %d %d, libdw has %d %d %d", e->name,
			 (unsigned long)(pc - e->bias), ours.kind,
			 ours.cfa_bytes, ours.bp_bytes, theirs.kind,
			 theirs.cfa_bytes, theirs.bp_bytes);
}

/* ---- all registers ---- */

/* Any words at all as a stack, with each register at some place of it. */
#define STACK_WORDS (1u << 19)
static uint64_t stack[STACK_WORDS];
static struct sp_cfi_registers begin_registers;
static struct sp_stack_bounds_span memory;

static void fill_stack(void)
{
	uint64_t random = 1;

	memory.low = (uintptr_t)stack;
	memory.high = (uintptr_t)(stack + STACK_WORDS);
	for (size_t i = 0; i < STACK_WORDS; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		/* Another place of it. */
		stack[i] = (uintptr_t)&stack[STACK_WORDS / 4 +
					     (random >> 33) % STACK_WORDS / 2];
	}
	for (int i = 0; i < SP_ARCH_REGISTERS; i++)
		begin_registers.value[i] = stack[i];
	begin_registers.known = (1ull << SP_ARCH_REGISTERS) - 1;
}

struct model_stack {
	uint64_t values[64];
	int n;
	bool is_value, failed;
};

static void push(struct model_stack *m, uint64_t value)
{
	assert_true(m->n < 64);
	m->values[m->n++] = value;
}

static uint64_t pop(struct model_stack *m)
{
	assert_true(m->n > 0);
	return m->values[--m->n];
}

static void execute_binary(struct model_stack *m, const Dwarf_Op *op)
{
	uint64_t b = pop(m), a = pop(m);

	switch (op->atom) {
	case DW_OP_plus:
		push(m, a + b);
		break;
	case DW_OP_minus:
		push(m, a - b);
		break;
	case DW_OP_and:
		push(m, a & b);
		break;
	case DW_OP_mul:
		push(m, a * b);
		break;
	case DW_OP_shl:
		push(m, a << b);
		break;
	case DW_OP_ge:
		push(m, (int64_t)a >= (int64_t)b);
		break;
	default:
		fail_msg("DWARF operation 0x%x is not known here", op->atom);
	}
}

static void execute(struct model_stack *m, const Dwarf_Op *op, uint64_t cfa,
		    const uint64_t *registers)
{
	uint64_t value;

	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
		push(m, op->atom - DW_OP_lit0);
		return;
	}
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		push(m, registers[op->atom - DW_OP_breg0] + op->number);
		return;
	}
	switch (op->atom) {
	case DW_OP_call_frame_cfa:
		push(m, cfa);
		return;
	case DW_OP_bregx:
		push(m, registers[op->number] + op->number2);
		return;
	case DW_OP_plus_uconst:
		push(m, pop(m) + op->number);
		return;
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_const4u:
	case DW_OP_const4s:
		push(m, op->number);
		return;
	case DW_OP_deref:
		m->failed |= !sp_stack_bounds_read(&memory, pop(m), &value);
		push(m, m->failed ? 0 : value);
		return;
	case DW_OP_drop:
		pop(m);
		return;
	case DW_OP_stack_value:
		m->is_value = true;
		return;
	default:
		break;
	}
	execute_binary(m, op);
}

static bool evaluate(const Dwarf_Op *ops, size_t n, uint64_t cfa,
		     const uint64_t *registers, bool is_location, uint64_t *ret)
{
	struct model_stack m = {.n = 0};

	/* libdw says "in that register" by one operation. */
	if (n == 1 && ops[0].atom == DW_OP_regx) {
		*ret = registers[ops[0].number];
		return true;
	}
	for (size_t i = 0; i < n && !m.failed; i++)
		execute(&m, &ops[i], cfa, registers);
	if (m.failed)
		return false;
	*ret = pop(&m);
	return !is_location || m.is_value ||
	       sp_stack_bounds_read(&memory, *ret, ret);
}

/* Register i of the caller, as libdw has it; false: not known. */
static bool model_register(Dwarf_Frame *frame, int i, uint64_t cfa,
			   const uint64_t *registers, uint64_t *ret)
{
	const uint64_t kept = SP_ARCH_KEPT;
	Dwarf_Op some[3], *ops;
	size_t n;

	assert_int_equal(dwarf_frame_register(frame, i, some, &ops, &n), 0);
	if (n > 0)
		return evaluate(ops, n, cfa, registers, true, ret);
	if (i == SP_ARCH_SP) {
		*ret = cfa;
		return true;
	}
	if (i == SP_ARCH_RETURN && ops == some)
		return false; /* the outermost function */
	/* The default is the same to libdw whether the register is kept. */
	*ret = registers[i];
	return kept >> i & 1;
}

static void check_step(struct sp_module_entry *e, uintptr_t pc,
		       Dwarf_Frame *frame, bool is_signal, struct count *count)
{
	struct sp_cfi_registers ours = begin_registers, theirs = ours;
	bool signal = false, is_done;
	uint64_t value, cfa = 0;
	Dwarf_Op *ops;
	size_t n;

	ours.value[SP_ARCH_PC] = pc;
	theirs.value[SP_ARCH_PC] = pc - 1;
	is_done = sp_cfi_step(&run, e, &ours, &memory, &signal);
	assert_int_equal(dwarf_frame_cfa(frame, &ops, &n), 0);
	if (!evaluate(ops, n, 0, theirs.value, false, &cfa) ||
	    !model_register(frame, SP_ARCH_RETURN, cfa, theirs.value, &value)) {
		assert_false(is_done);
		return;
	}
	if (!is_done || signal != is_signal)
		fail_msg("%s+0x%lx: no step, libdw has one", e->name,
			 (unsigned long)(pc - e->bias));
	for (int i = 0; i < SP_ARCH_REGISTERS; i++) {
		const int of = i == SP_ARCH_PC ? SP_ARCH_RETURN : i;
		bool is_known =
			model_register(frame, of, cfa, theirs.value, &value);

		value += i == SP_ARCH_PC && is_signal;
		if (is_known != (ours.known >> i & 1) ||
		    (is_known && value != ours.value[i]))
			fail_msg("%s+0x%lx: register %d is not libdw's",
				 e->name, (unsigned long)(pc - e->bias), i);
	}
	count->steps++;
	count->signals += is_signal;
}

static void check_address(struct sp_module_entry *e, Dwarf_CFI *cfi,
			  uintptr_t pc, bool is_call, struct count *count)
{
	Dwarf_Frame *frame;
	Dwarf_Op *ops;
	size_t n;
	bool is_signal = false;
	struct sp_cfi_rule rule;

	count->all++;
	/* The instruction before a return address is what both are about. */
	if (dwarf_cfi_addrframe(cfi, pc - 1 - e->bias, &frame) != 0) {
		rule = sp_cfi_find(&run, e, pc);
		if (rule.kind != SP_CFI_NONE && !rule.is_exact)
			fail_msg("%s+0x%lx: libdw has no rule", e->name,
				 (unsigned long)(pc - e->bias));
		return;
	}
	/* Where a table adds to the offset of a frame that it has given an
	 * expression, as assembly of libgcrypt does, libdw knows no frame. */
	if (dwarf_frame_cfa(frame, &ops, &n) != 0) {
		count->invalid++;
		free(frame);
		return;
	}
	assert_int_equal(dwarf_frame_info(frame, NULL, NULL, &is_signal),
			 SP_ARCH_RETURN);
	check_rule(e, pc, is_call, frame, is_signal, count);
	count->calls += is_call;
	check_step(e, pc, frame, is_signal, count);
	free(frame);
}

/* ---- all objects ---- */

/* Wherever a call ends, and at some addresses besides. */
static void check_object(struct sp_module_entry *e, Dwarf_CFI *cfi,
			 struct count *count)
{
	uintptr_t base = 0;
	uint32_t n = 0, stride;
	const int32_t *pairs = installed_functions(e, &base, &n);

	assert_true(pairs || installed_one());
	stride = n / FUNCTIONS_MAX + 1;
	for (uint32_t i = 0; pairs && i + 1 < n; i += stride) {
		uintptr_t start = base + (uintptr_t)(intptr_t)pairs[2 * i];
		uintptr_t end = base + (uintptr_t)(intptr_t)pairs[2 * i + 2];
		struct sp_slice code;

		if (!sp_code_segment(e, start, PF_X, &code) ||
		    end > (uintptr_t)code.end)
			continue;
		for (uintptr_t pc = start + 1; pc <= end; pc++) {
			const bool is_call = sp_code_is_behind_call(pc, start);

			if ((pc - start) % 61 == 1 || is_call)
				check_address(e, cfi, pc, is_call, count);
		}
	}
}

/* A function that aligns its stack, which grows in it. */
static int realign(const char *text, size_t n)
{
	_Alignas(64) char first[64];
	char *second = __builtin_alloca(n);

	strncpy(first, text, sizeof(first) - 1);
	strncpy(second, text, n);
	return strncmp(first, second, n);
}

static int (*volatile realigned)(const char *, size_t) = realign;

TEST(against_libdw)
{
	struct count count = {.all = 0};
	unsigned int objects = 0;

	assert_int_equal(realigned("text", 3), 0);
	fill_stack();
	elf_version(EV_CURRENT);
	for (unsigned int i = 0; i < sp_modules_count(); i++) {
		struct sp_module_entry *e = sp_modules_get(i);
		int fd = installed_is(e->name)
				 ? open(e->name, O_RDONLY | O_CLOEXEC)
				 : -1;
		Elf *elf;
		Dwarf_CFI *cfi;

		if (fd < 0)
			continue; /* the vdso, or not the one */
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
	print_message("%u objects, %lu addresses, %lu behind calls: %lu rules "
		      "(%lu realigned), %lu steps (%lu signals)\n",
		      objects, count.all, count.calls, count.rules,
		      count.realigned, count.steps, count.signals);
	if (installed_one()) {
		installed_tell((unsigned long[INSTALLED_SUMS]){
			count.all, count.calls, count.rules, count.steps,
			count.invalid});
		return;
	}
	/* The program, the C library, the loader, libdw and what it needs. */
	assert_true(objects >= 6);
	assert_true(count.all > 50000);
#ifndef __clang__ /* which does it in another way */
	assert_true(count.realigned > 0 || !SP_ARCH_RECORD_LAST);
#endif
	/* The C library's, or that of the vdso. */
	assert_true(count.signals > 0 || !SP_ARCH_RECORD_LAST);
	/* The rest is padding between functions, and the odd assembly. */
	assert_true((double)count.rules > 0.95 * (double)count.calls);
}

TEST(of_all_installed)
{
	unsigned long sums[INSTALLED_SUMS] = {0};
	unsigned int objects;

	if (installed_one() || !test_rounds(0, 1))
		return;
	objects = installed_check("cfi", sums);
	print_message("%u libraries, %lu addresses, %lu behind calls: %lu "
		      "rules, %lu steps (%lu invalid)\n",
		      objects, sums[0], sums[1], sums[2], sums[3], sums[4]);
	assert_true(sums[4] < 1000);
	assert_true((double)sums[2] > 0.95 * (double)sums[1]);
}

TEST_MAIN(installed_begin, NULL)
