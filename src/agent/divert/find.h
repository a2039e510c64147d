/* SPDX-License-Identifier: MIT */
#pragma once

#include "agent/divert/divert.h"

/*
 * The families of the executable, by the symbol table of its file, which is
 * what the kernel executed or nothing is found.  False: there is none that has
 * a malloc and a free.  Context: cold.
 */
bool sp_divert_find(struct sp_divert_families *ret);
