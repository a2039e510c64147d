/* SPDX-License-Identifier: MIT */
#pragma once

#include <libelf.h>

/*
 * ELF files whose sections are compressed in a way that libelf does not read
 * here: with zstd (libelf before 0.189, or built without it), and tables of
 * symbols.
 *
 * Takes `fd`, an ELF file.  Returns it, if there is nothing to do or it cannot
 * be done, or a descriptor of a copy in memory, in which those sections are not
 * compressed.
 */
int sp_unpacked_open(int fd);

/* Sections of variables' locations, if compressed, are as if they were empty.
 * `elf` (may be NULL) is one that libdwfl has opened. */
void sp_unpacked_hide_locations(Elf *elf);
