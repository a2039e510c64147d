/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/* What stands for the part that is cut out. */
enum sp_cut_dots {
	SP_CUT_ASCII, /* "..." */
	SP_CUT_UTF8,  /* one character */
};

/* The shortest that anything is cut to. */
#define SP_CUT_NAME_MIN 8

/*
 * The name of a function in at most `columns` characters: what it keeps is what
 * tells most.  First the contents of brackets go, the innermost first
 * ("std::map<...>::insert(...)"), then scopes in the middle ("app::...::load"),
 * then characters in the middle.  Brackets that match still do.  `name` is
 * UTF-8 on one line (sp_text_print()).  Below SP_CUT_NAME_MIN: that.  To be
 * freed by the caller; NULL without memory.
 */
char *sp_cut_name(const char *name, size_t columns, enum sp_cut_dots dots);

/* The first step of that, in place, of one or more names: contents of brackets
 * go as long as the text is longer. */
void sp_cut_brackets(char *name, size_t columns, enum sp_cut_dots dots);
