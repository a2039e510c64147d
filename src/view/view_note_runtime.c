/* SPDX-License-Identifier: MIT */
/* Runtimes that divide memory by themselves, known by the program, by a module
 * or by a function of it. */
#include <inttypes.h>
#include <string.h>

#include "base/brought.h"
#include "text/text.h"
#include "view/view_note.h"

struct runtime {
	/* Beginnings of base names, each ended by a blank. */
	const char *programs;
	const char *modules;
	const char *functions;
	/* The fact of the file with which all is seen, and how its value then
	 * begins. */
	const char *setting;
	const char *value;
	const char *text;
	bool maps; /* its heap, by functions that the library sees */
};

static const struct runtime runtimes[] = {
	{.programs = "python ",
	 .modules = "libpython ",
	 .setting = "PYTHONMALLOC",
	 .value = "malloc",
	 .text = "Python takes objects of up to 512 bytes from pools of its "
		 "own, which are not seen here; with PYTHONMALLOC=malloc they "
		 "are"},
	{.programs = "java ",
	 .modules = "libjvm.so ",
	 .text = "the Java heap is not seen, the JVM maps it; what is seen is "
		 "its native memory: JNI, the compiler, direct buffers",
	 .maps = true},
	{.programs = "node nodejs ",
	 .modules = "libnode.so libv8.so ",
	 .text = "JavaScript objects are not seen, V8 maps its heap; what is "
		 "seen is native memory: buffers, add-ons, node itself",
	 .maps = true},
	{.modules = "libcoreclr.so libmonosgen libmono-2.0 ",
	 .text = "the .NET heap is not seen, the runtime maps it; what is seen "
		 "is its native memory",
	 .maps = true},
	{.programs = "php ",
	 .modules = "libphp ",
	 .setting = "USE_ZEND_ALLOC",
	 .value = "0",
	 .text = "PHP takes blocks of 2 MiB and divides them by itself; with "
		 "USE_ZEND_ALLOC=0 each object is seen"},
	{.functions = "runtime.asmcgocall x_cgo_ _cgo_ ",
	 .text = "the Go heap is not seen, the Go runtime maps it; what is "
		 "seen is what C code allocates"},
};

static bool begins_with_one(const char *name, const char *words)
{
	for (size_t n; words && *words; words += n + 1) {
		n = strcspn(words, " ");
		if (strncmp(name, words, n) == 0)
			return true;
	}
	return false;
}

static bool is_used(const struct runtime *runtime,
		    const struct sp_profile *profile,
		    const struct sp_aggregate *aggregate)
{
	if (begins_with_one(sp_text_base_name(profile->program),
			    runtime->programs))
		return true;
	for (size_t i = 0; i < profile->n_modules; i++)
		if (begins_with_one(sp_text_base_name(profile->modules[i].path),
				    runtime->modules))
			return true;
	for (size_t i = 0; aggregate && i < aggregate->n_functions; i++)
		if (begins_with_one(aggregate->functions[i].identity,
				    runtime->functions))
			return true;
	return false;
}

static bool is_set(const struct runtime *runtime,
		   const struct sp_profile *profile)
{
	const char *value = runtime->setting
				    ? sp_profile_info(profile, runtime->setting)
				    : NULL;

	return value &&
	       strncmp(value, runtime->value, strlen(runtime->value)) == 0;
}

/* Runtimes that are not known here map their heaps, too. */
#define MAPPED_MIN   (4u << 20)
#define MAPPED_TIMES 2u

/* At its end a runtime may have given all of it back. */
static void print_mapped(FILE *out, const struct sp_profile *p)
{
	const struct sp_mapped *m = &p->mapped;

	fputs("; --view mapped", out);
	if (p->n_parts == 1 && m->bytes < m->peak_bytes / 2)
		fprintf(out, " --at %" PRIu64 "us", m->peak_ns / 1000 + 1);
	fputs(" shows what it maps", out);
}

/* More than all that was ever allocated. */
static void note_mapped(struct sp_view_notes *notes, const struct sp_profile *p)
{
	const struct sp_mapped *m = &p->mapped;

	if (!m->is_known || m->peak_bytes < MAPPED_MIN ||
	    m->peak_bytes / MAPPED_TIMES < p->exact_alloc_bytes)
		return;
	fprintf(sp_view_note(notes),
		"most of its memory the program maps by itself, %s at its peak",
		sp_text_bytes((double)m->peak_bytes).text);
	print_mapped(notes->out, p);
	putc('\n', notes->out);
}

void sp_view_note_runtime(struct sp_view_notes *notes,
			  const struct sp_profile *profile,
			  const struct sp_aggregate *aggregate)
{
	bool is_said = false;

	/* Such a view has the memory that a runtime maps. */
	if (profile->samples_of != SP_SAMPLES_ALLOCATED)
		return;
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(*runtimes); i++) {
		const struct runtime *r = &runtimes[i];

		if (is_set(r, profile) || !is_used(r, profile, aggregate))
			continue;
		fputs(r->text, sp_view_note(notes));
		is_said |= r->maps;
		if (r->maps && profile->mapped.is_known)
			print_mapped(notes->out, profile);
		putc('\n', notes->out);
	}
	if (!is_said)
		note_mapped(notes, profile);
}

void sp_view_note_brought(struct sp_view_notes *notes,
			  const struct sp_profile *p)
{
	if (!p->brought)
		return;
	fputs("this program brings its own allocator (", sp_view_note(notes));
	sp_text_print(notes->out, p->brought);
	fputs("), " SP_BROUGHT_ADVICE "\n", notes->out);
}
