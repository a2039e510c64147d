/* SPDX-License-Identifier: MIT */
/* What stands around an address of code. */
#include "agent/unwind/code.h"

#include "agent/sys/poison.h"

bool sp_code_segment(const struct sp_module_entry *e, uintptr_t at,
		     uint32_t flags, struct sp_slice *ret)
{
	for (unsigned int i = 0; i < e->n_phdr; i++) {
		const ElfW(Phdr) *p = &e->phdr[i];
		uintptr_t start = e->bias + p->p_vaddr;

		if (p->p_type != PT_LOAD || at - start >= p->p_memsz ||
		    (p->p_flags & flags) != flags)
			continue;
		*ret = (struct sp_slice){(const uint8_t *)start,
					 (const uint8_t *)(start + p->p_memsz),
					 false};
		return true;
	}
	return false;
}
