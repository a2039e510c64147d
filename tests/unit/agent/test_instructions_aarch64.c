/* SPDX-License-Identifier: MIT */
/*
 * Instructions of aarch64 by hand, as an assembler writes them: kind, and the
 * distance that has to be mended; what is not allocated is not understood.
 */
#include "agent/divert/decode.h"
#include "support/test.h"

struct form {
	uint32_t word;
	uint8_t kind;
	uint8_t field, field_size;
	int64_t target;
};

#define PLAIN SP_INSTRUCTION_PLAIN
#define RIP   SP_INSTRUCTION_RIP

static const struct form forms[] = {
	{0x10ffffe0, RIP, 5, 19, -4},           /* adr */
	{0x3002aaa3, RIP, 5, 19, 0x5555},       /* adr */
	{0xb0091a20, RIP, 5, 19, 0x12345000},   /* adrp */
	{0x90800000, RIP, 5, 19, -0x100000000}, /* adrp */
	{0x58000800, RIP, 5, 19, 0x100},        /* ldr x */
	{0x18800001, RIP, 5, 19, -0x100000},    /* ldr w */
	{0x9c000080, RIP, 5, 19, 16},           /* ldr q */
	{0x98000041, RIP, 5, 19, 8},            /* ldrsw */
	{0xd8000040, RIP, 5, 19, 8},            /* prfm */
	{0x16000000, SP_INSTRUCTION_JMP, 0, 26, -0x8000000},
	{0x14000001, SP_INSTRUCTION_JMP, 0, 26, 4},
	{0x95ffffff, SP_INSTRUCTION_CALL, 0, 26, 0x7fffffc},
	{0x547fffe0, SP_INSTRUCTION_JCC, 5, 19, 0xffffc},    /* b.eq */
	{0xb4ffffe0, SP_INSTRUCTION_JCC, 5, 19, -4},         /* cbz */
	{0x35000040, SP_INSTRUCTION_JCC, 5, 19, 8},          /* cbnz */
	{0xb60bffe0, SP_INSTRUCTION_JCC, 5, 14, 0x7ffc},     /* tbz */
	{0x371c0000, SP_INSTRUCTION_JCC, 5, 14, -0x8000},    /* tbnz */
	{0xd61f0220, SP_INSTRUCTION_INDIRECT, 0, 0, 0},      /* br */
	{0xd71f0822, SP_INSTRUCTION_INDIRECT, 0, 0, 0},      /* braa */
	{0xd63f0100, SP_INSTRUCTION_INDIRECT_CALL, 0, 0, 0}, /* blr */
	{0xd63f087f, SP_INSTRUCTION_INDIRECT_CALL, 0, 0, 0}, /* blraaz */
	{0xd65f03c0, SP_INSTRUCTION_RET, 0, 0, 0},           /* ret */
	{0xd65f0bff, SP_INSTRUCTION_RET, 0, 0, 0},           /* retaa */
	{0xd4200020, SP_INSTRUCTION_TRAP, 0, 0, 0},          /* brk */
	{0xd4400020, SP_INSTRUCTION_TRAP, 0, 0, 0},          /* hlt */
	{0x00000007, SP_INSTRUCTION_TRAP, 0, 0, 0},          /* udf */
	{0xd503241f, SP_INSTRUCTION_ENDBR, 0, 0, 0},         /* bti */
	{0xd503245f, SP_INSTRUCTION_ENDBR, 0, 0, 0},         /* bti c */
	{0xd503249f, SP_INSTRUCTION_ENDBR, 0, 0, 0},         /* bti j */
	{0xd50324df, SP_INSTRUCTION_ENDBR, 0, 0, 0},         /* bti jc */
	{0xd503233f, SP_INSTRUCTION_ENDBR, 0, 0, 0},         /* paciasp */
	{0xd503237f, SP_INSTRUCTION_ENDBR, 0, 0, 0},         /* pacibsp */
	{0xd50323bf, PLAIN, 0, 0, 0},                        /* autiasp */
	{0xd4000001, PLAIN, 0, 0, 0},                        /* svc */
	{0xd503201f, PLAIN, 0, 0, 0},                        /* nop */
	{0xd5033bbf, PLAIN, 0, 0, 0},                        /* dmb */
	{0xd53bd040, PLAIN, 0, 0, 0},                        /* mrs */
	{0xa9bf7bfd, PLAIN, 0, 0, 0},                        /* stp */
	{0xd10083ff, PLAIN, 0, 0, 0},                        /* sub sp */
	{0xaa0103e0, PLAIN, 0, 0, 0},                        /* mov */
	{0x885f7c20, PLAIN, 0, 0, 0},                        /* ldxr */
	{0x1e622820, PLAIN, 0, 0, 0},                        /* fadd */
	{0x9e670020, PLAIN, 0, 0, 0},                        /* fmov */
	{0x04a00000, PLAIN, 0, 0, 0},                        /* add of z0.s */
	/* Not understood. */
	{0xd69f03e0, SP_INSTRUCTION_UNKNOWN, 0, 0, 0}, /* eret */
	{0xd4000022, SP_INSTRUCTION_UNKNOWN, 0, 0, 0}, /* hvc */
	{0xdc000000, SP_INSTRUCTION_UNKNOWN, 0, 0, 0}, /* none */
	{0x5500001f, SP_INSTRUCTION_UNKNOWN, 0, 0, 0}, /* retaasppc */
	{0x74000000, SP_INSTRUCTION_UNKNOWN, 0, 0, 0}, /* cbgt */
	{0xdac1a3fe, SP_INSTRUCTION_UNKNOWN, 0, 0, 0}, /* paciasppc */
	{0xf380001f, SP_INSTRUCTION_UNKNOWN, 0, 0, 0}, /* autiasppc */
	{0x80800000, SP_INSTRUCTION_UNKNOWN, 0, 0, 0}, /* of matrices */
	{0x02000000, SP_INSTRUCTION_UNKNOWN, 0, 0, 0}, /* none */
	{0x06000000, SP_INSTRUCTION_UNKNOWN, 0, 0, 0}, /* none */
};

TEST(forms)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		const struct form *f = &forms[i];
		const bool is_known = f->kind != SP_INSTRUCTION_UNKNOWN;
		const uint8_t code[] = {
			(uint8_t)f->word, (uint8_t)(f->word >> 8),
			(uint8_t)(f->word >> 16), (uint8_t)(f->word >> 24)};
		struct sp_instruction got;

		if (sp_decode(code, sizeof(code), &got) != is_known ||
		    got.length != (is_known ? 4 : 0) || got.kind != f->kind ||
		    got.field != f->field || got.field_size != f->field_size ||
		    got.target_offset != f->target)
			fail_msg("0x%08x: %d %d %d %lld", f->word, got.kind,
				 got.field, got.field_size,
				 (long long)got.target_offset);
		assert_false(sp_decode(code, 3, &got));
		assert_int_equal(got.length, 0);
	}
}

TEST_MAIN(NULL, NULL)
