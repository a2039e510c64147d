/* SPDX-License-Identifier: MIT */
/* sp_callsite_is_wrapper() */
#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/debuginfo.h"
#include "symbols/demangle.h"
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
