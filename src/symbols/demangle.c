/* SPDX-License-Identifier: MIT */
#include "symbols/demangle.h"

#include <demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "symbols/home.h"
#include "symbols/othername.h"
#include "symbols/rustname.h"

struct sink {
	jmp_buf too_long;
	size_t used;
	bool is_rust;
	char text[SP_DEMANGLED_MAX + 1];
};

/*
 * The demanglers offer no other way to stop.  They keep their state on the
 * stack; what a jump can leak is the buffer of one Rust punycode identifier.
 */
static void collect_piece(const char *piece, size_t size, void *arg)
{
	struct sink *sink = arg;

	if (!size)
		return; /* then `piece` may be NULL */
	if (size > SP_DEMANGLED_MAX - sink->used)
		longjmp(sink->too_long, 1);
	memcpy(sink->text + sink->used, piece, size);
	sink->used += size;
}

/* The length without " [clone .part.0]" at the end. */
static size_t without_clones(const char *text, size_t n)
{
	static const char clone[] = " [clone ";
	const size_t n_clone = sizeof(clone) - 1;

	for (size_t i = 0; i + n_clone < n; i++)
		if (memcmp(text + i, clone, n_clone) == 0)
			return i;
	return n;
}

/*
 * gcc gives the part of a coroutine that is resumed the function's name, and
 * its frame as the parameter: "f(f(int)::_Z1fi.Frame*)" is f(int), in place.
 * Returns the length.
 */
static size_t without_frame(char *text, size_t n)
{
	static const char frame[] = ".Frame*)", mangled[] = "::_Z";
	const size_t n_frame = sizeof(frame) - 1, n_mangled = 4;
	size_t end = n - n_frame;

	if (n < n_frame || memcmp(text + end, frame, n_frame) != 0)
		return n;
	while (end > n_mangled &&
	       memcmp(text + end - n_mangled, mangled, n_mangled) != 0)
		end--;
	end -= end < n_mangled ? end : n_mangled;
	for (size_t i = 1; 2 * i <= end; i++)
		if (text[i - 1] == '(' && memcmp(text, text + i, i) == 0) {
			memmove(text, text + i, end - i);
			return end - i;
		}
	return n;
}

/* C++ and Rust. */
static char *demangle_either(const char *name)
{
	struct sink sink;
	char *found;

	/* Both schemes start so; the test spares plain C names the calls. */
	if (name[0] != '_' ||
	    strnlen(name, SP_MANGLED_MAX + 1) > SP_MANGLED_MAX)
		return NULL;
	if (name[1] == 'R' && !sp_rustname_is_tame(name))
		return NULL;
	sink.used = 0;
	if (setjmp(sink.too_long))
		return NULL;
	sink.is_rust = rust_demangle_callback(name, DMGL_NO_OPTS, collect_piece,
					      &sink);
	if (!sink.is_rust) {
		sink.used = 0;
		if (!cplus_demangle_v3_callback(name,
						DMGL_PARAMS | DMGL_RET_DROP,
						collect_piece, &sink)) {
			/* "_Znwm@@GLIBCXX_3.4": without parameters it does not
			 * look behind them */
			sink.used = 0;
			if (!cplus_demangle_v3_callback(name, DMGL_NO_OPTS,
							collect_piece, &sink))
				return NULL;
		}
		sink.used = without_clones(sink.text, sink.used);
		sink.used = without_frame(sink.text, sink.used);
	}
	found = sink.used ? strndup(sink.text, sink.used) : NULL;
	/* The old scheme, which writes characters as "$u7b$". */
	if (found && sink.is_rust && name[1] == 'Z')
		sp_othername_unescape_rust(found);
	return found;
}

char *sp_demangle(const char *name)
{
	char *found = demangle_either(name);
	size_t n;

	if (!found)
		found = sp_othername(name);
	if (found)
		return found;
	n = sp_othername_without_clones(name);
	return name[n] ? strndup(name, n) : NULL;
}

static bool ends_with(const char *text, size_t n, const char *end)
{
	const size_t n_end = strlen(end);

	return n >= n_end && memcmp(text + n - n_end, end, n_end) == 0;
}

size_t sp_demangle_short(const char *name)
{
	static const char *const qualifiers[] = {" const", " volatile", " &",
						 " &&"};
	const size_t all = sp_home_of(name).name_bytes;
	size_t n = all, depth = 0;

	for (size_t i = 0; i < sizeof(qualifiers) / sizeof(*qualifiers); i++)
		if (ends_with(name, n, qualifiers[i])) {
			n -= strlen(qualifiers[i]);
			i = (size_t)-1; /* there may be more */
		}
	if (!n || name[n - 1] != ')')
		return all;
	do {
		n--;
		depth += name[n] == ')';
		depth -= name[n] == '(';
	} while (n && depth);
	/* "operator()" is a name */
	return depth || !n || ends_with(name, n, "operator") ? all : n;
}
