/* SPDX-License-Identifier: MIT */
/*
 * Instructions by hand: length, kind, and the distance that has to be mended;
 * what is cut or refused is not understood.
 */
#include "agent/divert/decode.h"
#include "support/test.h"

struct form {
	uint8_t code[15];
	uint8_t length;
	uint8_t kind;
	uint8_t field, field_size;
	int64_t target;
};

#define PLAIN SP_INSTRUCTION_PLAIN
#define RIP   SP_INSTRUCTION_RIP

static const struct form forms[] = {
	/* What allocators begin with. */
	{{0x48, 0x81, 0xff, 0, 0x10, 0, 0}, 7, PLAIN, 0, 0, 0}, /* cmp, %rdi */
	{{0x0f, 0x87, 1, 0, 0, 0}, 6, SP_INSTRUCTION_JCC, 2, 4, 7},    /* ja */
	{{0x48, 0x8d, 0x15, 0xf9, 0xff, 0xff, 0xff}, 7, RIP, 3, 4, 0}, /* lea */
	{{0x48, 0x8b, 0x05, 0, 1, 0, 0}, 7, RIP, 3, 4, 263}, /* mov, %rax */
	{{0x48, 0x89, 0xf8}, 3, PLAIN, 0, 0, 0}, /* mov %rdi, %rax */
	{{0x41, 0x57}, 2, PLAIN, 0, 0, 0},       /* push %r15 */
	{{0x55}, 1, PLAIN, 0, 0, 0},
	{{0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0}, 9, PLAIN, 0, 0, 0},
	{{0xff, 0x25, 16, 0, 0, 0}, 6, SP_INSTRUCTION_INDIRECT, 2, 4, 22},
	{{0xff, 0x15, 16, 0, 0, 0}, 6, SP_INSTRUCTION_INDIRECT_CALL, 2, 4, 22},
	{{0x41, 0xff, 0xd3}, 3, SP_INSTRUCTION_INDIRECT_CALL, 0, 0, 0},
	{{0x3e, 0xff, 0xe0}, 3, SP_INSTRUCTION_INDIRECT, 0, 0, 0}, /* notrack */
	{{0xe9, 0xfb, 0xff, 0xff, 0xff}, 5, SP_INSTRUCTION_JMP, 1, 4, 0},
	{{0xf2, 0xe9, 0, 0, 0, 0}, 6, SP_INSTRUCTION_JMP, 2, 4, 6}, /* bnd */
	{{0xeb, 0x80}, 2, SP_INSTRUCTION_JMP, 1, 1, -126},
	{{0x74, 0x7f}, 2, SP_INSTRUCTION_JCC, 1, 1, 129},
	{{0xe8, 0, 0, 0, 0x80}, 5, SP_INSTRUCTION_CALL, 1, 4, 5 - 0x80000000ll},
	/* data16 data16 rex.W call, of thread-local storage */
	{{0x66, 0x66, 0x48, 0xe8, 1, 0, 0, 0}, 8, SP_INSTRUCTION_CALL, 4, 4, 9},
	{{0xe2, 0xfe}, 2, SP_INSTRUCTION_LOOP, 1, 1, 0},
	{{0xe3, 0}, 2, SP_INSTRUCTION_LOOP, 1, 1, 2}, /* jrcxz */
	{{0x67, 0xe3, 0}, 3, SP_INSTRUCTION_LOOP, 2, 1, 3},
	{{0xc3}, 1, SP_INSTRUCTION_RET, 0, 0, 0},
	{{0xc2, 8, 0}, 3, SP_INSTRUCTION_RET, 0, 0, 0},
	{{0xcc}, 1, SP_INSTRUCTION_TRAP, 0, 0, 0},
	{{0xf4}, 1, SP_INSTRUCTION_TRAP, 0, 0, 0},
	{{0x0f, 0x0b}, 2, SP_INSTRUCTION_TRAP, 0, 0, 0},
	{{0xf3, 0x0f, 0x1e, 0xfa}, 4, SP_INSTRUCTION_ENDBR, 0, 0, 0},
	{{0xf3, 0x0f, 0x1e, 0xfb}, 4, PLAIN, 0, 0, 0}, /* endbr32 */
	{{0x0f, 0x1e, 0xfa}, 3, PLAIN, 0, 0, 0},       /* a nop */
	{{0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}, 10, PLAIN, 0, 0, 0},
	/* A constant behind a distance, of each width. */
	{{0x83, 0x3d, 1, 0, 0, 0, 9}, 7, RIP, 2, 4, 8},
	{{0x66, 0xc7, 0x05, 1, 0, 0, 0, 9, 9}, 9, RIP, 3, 4, 10},
	{{0x48, 0xc7, 0x05, 1, 0, 0, 0, 9, 9, 9, 9}, 11, RIP, 3, 4, 12},
	{{0xf6, 0x05, 0, 0, 0, 0, 1}, 7, RIP, 2, 4, 7}, /* testb */
	{{0xf6, 0x15, 0, 0, 0, 0}, 6, RIP, 2, 4, 6},    /* notb */
	{{0x66, 0xf7, 0x05, 0, 0, 0, 0, 1, 1}, 9, RIP, 3, 4, 9},
	{{0x66, 0x0f, 0x3a, 0x0f, 0x05, 0, 0, 0, 0, 8}, 10, RIP, 5, 4, 10},
	{{0xc5, 0xf9, 0x6f, 0x05, 0, 0, 0, 0}, 8, RIP, 4, 4, 8}, /* vmovdqa */
	{{0xc4, 0xe3, 0xfd, 0, 0x0d, 1, 0, 0, 0, 1}, 10, RIP, 5, 4, 11},
	{{0x62, 0xf1, 0x7c, 0x48, 0x10, 0x05, 0, 0, 0, 0}, 10, RIP, 6, 4, 10},
	{{0xc5, 0xf8, 0x77}, 3, PLAIN, 0, 0, 0}, /* vzeroupper */
	/* Widths of constants. */
	{{0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8}, 10, PLAIN, 0, 0, 0},
	{{0x66, 0xb8, 1, 2}, 4, PLAIN, 0, 0, 0},
	{{0xa1, 1, 2, 3, 4, 5, 6, 7, 8}, 9, PLAIN, 0, 0, 0},
	{{0x8b, 0x04, 0x25, 0, 0, 0, 0}, 7, PLAIN, 0, 0, 0},
	{{0x8b, 0x44, 0x24, 8}, 4, PLAIN, 0, 0, 0},
	{{0xf3, 0x0f, 0xb8, 0xc0}, 4, PLAIN, 0, 0, 0}, /* popcnt */
	{{0x0f, 0x05}, 2, PLAIN, 0, 0, 0},             /* syscall */
};

