/* SPDX-License-Identifier: MIT */
/* Instructions that give a frame back and return, and others that do more. */

#include "agent/sys/arch.h"
#include "agent/unwind/code.h"
#include "support/test.h"

struct form {
	uint8_t code[16];
	uint8_t n;
	int32_t pc_bytes; /* -1: none */
	int32_t bp_bytes;
};

static const struct form forms[] = {
#ifdef __aarch64__
	/* ldp x29, x30, [sp], #16; ret */
	{{0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6}, 8, 8, 0},
	/* the same, with add sp, sp, #32 or autiasp between */
	{{0xfd, 0x7b, 0xc1, 0xa8, 0xff, 0x83, 0x00, 0x91, 0xc0, 0x03, 0x5f,
	  0xd6},
	 12,
	 8,
	 0},
	{{0xfd, 0x7b, 0xc1, 0xa8, 0xbf, 0x23, 0x03, 0xd5, 0xc0, 0x03, 0x5f,
	  0xd6},
	 12,
	 8,
	 0},
	/* add sp, sp, #32 in front */
	{{0xff, 0x83, 0x00, 0x91, 0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f,
	  0xd6},
	 12,
	 40,
	 32},
	{{0xc0, 0x03, 0x5f, 0xd6}, 4, -1, 0}, /* ret alone: to where? */
	{{0xfd, 0x7b, 0xff, 0xa8, 0xc0, 0x03, 0x5f, 0xd6}, 8, -1, 0}, /* -16 */
	{{0x1f, 0x20, 0x03, 0xd5, 0xc0, 0x03, 0x5f, 0xd6}, 8, -1, 0}, /* nop */
#else
	{{0xc3}, 1, 0, -1},                                 /* ret */
	{{0xc2, 8, 0}, 3, 0, -1},                           /* ret $8 */
	{{0x48, 0x83, 0xc4, 8, 0xc3}, 5, 8, -1},            /* add $8 */
	{{0x5d, 0xc3}, 2, 8, 0},                            /* pop %rbp */
	{{0x48, 0x83, 0xc4, 24, 0x5d, 0xc3}, 6, 32, 24},    /* both */
	{{0x5d, 0x48, 0x83, 0xc4, 16, 0xc3}, 6, 24, 0},     /* other way */
	{{0x48, 0x81, 0xc4, 0, 2, 0, 0, 0xc3}, 8, 512, -1}, /* add $512 */
	{{0x48, 0x83, 0xc4, 0xf8, 0xc3}, 5, -1, 0},         /* add $-8 */
	{{0x48, 0x83, 0xc4, 4, 0xc3}, 5, -1, 0},            /* add $4 */
	{{0x48, 0x81, 0xc4, 8, 0, 0x20, 0, 0xc3}, 8, 0x200008, -1},
	{{0x48, 0x81, 0xc4, 8, 0, 0, 0x40, 0xc3}, 8, -1, 0}, /* 1 GiB */
	{{0xc9, 0xc3}, 2, -1, 0},                            /* leave */
	{{0x5b, 0xc3}, 2, -1, 0},                            /* pop %rbx */
	{{0x90, 0xc3}, 2, -1, 0},                            /* nop */
	{{0x83, 0xc4, 8, 0xc3}, 4, -1, 0},                   /* add to esp */
#endif
};

TEST(forms)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		const struct form *f = &forms[i];
		struct sp_code_epilogue e;

		if (f->pc_bytes < 0) {
			assert_false(sp_code_find_epilogue(f->code, f->n, &e));
			continue;
		}
		assert_true(sp_code_find_epilogue(f->code, f->n, &e));
		assert_int_equal(e.pc_bytes, f->pc_bytes);
		assert_true(e.cfa_bytes >= f->pc_bytes + 8);
		if (SP_ARCH_RECORD_LAST)
			assert_int_equal(e.cfa_bytes, f->pc_bytes + 8);
		assert_int_equal(e.bp_bytes, f->bp_bytes);
	}
}

/* Nothing is said of what ends before the return; nothing behind the end is
 * read, as a sanitizer would tell. */
TEST(cut)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		for (uint8_t n = 0; n < forms[i].n; n++) {
			uint8_t copy[16];
			struct sp_code_epilogue e;
			const uint8_t *at = copy + sizeof(copy) - n;

			for (uint8_t k = 0; k < n; k++)
				copy[sizeof(copy) - n + k] = forms[i].code[k];
			if (forms[i].code[0] != 0xc2)
				assert_false(sp_code_find_epilogue(at, n, &e));
		}
}

TEST_MAIN(NULL, NULL)
