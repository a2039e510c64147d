/* SPDX-License-Identifier: MIT */
#include "profile/demangle.h"

#include <demangle.h>
#include <setjmp.h>
#include <stddef.h>
#include <string.h>

#include "profile/rustname.h"

struct sink {
	jmp_buf too_long;
	size_t used;
	char text[SP_DEMANGLED_MAX + 1];
};

/*
 * The demanglers offer no other way to stop.  They keep their state on the
 * stack; what a jump can leak is the buffer of one Rust punycode identifier.
 */
static void collect(const char *piece, size_t size, void *arg)
{
	struct sink *sink = arg;

	if (!size)
		return; /* then `piece` may be NULL */
	if (size > SP_DEMANGLED_MAX - sink->used)
		longjmp(sink->too_long, 1);
	memcpy(sink->text + sink->used, piece, size);
	sink->used += size;
}

char *sp_demangle(const char *name)
{
	struct sink sink;

	/* Both schemes start so; the test spares plain C names the calls. */
	if (name[0] != '_' ||
	    strnlen(name, SP_MANGLED_MAX + 1) > SP_MANGLED_MAX)
		return NULL;
	if (name[1] == 'R' && !sp_rustname_is_tame(name))
		return NULL;
	sink.used = 0;
	if (setjmp(sink.too_long))
		return NULL;
	if (!rust_demangle_callback(name, DMGL_NO_OPTS, collect, &sink)) {
		sink.used = 0;
		if (!cplus_demangle_v3_callback(name, DMGL_NO_OPTS, collect,
						&sink))
			return NULL;
	}
	return sink.used ? strndup(sink.text, sink.used) : NULL;
}
