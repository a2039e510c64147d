/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdio.h>

/* The shortest that anything is cut to. */
#define SP_CUT_NAME_MIN 12

/*
 * The name of a function in at most `columns` characters: what it keeps is what
 * tells most.  First the contents of brackets go, the innermost first
 * ("std::map<...>::insert(...)"), then scopes in the middle ("app::...::load"),
 * then characters in the middle.  `name` is UTF-8 on one line
 * (sp_text_print()).  0: no limit; below SP_CUT_NAME_MIN: that.  To be freed
 * by the caller; NULL without memory.
 */
char *sp_cut_name(const char *name, size_t columns);

/* Write an untrusted name as sp_text_print() does, cut to `columns`. */
void sp_cut_name_print(FILE *out, const char *name, size_t columns);
