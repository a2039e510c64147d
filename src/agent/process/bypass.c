/* SPDX-License-Identifier: MIT */
/*
 * What the program allocates by functions that are not ours.  Another object
 * may stand before this library: the program, or what was preloaded first.  And
 * valgrind puts its own functions in the place of those of any library.
 */
#include "agent/process/process.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "agent/divert/divert.h"
#include "agent/sys/linkmap.h"
#include "agent/sys/next.h"
#include "agent/sys/sys.h"
#include "agent/thread/thread.h"

#include "agent/sys/poison.h"

static const char *const entries[] = {
	"malloc",
	"calloc",
	"realloc",
	"reallocarray",
	"memalign",
	"posix_memalign",
	"aligned_alloc",
	"valloc",
	"pvalloc",
	"_Znwm",
	"_Znam",
	"_ZnwmRKSt9nothrow_t",
	"_ZnamRKSt9nothrow_t",
	"_ZnwmSt11align_val_t",
	"_ZnamSt11align_val_t",
	"_ZnwmSt11align_val_tRKSt9nothrow_t",
	"_ZnamSt11align_val_tRKSt9nothrow_t",
};

static bool is_operator(const char *entry)
{
	return entry[0] == '_';
}

#define TEXT_BYTES sizeof(((struct sp_process *)NULL)->unseen)
static_assert(TEXT_BYTES == sizeof(((struct sp_process *)NULL)->linked),
	      "note_entry");

/* A library may come again. */
static bool has_entry(const char *text, const char *separator,
		      const char *entry)
{
	const size_t n = strlen(entry), between = strlen(separator);

	for (const char *p = text; *p; p++)
		if ((p == text ||
		     ((size_t)(p - text) >= between &&
		      strncmp(p - between, separator, between) == 0)) &&
		    strncmp(p, entry, n) == 0 &&
		    (!p[n] || strncmp(p + n, separator, between) == 0))
			return true;
	return false;
}

static void note_entry(char text[TEXT_BYTES], const char *separator,
		       const char *entry)
{
	const size_t at = strlen(text);

	if (has_entry(text, separator, entry) ||
	    at + strlen(separator) + strlen(entry) >= TEXT_BYTES)
		return;
	if (at)
		strcpy(text + at, separator);
	strcpy(text + strlen(text), entry);
}

static void note_unseen(struct sp_process *process, const char *entry)
{
	note_entry(process->unseen, " ", entry);
}

/* ---- what is linked in ---- */

/* The executable's, without a prefix. */
static bool is_diverted(void)
{
	const struct sp_divert_family *f = sp_divert_found()->list;

	for (unsigned int i = 0; i < SP_DIVERT_FAMILIES; i++, f++)
		if (f->object.map && f->object.map == sp_linkmap_first() &&
		    !f->prefix[0])
			return f->is_diverted;
	return false;
}

#define FILE_MAX 64u

/* "malloc", or "je_malloc in libx.so". */
static void name_function(char *to, const struct sp_divert_family *f,
			  const char *function)
{
	const char *file = strrchr(f->object.name, '/');
	size_t n;

	strcpy(to, f->prefix);
	strcpy(to + strlen(to), function);
	if (f->object.map == sp_linkmap_first())
		return;
	strcpy(to + strlen(to), " in ");
	to += strlen(to);
	file = file ? file + 1 : f->object.name;
	n = strlen(file);
	if (n > FILE_MAX)
		n = FILE_MAX;
	memcpy(to, file, n);
	to[n] = '\0';
}

#define FUNCTION_TEXT                                                          \
	(SP_DIVERT_PREFIX + SP_DIVERT_NAME + FILE_MAX +                        \
	 sizeof(" in  (jemalloc)"))

static const char not_seen[] = "linked into the program, and not seen: ";

static void explain_family(struct sp_process *process,
			   const struct sp_divert_family *f)
{
	char name[FUNCTION_TEXT], symbol[SP_DIVERT_PREFIX + sizeof("malloc")];

	name_function(name, f, "malloc");
	if (f->is_diverted) {
		if (f->was_used)
			note_entry(process->missed, ", ", name);
		if (sp_divert_is_jemalloc(f))
			strcpy(name + strlen(name), " (jemalloc)");
		note_entry(process->linked, ", ", name);
		return;
	}
	name_function(name, f, f->culprit);
	strcpy(name + strlen(name), " ");
	/* Without a prefix it stands before this library, which is said. */
	if (!f->prefix[0] && f->object.map == sp_linkmap_first()) {
		sp_process_diagnose(process, name, f->why, "");
		return;
	}
	strcpy(symbol, f->prefix);
	strcpy(symbol + strlen(symbol), "malloc");
	if (has_entry(process->unseen, " ", symbol))
		return;
	note_unseen(process, symbol);
	sp_process_diagnose(process, not_seen, name, f->why);
}

