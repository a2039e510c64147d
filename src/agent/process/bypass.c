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

static void note_entry(char text[TEXT_BYTES], const char *separator,
		       const char *entry)
{
	const size_t at = strlen(text);

	if (at + strlen(separator) + strlen(entry) >= TEXT_BYTES)
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

static bool is_diverted(const char *prefix)
{
	const struct sp_divert_families *families = sp_divert_found();

	for (unsigned int i = 0; i < families->n; i++)
		if (strcmp(families->list[i].prefix, prefix) == 0)
			return families->list[i].is_diverted;
	return false;
}

static void explain_family(struct sp_process *process,
			   const struct sp_divert_family *f)
{
	char name[SP_DIVERT_PREFIX + sizeof("malloc (jemalloc)")];
	char culprit[SP_DIVERT_PREFIX + SP_DIVERT_NAME + 1];

	strcpy(name, f->prefix);
	strcpy(name + strlen(name), "malloc");
	if (f->is_diverted) {
		if (sp_divert_is_jemalloc(f))
			strcpy(name + strlen(name), " (jemalloc)");
		note_entry(process->linked, ", ", name);
		return;
	}
	strcpy(culprit, f->prefix);
	strcpy(culprit + strlen(culprit), f->culprit);
	strcpy(culprit + strlen(culprit), " ");
	/* Without a prefix it stands before this library, which is said. */
	if (!f->prefix[0]) {
		sp_process_diagnose(process, culprit, f->why, "");
		return;
	}
	note_unseen(process, name);
	sp_process_diagnose(process,
			    "linked into the program, and not seen: ", culprit,
			    f->why);
}

static void explain_families(struct sp_process *process)
{
	const struct sp_divert_families *families = sp_divert_found();

	for (unsigned int i = 0; i < families->n; i++)
		explain_family(process, &families->list[i]);
	if (families->is_more) {
		char name[SP_DIVERT_PREFIX + sizeof("malloc")];

		strcpy(name, families->more);
		strcpy(name + strlen(name), "malloc");
		note_unseen(process, name);
		sp_process_diagnose(
			process,
			"linked into the program, and not seen: ", name,
			" is one of more than 4 allocators, of which 4 are "
			"looked at");
	}
}

/* ---- what stands before this library ---- */

/* Of a program's own operator new that has no malloc beside it, all is seen
 * that it takes from malloc. */
static const struct link_map *provider_before_us(const char *entry)
{
	const struct link_map *map = NULL;

	if (!sp_linkmap_global(entry, &map) || map == sp_linkmap_self() ||
	    (map == sp_linkmap_first() && is_diverted("")) ||
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
	explain_families(process);
	if (!process->unseen[0] && sp_sys_is_valgrind())
		explain_valgrind(process);
}
