/* SPDX-License-Identifier: MIT */
#pragma once

#include <gelf.h>
#include <stdbool.h>

/* The symbol of that name and type (STT_FUNC, ...) that the object exports;
 * false: it exports none.  The object is untrusted. */
bool sp_dynsym_find(Elf *elf, const char *name, int type, GElf_Sym *ret);
