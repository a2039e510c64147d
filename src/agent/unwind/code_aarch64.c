/* SPDX-License-Identifier: MIT */
/* Instructions of aarch64: words of four bytes. */
#include "agent/unwind/code.h"

#include <string.h>

#include "agent/sys/poison.h"

#define BYTES 4u

static uint32_t word_at(uintptr_t at)
{
	uint32_t word;

	memcpy(&word, (const void *)at, sizeof(word));
	return word;
}

/* bl; blr, and those that check a signature: blraa, blrab, blraaz, blrabz. */
bool sp_code_is_behind_call(uintptr_t pc, uintptr_t low)
{
	uint32_t word;

	if (pc % BYTES || pc - low < BYTES)
		return false;
	word = word_at(pc - BYTES);
	return (word & 0xfc000000u) == 0x94000000u ||
	       (word & 0xfffffc1fu) == 0xd63f0000u ||
	       (word & 0xfefff800u) == 0xd63f0800u;
}

/* mov x8, #139; svc #0 */
bool sp_code_is_trampoline(uintptr_t pc, uintptr_t high)
{
	return pc % BYTES == 0 && high - pc >= 2 * BYTES &&
	       word_at(pc) == 0xd2801168u && word_at(pc + BYTES) == 0xd4000001u;
}

/* ldp x29, x30, [sp], #n; add sp, sp, #n; autiasp or autibsp; ret */
bool sp_code_find_epilogue(const uint8_t *code, size_t n,
			   struct sp_code_epilogue *ret)
{
	bool is_loaded = false;

	*ret = (struct sp_code_epilogue){0, 0, -1};
	for (size_t at = 0; at + BYTES <= n; at += BYTES) {
		const uint32_t word = word_at((uintptr_t)code + at);

		if (word == 0xd65f03c0u)
			return is_loaded;
		if ((word & 0xffc07fffu) == 0xa8c07bfdu && !is_loaded &&
		    (word >> 15 & 0x7f) < 0x40) {
			ret->bp_bytes = ret->cfa_bytes;
			ret->pc_bytes = ret->cfa_bytes + 8;
			ret->cfa_bytes += (int32_t)(8 * (word >> 15 & 0x7f));
			is_loaded = true;
		} else if ((word & 0xffc003ffu) == 0x910003ffu) {
			ret->cfa_bytes += (int32_t)(word >> 10 & 0xfff);
		} else if (word != 0xd50323bfu && word != 0xd50323ffu) {
			return false;
		}
	}
	return false;
}