TEST(forms)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		const struct form *f = &forms[i];
		struct sp_instruction got;

		if (!sp_decode(f->code, sizeof(f->code), &got))
			fail_msg("form %zu is not understood", i);
		if (got.length != f->length || got.kind != f->kind ||
		    got.field != f->field || got.field_size != f->field_size ||
		    got.target_offset != f->target)
			fail_msg("form %zu: %d %d %d %d %lld", i, got.length,
				 got.kind, got.field, got.field_size,
				 (long long)got.target_offset);
		/* The same from exactly its bytes, and nothing from fewer. */
		assert_true(sp_decode(f->code, f->length, &got));
		for (size_t n = 0; n < f->length; n++) {
			assert_false(sp_decode(f->code, n, &got));
			assert_int_equal(got.kind, SP_INSTRUCTION_UNKNOWN);
			assert_int_equal(got.length, 0);
		}
	}
}

static const uint8_t refused[][15] = {
	{0x06},                               /* push %es */
	{0x9a},                               /* a far call */
	{0xea},                               /* a far jump */
	{0xcb},                               /* a far return */
	{0xff, 0x18},                         /* likewise, through memory */
	{0xff, 0x28},                         /* likewise */
	{0xc8, 8, 0, 0},                      /* enter */
	{0xce},                               /* into */
	{0xcf},                               /* iret */
	{0xd4, 10},                           /* aam */
	{0x82, 0xc0, 1},                      /* add */
	{0x66, 0xe9, 0, 0, 0, 0},             /* of 16 bits, for some */
	{0x66, 0xe8, 0, 0, 0, 0},             /* likewise */
	{0x66, 0x0f, 0x84, 0, 0, 0, 0},       /* likewise */
	{0x66, 0x74, 0},                      /* likewise */
	{0x66, 0xc3},                         /* likewise */
	{0x66, 0xff, 0xe0},                   /* likewise */
	{0x67, 0x8b, 0x05, 0, 0, 0, 0},       /* by %eip */
	{0x67, 0xa1, 0, 0, 0, 0, 0, 0, 0, 0}, /* an address of 32 bits */
	{0x0f, 0x04},                         /* none */
	{0x0f, 0x20, 0xc0},                   /* control registers */
	{0x0f, 0xb9, 0xc0},                   /* ud1 */
	{0x0f, 0xff, 0xc0},                   /* ud0 */
	{0x0f, 0xb8, 0, 0, 0, 0},             /* jmpe */
	{0x0f, 0x0f, 0xc0, 0x9e},             /* 3DNow */
	{0x66, 0x0f, 0x78, 0xc0, 1, 1},       /* SSE4a */
	{0xc7, 0xf8, 0, 0, 0, 0},             /* xbegin */
	{0xc6, 0xf8, 0},                      /* xabort */
	{0xfe, 0xd0},                         /* none */
	{0x8f, 0xe8, 0x78, 0xa2, 0xc0, 0},    /* XOP */
	{0x48, 0x66, 0x90},                   /* a prefix behind REX */
	{0x40, 0x40, 0x90},                   /* REX twice */
	{0x66, 0xc5, 0xf8, 0x77},             /* a prefix before VEX */
	{0x48, 0xc5, 0xf8, 0x77},             /* likewise */
	{0xf0, 0xc5, 0xf8, 0x77},             /* likewise */
	{0xc5, 0xf8, 0x05},                   /* none */
	{0xc4, 0xe0, 0x78, 0x10, 0xc0},       /* of no map */
	{0x62, 0xf9, 0x7c, 0x48, 0x10, 0xc0}, /* a bit that is 0 */
	{0x62, 0xf1, 0x78, 0x48, 0x10, 0xc0}, /* a bit that is 1 */
	{0xd5, 0x00, 0x90},                   /* of a later processor */
	{0xfa},                               /* cli */
	{0xec},                               /* in */
	/* Longer than any. */
	{0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66,
	 0x66, 0x66, 0x66},
};

TEST(refused)
{
	struct sp_instruction got;

	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		if (sp_decode(refused[i], sizeof(*refused), &got) || got.length)
			fail_msg("%zu is understood", i);
}

TEST_MAIN(NULL, NULL)
