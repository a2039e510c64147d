/* SPDX-License-Identifier: MIT */
#include "symbols/othername.h"

#include <demangle.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/demangle.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

/* ---- D ---- */

/* Back references that libiberty may follow for one name. */
#define STEPS_MAX 4000u

/* The distance of the reference at `q`, and how long it is; 0: it is none. */
static size_t read_reference(const char *q, size_t *ret_distance)
{
	size_t distance = 0, n = 1;

	for (; q[n] >= 'A' && q[n] <= 'Z' && distance < SP_MANGLED_MAX; n++)
		distance = distance * 26 + (size_t)(q[n] - 'A');
	if (!is_lower(q[n]))
		return 0;
	*ret_distance = distance * 26 + (size_t)(q[n] - 'a');
	return n + 1;
}

/*
 * References to types nest, so that a name can stand for exponentially many:
 * libiberty follows each of them anew.  A type that is referred to lies between
 * there and the reference.  `upto` has the steps of all before a position.
 */
static bool is_tame_d(const char *name, size_t n)
{
	uint64_t *upto = calloc(n + 1, sizeof(*upto));
	bool is_tame = upto != NULL;

	for (size_t at = 0; is_tame && at < n; at++) {
		uint64_t steps = 0;
		size_t distance;

		if (name[at] == 'Q' && read_reference(name + at, &distance)) {
			steps = 1;
			if (distance && distance <= at &&
			    !is_digit(name[at - distance]))
				steps += upto[at] - upto[at - distance];
		}
		upto[at + 1] = upto[at] + steps;
		is_tame = upto[at + 1] <= STEPS_MAX;
	}
	free(upto);
	return is_tame;
}

/* "_DTi16" stands before the name of what is called through an interface. */
static char *demangle_d(const char *name, size_t n)
{
	size_t thunk = 4;
	char *found;

	if (strncmp(name, "_DTi", 4) == 0) {
		while (is_digit(name[thunk]))
			thunk++;
		if (thunk == 4)
			return NULL;
		name += thunk;
		n -= thunk;
	}
	if (strncmp(name, "_D", 2) != 0 ||
	    !(is_digit(name[2]) || strcmp(name, "_Dmain") == 0) ||
	    !is_tame_d(name, n))
		return NULL;
	found = dlang_demangle(name, DMGL_PARAMS);
	if (found && strlen(found) > SP_DEMANGLED_MAX) {
		free(found);
		return NULL;
	}
	return found;
}

/* ---- Fortran ---- */

static char *join(const char *module, size_t n, const char *procedure)
{
	const size_t n_procedure = strlen(procedure);
	char *joined = malloc(n + n_procedure + 3);

	if (!joined)
		return NULL;
	memcpy(joined, module, n);
	memcpy(joined + n, "::", 2);
	memcpy(joined + n + 2, procedure, n_procedure + 1);
	return joined;
}

/* "__MODULE_MOD_PROCEDURE": names of Fortran have no capital letters there. */
static char *demangle_gfortran(const char *name)
{
	static const char mark[] = "_MOD_";
	const char *module = name + 2, *found;

	if (strncmp(name, "__", 2) != 0 || !is_lower(*module))
		return NULL;
	found = strstr(module, mark);
	return found && found[sizeof(mark) - 1]
		       ? join(module, (size_t)(found - module),
			      found + sizeof(mark) - 1)
		       : NULL;
}

/* The length of a name of flang up to a capital letter. */
static size_t flang_bytes(const char *at)
{
	size_t n = 0;

	while (is_lower(at[n]) || is_digit(at[n]) || at[n] == '_')
		n++;
	return n;
}

