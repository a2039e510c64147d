/* SPDX-License-Identifier: MIT */
/* sp_callsite_is_wrapper(), sp_callsite_check() */
#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "model/profile.h"
#include "symbols/debuginfo.h"
#include "symbols/demangle.h"
#include "symbols/images.h"
#include "symbols/seethrough.h"

/* `n` bytes of code up to the address `end`; NULL: the file does not have
 * them. */
static const uint8_t *code_before(Elf *elf, uint64_t end, size_t n)
{
	size_t n_headers = 0, file_bytes = 0;
	const char *file = elf_rawfile(elf, &file_bytes);

	elf_getphdrnum(elf, &n_headers);
	for (size_t i = 0; file && i < n_headers; i++) {
		GElf_Phdr p;
		uint64_t at;

		if (!gelf_getphdr(elf, (int)i, &p) || p.p_type != PT_LOAD ||
		    !(p.p_flags & PF_X) || end < p.p_vaddr)
			continue;
		at = end - p.p_vaddr;
		if (at < n || at > p.p_filesz || p.p_offset > file_bytes ||
		    at > file_bytes - p.p_offset)
			continue;
		return (const uint8_t *)file + p.p_offset + at - n;
	}
	return NULL;
}

/* False: the call does not say where it goes. */
static bool find_called(Elf *elf, uint64_t back, uint64_t *ret_called)
{
	const uint8_t *code;
	GElf_Ehdr header;
	int32_t distance;
	uint32_t word;

	if (!gelf_getehdr(elf, &header))
		return false;
	switch (header.e_machine) {
	case EM_X86_64: /* call rel32 */
		code = code_before(elf, back, 5);
		if (!code || code[0] != 0xe8)
			return false;
		memcpy(&distance, code + 1, sizeof(distance));
		*ret_called = back + (uint64_t)(int64_t)distance;
		return true;
	case EM_AARCH64: /* bl */
		code = code_before(elf, back, 4);
		if (!code)
			return false;
		memcpy(&word, code, sizeof(word));
		/* Its 26 bits are the distance in words. */
		distance = (int32_t)(word << 6) >> 4;
		*ret_called = back - 4 + (uint64_t)(int64_t)distance;
		return word >> 26 == 0x25;
	}
	return false;
}

/* As in the symbol table, with a version; NULL: none begins there. */
static const char *name_at(const struct sp_debuginfo *info, uint64_t address)
{
	const char *name;
	uint64_t value;
	GElf_Sym symbol;
	uint32_t i;

	if (!sp_rangemap_find(sp_debuginfo_symbols(info), address, &i))
		return NULL;
	name = sp_debuginfo_symbol(info, i, &symbol, &value);
	return value == address ? name : NULL;
}

bool sp_callsite_is_wrapper(const struct sp_debuginfo *info,
			    const struct sp_see_through *rules,
			    const char *module, uint64_t back)
{
	Elf *elf = sp_debuginfo_elf(info);
	const char *raw = NULL;
	uint64_t called;
	char *name;
	bool is_wrapper;

	if (elf && find_called(elf, back, &called))
		raw = name_at(info, called);
	if (!raw)
		return false;
	name = sp_demangle(raw);
	if (!name)
		name = strndup(raw, strcspn(raw, "@"));
	is_wrapper = name && sp_see_through_role(rules, module, name) ==
				     SP_ROLE_WRAPPER;
	free(name);
	return is_wrapper;
}

/* ---- another build ---- */

/* Of the frames of a module so many are looked at. */
#define LOOKED_AT 4096u

/* Bytes of `call *r/m`, by what is behind its opcode. */
static size_t indirect_bytes(const uint8_t *modrm)
{
	const unsigned int mod = *modrm >> 6, rm = *modrm & 7;
	size_t n = 2;

	if (mod == 3)
		return n;
	if (rm == 4)
		n += 1 + (mod == 0 && (modrm[1] & 7) == 5 ? 4u : 0u);
	if (mod == 0 && rm == 5)
		n += 4;
	return n + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

/* `end` is behind seven bytes. */
static bool is_behind_call_x86_64(const uint8_t *end)
{
	if (end[-5] == 0xe8)
		return true;
	for (size_t n = 2; n <= 7; n++) {
		const uint8_t *at = end - n;

		if (at[0] == 0xff && (at[1] >> 3 & 7) == 2 &&
		    indirect_bytes(at + 1) == n)
			return true;
	}
	return false;
}

static bool is_behind_call_aarch64(const uint8_t *end)
{
	uint32_t word;

	memcpy(&word, end - 4, sizeof(word));
	/* bl; blr, also with a pointer that is authenticated */
	return word >> 26 == 0x25 || (word & 0xfefff800) == 0xd63f0800 ||
	       (word & 0xfffffc1f) == 0xd63f0000;
}

/* True also if it is not known. */
static bool may_be_behind_call(Elf *elf, uint16_t machine, uint64_t back)
{
	const uint8_t *code = code_before(elf, back, 7);

	return !code || (machine == EM_X86_64
				 ? is_behind_call_x86_64(code + 7)
				 : machine != EM_AARCH64 ||
					   is_behind_call_aarch64(code + 7));
}

const struct sp_image *sp_callsite_check(const struct sp_image *image,
					 const struct sp_profile *profile,
					 const struct sp_module *module)
{
	static const struct sp_image other = {
		.reason = "has no build id, and is not the file that ran",
	};
	Elf *elf = image && image->info && !module->build_id_len
			   ? sp_debuginfo_elf(image->info)
			   : NULL;
	size_t n = 0, n_others = 0;
	GElf_Ehdr header;

	if (!elf || !gelf_getehdr(elf, &header))
		return image;
	for (size_t i = 0; i < profile->n_stacks && n < LOOKED_AT; i++) {
		const struct sp_stack *stack = &profile->stacks[i];

		for (uint32_t k = 0; k < stack->n_frames; k++) {
			if (stack->frames[k].module != module->id)
				continue;
			n++;
			n_others += !may_be_behind_call(
				elf, header.e_machine,
				stack->frames[k].offset + module->start_pc -
					module->bias);
		}
	}
	/* Signals interrupt functions at any address. */
	return 2 * n_others > n ? &other : image;
}
