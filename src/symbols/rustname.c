/* SPDX-License-Identifier: MIT */
#include "symbols/rustname.h"

#include <stdint.h>
#include <string.h>

#include "symbols/demangle.h"

#define DEPTH_MAX     300
#define LIFETIMES_MAX 100
/* Larger numbers are all alike: none stands for anything in a name. */
#define NUMBER_MAX UINT32_MAX

struct walk {
	const char *name; /* behind the "_R" */
	size_t at, end;   /* 0 <= at <= end */
	unsigned int depth;
	bool is_bad;
	/* Bit i: a path, type or constant begins at i. */
	uint64_t begins[SP_MANGLED_MAX / 64 + 1];
};

static void walk_path(struct walk *w);
static void walk_type(struct walk *w);

static char peek_char(const struct walk *w)
{
	return w->is_bad || w->at == w->end ? '\0' : w->name[w->at];
}

static char next_char(struct walk *w)
{
	char c = peek_char(w);

	if (c)
		w->at++;
	else
		w->is_bad = true;
	return c;
}

static bool eat_char(struct walk *w, char c)
{
	if (peek_char(w) != c)
		return false;
	w->at++;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* One more digit of a number that may be too large for its type. */
static uint64_t add_digit(uint64_t number, unsigned int base,
			  unsigned int digit)
{
	return number > NUMBER_MAX ? number : number * base + digit;
}

/* "_" is 0, "0_" is 1. */
static uint64_t walk_number(struct walk *w)
{
	uint64_t number = 0;
	char c;

	if (eat_char(w, '_'))
		return 0;
	while ((c = next_char(w)) != '_') {
		if (is_digit(c))
			number = add_digit(number, 62, (unsigned int)(c - '0'));
		else if (c >= 'a' && c <= 'z')
			number = add_digit(number, 62,
					   (unsigned int)(c - 'a') + 10);
		else if (c >= 'A' && c <= 'Z')
			number = add_digit(number, 62,
					   (unsigned int)(c - 'A') + 36);
		else
			w->is_bad = true;
		if (w->is_bad)
			return 0;
	}
	return number + 1;
}

static void walk_tagged_number(struct walk *w, char tag)
{
	if (eat_char(w, tag))
		walk_number(w);
}

static void walk_identifier(struct walk *w)
{
	uint64_t length;
	char c;

	eat_char(w, 'u');
	c = next_char(w);
	if (!is_digit(c)) {
		w->is_bad = true;
		return;
	}
	length = (unsigned int)(c - '0');
	while (length && is_digit(peek_char(w)))
		length = add_digit(length, 10,
				   (unsigned int)(next_char(w) - '0'));
	eat_char(w, '_');
	if (length > w->end - w->at)
		w->is_bad = true;
	else
		w->at += length;
}

static void walk_back(struct walk *w, size_t tag_at)
{
	uint64_t to = walk_number(w);

	if (to >= tag_at || !(w->begins[to / 64] >> to % 64 & 1))
		w->is_bad = true;
}

/* Here begins something that may be referred to.  False: no deeper. */
static bool enter_name(struct walk *w)
{
	w->begins[w->at / 64] |= 1ull << w->at % 64;
	if (++w->depth > DEPTH_MAX)
		w->is_bad = true;
	return !w->is_bad;
}

static void walk_constant(struct walk *w)
{
	size_t at = w->at;

	if (enter_name(w)) {
		char type = next_char(w);

		if (type == 'B') {
			walk_back(w, at);
		} else if (type != 'p') {
			eat_char(w, 'n');
			while (!w->is_bad && next_char(w) != '_')
				;
		}
	}
	w->depth--;
}

static void walk_generic_arguments(struct walk *w)
{
	while (!w->is_bad && !eat_char(w, 'E')) {
		if (eat_char(w, 'L'))
			walk_number(w);
		else if (eat_char(w, 'K'))
			walk_constant(w);
		else
			walk_type(w);
	}
}

static void walk_path(struct walk *w)
{
	size_t at = w->at;

	if (enter_name(w)) {
		char tag = next_char(w);

		switch (tag) {
		case 'C':
			walk_tagged_number(w, 's');
			walk_identifier(w);
			break;
		case 'N':
			next_char(w);
			walk_path(w);
			walk_tagged_number(w, 's');
			walk_identifier(w);
			break;
		case 'M':
		case 'X':
			walk_tagged_number(w, 's');
			walk_path(w);
			/* fall through */
		case 'Y':
			walk_type(w);
			if (tag != 'M')
				walk_path(w);
			break;
		case 'I':
			walk_path(w);
			walk_generic_arguments(w);
			break;
		case 'B':
			walk_back(w, at);
			break;
		default:
			w->is_bad = true;
		}
	}
	w->depth--;
}

static void walk_binder(struct walk *w)
{
	if (eat_char(w, 'G') && walk_number(w) >= LIFETIMES_MAX)
		w->is_bad = true;
}

static void walk_function(struct walk *w)
{
	walk_binder(w);
	eat_char(w, 'U');
	if (eat_char(w, 'K') && !eat_char(w, 'C'))
		walk_identifier(w);
	while (!w->is_bad && !eat_char(w, 'E'))
		walk_type(w);
	walk_type(w);
}

/* "dyn": a path whose generic arguments stay open for associated types. */
static void walk_traits(struct walk *w)
{
	walk_binder(w);
	while (!w->is_bad && !eat_char(w, 'E')) {
		walk_path(w);
		while (eat_char(w, 'p')) {
			walk_identifier(w);
			walk_type(w);
		}
	}
	if (!eat_char(w, 'L'))
		w->is_bad = true;
	walk_number(w);
}

static void walk_type(struct walk *w)
{
	size_t at = w->at;

	if (enter_name(w)) {
		char tag = next_char(w);

		switch (tag) {
		case 'R':
		case 'Q':
			walk_tagged_number(w, 'L');
			walk_type(w);
			break;
		case 'A':
		case 'S':
		case 'P':
		case 'O':
			walk_type(w);
			if (tag == 'A')
				walk_constant(w);
			break;
		case 'T':
			while (!w->is_bad && !eat_char(w, 'E'))
				walk_type(w);
			break;
		case 'F':
			walk_function(w);
			break;
		case 'D':
			walk_traits(w);
			break;
		case 'B':
			walk_back(w, at);
			break;
		default:
			if (tag < 'a' || tag > 'z') {
				w->at = at;
				walk_path(w);
			}
		}
	}
	w->depth--;
}

bool sp_rustname_is_tame(const char *name)
{
	struct walk w = {.name = name + 2, .end = strcspn(name + 2, ".")};

	if (w.end > SP_MANGLED_MAX)
		return false;
	walk_path(&w);
	/* The crate that a generic function was made for. */
	if (w.at < w.end)
		walk_path(&w);
	return !w.is_bad && w.at == w.end;
}
