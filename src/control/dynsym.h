/* SPDX-License-Identifier: MIT */
#pragma once

#include <gelf.h>
#include <stdbool.h>

/* Find the symbol of that name and type (STT_FUNC, ...) that the object
 * exports. False: it exports none, and *ret is undefined.  The object is
 * untrusted. */
bool sp_dynsym_find(Elf *elf, const char *name, int type, GElf_Sym *ret);
