/* SPDX-License-Identifier: MIT */
/* Instructions of x86-64. */
#include "agent/unwind/code.h"

#include <string.h>

#include "agent/sys/poison.h"

#define CALL_BYTES_MAX 7u
/* Three of them are no more than a number of 32 bits. */
#define EPILOGUE_BYTES_MAX (1 << 29)

/* How long an indirect call is whose second byte is `modrm`; 0: none. */
static unsigned int indirect_call_bytes(uint8_t modrm, uint8_t sib)
{
	static const uint8_t displacement[3] = {0, 1, 4};
	unsigned int mod = modrm >> 6, rm = modrm & 7;

	if ((modrm & 0x38) != 0x10)
		return 0;
	if (mod == 3)
		return 2;
	if (mod == 0 && (rm == 5 || (rm == 4 && (sib & 7) == 5)))
		return 6u + (rm == 4);
	return 2u + (rm == 4) + displacement[mod];
}

bool sp_code_is_behind_call(uintptr_t pc, uintptr_t low)
{
	const uint8_t *end = (const uint8_t *)pc;
	unsigned int max = CALL_BYTES_MAX;

	if (pc - low < max)
		max = (unsigned int)(pc - low);
	if (max >= 5 && end[-5] == 0xe8)
		return true;
	for (unsigned int n = 2; n <= max; n++)
		if (end[-(int)n] == 0xff &&
		    indirect_call_bytes(end[1 - (int)n],
					n > 2 ? end[2 - (int)n] : 0) == n)
			return true;
	return false;
}

bool sp_code_is_trampoline(uintptr_t pc, uintptr_t high)
{
	/* mov $15, %rax or %eax; syscall */
	static const uint8_t wide[9] = {0x48, 0xc7, 0xc0, 0x0f, 0,
					0,    0,    0x0f, 0x05};
	static const uint8_t narrow[7] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};

	return (high - pc >= sizeof(wide) &&
		memcmp((const void *)pc, wide, sizeof(wide)) == 0) ||
	       (high - pc >= sizeof(narrow) &&
		memcmp((const void *)pc, narrow, sizeof(narrow)) == 0);
}

bool sp_code_find_epilogue(const uint8_t *code, size_t n,
			   struct sp_code_epilogue *ret)
{
	static const uint8_t add_byte[3] = {0x48, 0x83, 0xc4};
	static const uint8_t add_word[3] = {0x48, 0x81, 0xc4};
	int32_t bytes;

	*ret = (struct sp_code_epilogue){8, 0, -1};
	for (size_t at = 0; at < n;) {
		const uint8_t *here = code + at;

		bytes = 0;
		if (here[0] == 0xc3 || here[0] == 0xc2)
			return true;
		if (here[0] == 0x5d) { /* pop %rbp */
			ret->bp_bytes = ret->pc_bytes;
			bytes = 8;
			at++;
		} else if (n - at >= 4 && memcmp(here, add_byte, 3) == 0) {
			bytes = (int8_t)here[3];
			at += 4;
		} else if (n - at >= 7 && memcmp(here, add_word, 3) == 0) {
			memcpy(&bytes, here + 3, sizeof(bytes));
			at += 7;
		}
		if (bytes <= 0 || bytes % 8 || bytes > EPILOGUE_BYTES_MAX)
			return false;
		ret->pc_bytes += bytes;
		ret->cfa_bytes += bytes;
	}
	return false;
}
