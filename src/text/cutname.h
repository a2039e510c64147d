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
 * ("std::map<...>::insert(...)"), then the outermost callers of a path ("a < b
 * <
 * ..."), then scopes in the middle ("app::...::load"), then characters in the
 * middle.  Brackets that match still do.  `name` is
 * UTF-8 on one line (sp_text_print()).  Below SP_CUT_NAME_MIN: that.  To be
 * freed by the caller; NULL without memory.
 */
char *sp_cut_name(const char *name, size_t columns, enum sp_cut_dots dots);

/* The same without scopes and characters of a function's name: contents of
 * brackets go, and callers.  It may stay longer. */
char *sp_cut_lightly(const char *name, size_t columns, enum sp_cut_dots dots);

/* A name that was cut by itself for so many columns; text NULL: it is whole. */
struct sp_cut {
	const char *name;
	size_t columns;
	char *text;
	size_t begin, end; /* 0 at first: what sp_cut_apart() keeps */
};

/*
 * Names that stand together: where two different ones have one text, other
 * parts of them go, so that each shows where it differs; if there is no room
 * for that, they are numbered ("put<...> [2]").  Two names are never shown as
 * one: where there is no room for that either, they are whole.
 */
void sp_cut_apart(struct sp_cut *cuts, size_t n, enum sp_cut_dots dots);