#define TEXT_OF(number) #number
#define DIGITS(number)  TEXT_OF(number)

static const char too_many[] = " is one of more than " DIGITS(
	SP_DIVERT_FAMILIES) " allocators, of which " DIGITS(SP_DIVERT_FAMILIES) " are looked at";

bool sp_process_explain_linked(struct sp_process *process)
{
	struct sp_divert_families *families = sp_divert_found();
	static bool has_said_more;
	bool is_any = false;

	for (unsigned int i = 0; i < SP_DIVERT_FAMILIES; i++) {
		struct sp_divert_family *f = &families->list[i];

		if (!f->object.map || !f->is_new)
			continue;
		f->is_new = false;
		explain_family(process, f);
		is_any = true;
	}
	if (families->is_more && !has_said_more) {
		char name[SP_DIVERT_PREFIX + sizeof("malloc")];

		strcpy(name, families->more);
		strcpy(name + strlen(name), "malloc");
		note_unseen(process, name);
		sp_process_diagnose(process, not_seen, name, too_many);
		has_said_more = is_any = true;
	}
	return is_any;
}

/* ---- what stands before this library ---- */

/* Of a program's own operator new that has no malloc beside it, all is seen
 * that it takes from malloc. */
static const struct link_map *provider_before_us(const char *entry)
{
	const struct link_map *map = NULL;

	if (!sp_linkmap_global(entry, &map) || map == sp_linkmap_self() ||
	    (map == sp_linkmap_first() && is_diverted()) ||
	    (is_operator(entry) && !sp_linkmap_find(map, "malloc")))
		return NULL;
	return map;
}

static void explain_before_us(struct sp_process *process)
{
	const struct link_map *first = NULL;
	bool is_malloc = false;

	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		const struct link_map *map = provider_before_us(entries[i]);

		if (!map)
			continue;
		note_unseen(process, entries[i]);
		is_malloc |= i == 0;
		if (!first)
			first = map;
	}
	if (first)
		sp_process_diagnose(
			process,
			is_malloc ? "malloc of this process is defined by "
				  : "a kin of malloc is defined by ",
			first->l_name && first->l_name[0] ? first->l_name
							  : process->exe_path,
			", which stands before sampleprof: what it does not "
			"pass on is not seen");
}

/* ---- valgrind ---- */

static bool is_counted(void *(*allocate)(size_t), void (*give_back)(void *))
{
	const uint64_t before = sp_thread.objects;

	give_back(allocate(1));
	return sp_thread.objects != before;
}

/* Where it can be asked, a question is better than a guess: whether valgrind
 * does this depends on its options. */
static void explain_valgrind(struct sp_process *process)
{
	void *(*allocate)(size_t);
	void *address = sp_linkmap_global("malloc", NULL);
	bool is_malloc_seen;

	memcpy(&allocate, &address, sizeof(address));
	is_malloc_seen = is_counted(allocate, sp_next.free);
	if (!is_malloc_seen)
		note_unseen(process, "malloc");
	if (sp_next.new_plain && !sp_next.new_plain_is_own &&
	    !is_counted(sp_next.new_plain, sp_next.delete_plain))
		note_unseen(process, "_Znwm");
	if (!is_malloc_seen)
		sp_process_diagnose(
			process,
			"valgrind takes malloc for itself: its allocations are "
			"not seen without ",
			"--soname-synonyms=somalloc=nouserintercepts", "");
	else if (process->unseen[0])
		sp_process_diagnose(process,
				    "valgrind takes operator new for itself: ",
				    "what it allocates is not seen", "");
}

void sp_process_explain_bypass(struct sp_process *process)
{
	explain_before_us(process);
	sp_process_explain_linked(process);
	if (!process->unseen[0] && sp_sys_is_valgrind())
		explain_valgrind(process);
}