/* "_QMshopPsell", "_QMshopFsellPinner", "_QPsell"; "_QQmain" is the program. */
static char *demangle_flang(const char *name)
{
	char *found, *to;

	if (strncmp(name, "_Q", 2) != 0)
		return NULL;
	if (strcmp(name, "_QQmain") == 0)
		return strdup("main");
	to = found = malloc(2 * strlen(name) + 1);
	for (name += 2; found && *name;) {
		const size_t n =
			strchr("MSFP", *name) ? flang_bytes(name + 1) : 0;

		if (!n) {
			free(found);
			return NULL;
		}
		if (to != found) {
			memcpy(to, "::", 2);
			to += 2;
		}
		memcpy(to, name + 1, n);
		to += n;
		name += n + 1;
	}
	if (found && to == found) {
		free(found);
		return NULL;
	}
	if (found)
		*to = '\0';
	return found;
}

/* ---- OCaml ---- */

static int digit_of(char c)
{
	if (is_digit(c))
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Without the number at the end: "leaf_83". */
static size_t without_number(const char *name, size_t n)
{
	size_t at = n;

	while (at && is_digit(name[at - 1]))
		at--;
	return at < n && at > 1 && name[at - 1] == '_' ? at - 1 : n;
}

/* "camlShop__Till__open_83", since 5.1 "camlShop__Till.open_83"; "$2b" is a
 * character of an operator. */
static char *demangle_ocaml(const char *name, size_t n)
{
	char *found, *to;
	bool has_module = false;

	if (strncmp(name, "caml", 4) != 0 || name[4] < 'A' || name[4] > 'Z')
		return NULL;
	n = without_number(name, n);
	to = found = malloc(n + 1);
	for (size_t i = 4; found && i < n;) {
		const int high = name[i] == '$' && n - i > 2
					 ? digit_of(name[i + 1])
					 : -1;
		const int low = high >= 2 ? digit_of(name[i + 2]) : -1;
		const bool is_dot =
			name[i] == '.' || strncmp(name + i, "__", 2) == 0;

		has_module |= is_dot;
		*to++ = (char)(is_dot     ? '.'
			       : low >= 0 ? high * 16 + low
					  : name[i]);
		i += low >= 0 ? 3 : is_dot && name[i] == '_' ? 2 : 1;
	}
	if (found && !has_module) {
		free(found);
		return NULL;
	}
	if (found)
		*to = '\0';
	return found;
}

static char *demangle_any(const char *name)
{
	const size_t n = strlen(name);
	char *found;

	if (name[0] == 'c')
		return demangle_ocaml(name, n);
	found = demangle_d(name, n);
	if (!found)
		found = demangle_gfortran(name);
	return found ? found : demangle_flang(name);
}

/* What `demangle` makes of a name, of a part or a copy of a function, too. */
static char *demangle_whole(const char *name, char *demangle(const char *))
{
	char *whole, *found;

	if (strnlen(name, SP_MANGLED_MAX + 1) > SP_MANGLED_MAX)
		return NULL;
	whole = strndup(name, sp_othername_without_clones(name));
	found = whole ? demangle(whole) : NULL;
	free(whole);
	return found;
}

char *sp_othername(const char *name)
{
	/* Spares plain C names the copy. */
	return name[0] == '_' || strncmp(name, "caml", 4) == 0
		       ? demangle_whole(name, demangle_any)
		       : NULL;
}

/* ---- Ada ---- */

/* What libiberty does not know: "till__B_2__open" is in a block;
 * "till__keeperTB" is a task, "till__get_E7b" an entry.  ".2" tells equal names
 * apart. */
static char *without_ada_marks(const char *name)
{
	static const char digits[] = "0123456789";
	char *const copy = strdup(name), *at = copy;
	size_t n;

	while (at && (at = strstr(at, "__B_")) != NULL) {
		n = 4 + strspn(at + 4, digits);
		if (n > 4 && strncmp(at + n, "__", 2) == 0)
			memmove(at, at + n, strlen(at + n) + 1);
		else
			at += n;
	}
	if (!copy)
		return NULL;
	at = strrchr(copy, '.');
	if (at && !at[1 + strspn(at + 1, digits)])
		*at = '\0';
	at = strstr(copy, "_E");
	n = at ? strspn(at + 2, digits) : 0;
	if (n && strcmp(at + 2 + n, "b") == 0)
		*at = '\0';
	n = strlen(copy);
	if (n > 2 && strcmp(copy + n - 2, "TB") == 0)
		copy[n - 2] = '\0';
	return copy;
}

static char *demangle_ada(const char *name)
{
	char *plain = without_ada_marks(name);
	char *found = plain ? ada_demangle(plain, DMGL_PARAMS) : NULL;

	free(plain);
	/* "<name>": it is none */
	if (found && found[0] != '<')
		return found;
	free(found);
	return NULL;
}

char *sp_othername_ada(const char *name)
{
	return strncmp(name, "_ada_", 5) == 0 ||
			       (is_lower(name[0]) && strstr(name, "__"))
		       ? demangle_whole(name, demangle_ada)
		       : NULL;
}

/* ---- parts and copies ---- */

static size_t suffix_bytes(const char *at)
{
	static const char *const words[] = {
		".part", ".isra",     ".constprop",  ".cold",
		".llvm", ".lto_priv", ".localalias", ".specialized"};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		size_t n = strlen(words[i]);

		if (strncmp(at, words[i], n) != 0)
			continue;
		if (at[n] == '.' && is_digit(at[n + 1]))
			for (n++; is_digit(at[n]); n++)
				;
		if (!at[n] || at[n] == '.')
			return n;
	}
	return 0;
}

size_t sp_othername_without_clones(const char *name)
{
	const size_t all = strlen(name);

	for (const char *dot = strchr(name, '.'); dot && dot != name;
	     dot = strchr(dot + 1, '.')) {
		const char *at = dot;
		size_t n;

		while (*at && (n = suffix_bytes(at)) != 0)
			at += n;
		if (!*at)
			return (size_t)(dot - name);
	}
	return all;
}

/* ---- Rust's old scheme ---- */

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f');
}

/* Its bytes; 0: it is no character. */
static size_t put_utf8(char *to, unsigned long code)
{
	if (code < 0x20 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	if (code < 0x80) {
		to[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		to[0] = (char)(0xc0 | code >> 6);
		to[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		to[0] = (char)(0xe0 | code >> 12);
		to[1] = (char)(0x80 | (code >> 6 & 0x3f));
		to[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | code >> 18);
	to[1] = (char)(0x80 | (code >> 12 & 0x3f));
	to[2] = (char)(0x80 | (code >> 6 & 0x3f));
	to[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

/* The text between two "$" at `from`, as it is put at `to`: never longer.
 * Returns what was read; 0: it is no escape. */
static size_t unescape(const char *from, char *to, size_t *ret_put)
{
	static const char *const words[][2] = {
		{"$SP$", "@"}, {"$BP$", "*"}, {"$RF$", "&"}, {"$LT$", "<"},
		{"$GT$", ">"}, {"$LP$", "("}, {"$RP$", ")"}, {"$C$", ","}};
	size_t n = 2;

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strncmp(from, words[i][0], strlen(words[i][0])) == 0) {
			*to = *words[i][1];
			*ret_put = 1;
			return strlen(words[i][0]);
		}
	if (from[1] != 'u')
		return 0;
	while (is_hex(from[n]) && n < 8)
		n++;
	if (n == 2 || from[n] != '$')
		return 0;
	*ret_put = put_utf8(to, strtoul(from + 2, NULL, 16));
	return *ret_put ? n + 1 : 0;
}

void sp_othername_unescape_rust(char *name)
{
	char *to = name;

	for (const char *from = name; *from;) {
		size_t put = 1, taken = 1;

		if (*from == '$' && (taken = unescape(from, to, &put)) == 0) {
			taken = put = 1;
			*to = '$';
		} else if (*from == '.' && from[1] == '.') {
			to[0] = to[1] = ':';
			taken = put = 2;
		} else if (*from != '$') {
			/* a name cannot begin with "$" */
			if (*from == '_' && from[1] == '$' &&
			    (from == name || from[-1] == ':')) {
				from++;
				continue;
			}
			*to = *from;
		}
		to += put;
		from += taken;
	}
	*to = '\0';
}
