/* SPDX-License-Identifier: MIT */
/* What is loaded, at the start, at attach, and from then on. */
#include <link.h>
#include <string.h>

#include "agent/divert/divert_inner.h"
#include "agent/divert/find.h"
#include "agent/sys/linkmap.h"
#include "agent/sys/sys.h"

#include "agent/sys/poison.h"

#define entries sampleprof_agent_entries

static struct sp_divert_work work;

/* They have functions of their own for malloc, and are told what they need. */
static bool is_left_to_tools(void)
{
	static const char *const sanitizers[] = {"__asan_init", "__tsan_init",
						 "__msan_init", "__hwasan_init",
						 "__lsan_init"};

	for (size_t i = 0; i < sizeof(sanitizers) / sizeof(*sanitizers); i++)
		if (sp_linkmap_global(sanitizers[i], NULL))
			return true;
	return sp_sys_is_valgrind();
}

/* The 20th field; the second one, in brackets, may have any of them. */
static const char *look_at_threads(void)
{
	char text[1024];
	const char *at = text;
	unsigned int fields = 2;

	if (sp_sys_read_file("/proc/self/stat", text, sizeof(text)) < 0)
		return "is not diverted without /proc";
	for (const char *p = text; *p; p++)
		if (*p == ')')
			at = p;
	for (; *at && fields < 20; at++)
		fields += *at == ' ';
	return strncmp(at, "1 ", 2) == 0
		       ? NULL
		       : "is not diverted while there are other threads";
}

/* ---- what is loaded ---- */

#define LOADER "_dl_debug_state" /* its function for debuggers */

/* What a library exports is interposed; the loader's are its own. */
static bool is_to_be_looked_at(const struct link_map *map)
{
	if (map == sp_linkmap_first())
		return true;
	return map != sp_linkmap_self() && map->l_name &&
	       strchr(map->l_name, '/') &&
	       !sp_linkmap_symbol(map, "malloc", NULL) &&
	       !sp_linkmap_symbol(map, LOADER, NULL);
}

static bool has_family(const struct link_map *map)
{
	for (unsigned int i = 0; i < SP_DIVERT_FAMILIES; i++)
		if (sp_divert_families.list[i].object.map == map)
			return true;
	return false;
}

static bool look_at(struct sp_divert_work *w, const struct link_map *map,
		    const char *why)
{
	struct sp_divert_family *f = sp_divert_families.list;
	struct sp_loaded object;
	bool is_any = false;

	if (has_family(map) || !is_to_be_looked_at(map) ||
	    !sp_loaded_describe(map, &object) ||
	    !sp_divert_find(&object, &sp_divert_families))
		return false;
	for (; f < sp_divert_families.list + SP_DIVERT_FAMILIES; f++) {
		if (f->object.map != map)
			continue;
		sp_divert_family_write(w, f, why);
		is_any |= f->is_diverted;
	}
	return is_any;
}

/* The last one that was looked at; the loader appends others. */
static const struct link_map *last;

static bool look_behind_last(struct sp_divert_work *w, const char *why)
{
	const struct link_map *map = last ? last->l_next : sp_linkmap_first();
	bool is_any = false;

	w->memory = -1;
	for (; map; map = map->l_next) {
		is_any |= look_at(w, map, why);
		last = map;
	}
	return is_any;
}

static bool is_in_list(const struct link_map *wanted)
{
	const struct link_map *map = sp_linkmap_first();

	while (map && map != wanted)
		map = map->l_next;
	return map;
}

/* Are all entries of the family in that object, and as they were before, or as
 * they became? */
static bool has_entries(const struct sp_loaded *object,
			const struct sp_divert_family *family, bool is_after)
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < entries.n; i++) {
		const struct sp_attach_entry *e = &entries.list[i];

		if (e->family != sp_divert_number_of(family))
			continue;
		if (!sp_loaded_covers(object, e->at, SP_ENTRY_JUMP) ||
		    memcmp((const void *)e->at, is_after ? e->after : e->before,
			   SP_ENTRY_JUMP) != 0)
			return false;
		n++;
	}
	return n;
}

/* Also if the object went and came back at the same place, unseen. */
static bool find_again(struct sp_divert_family *family, bool is_after)
{
	const struct link_map *map = sp_linkmap_first();
	struct sp_loaded object;

	for (; map; map = map->l_next)
		if (sp_loaded_describe(map, &object) &&
		    has_entries(&object, family, is_after)) {
			family->object = object;
			return true;
		}
	return false;
}

static void forget_family(struct sp_divert_family *family)
{
	sp_divert_drop_entries(family);
	sp_divert_give_room(&family->room);
	memset(family, 0, sizeof(*family));
}

/* The code is gone, and nobody is on the way to it. */
static void forget_gone(void)
{
	struct sp_divert_family *f = sp_divert_families.list;

	for (; f < sp_divert_families.list + SP_DIVERT_FAMILIES; f++)
		if (f->object.map && !is_in_list(f->object.map) &&
		    !find_again(f, true))
			forget_family(f);
}

bool sp_divert_look(void)
{
	const struct r_debug *debug = sp_linkmap_debug();
	bool is_any;

	if (!debug || debug->r_state != RT_CONSISTENT)
		return false;
	forget_gone();
	if (!is_in_list(last) || sp_sys_forbids_files()) {
		/* One is gone: no other has come. */
		for (last = debug->r_map; last && last->l_next;)
			last = last->l_next;
		return false;
	}
	is_any = look_behind_last(&work, NULL);
	sp_divert_close_memory(&work);
	return is_any;
}

/* ---- what will be ---- */

#define RET 0xc3u

static struct sp_attach_entry of_loader; /* its address is 0: there is none */

/* It only returns, and debuggers have a breakpoint there.  What it is called
 * for then, `loaded` does and returns.  No page is needed: the loader has
 * mapped this library near itself.  No other thread can be in it. */
static void watch_loader(struct sp_divert_work *w)
{
	const struct r_debug *debug = sp_linkmap_debug();
	const struct link_map *map = NULL;
	struct sp_attach_entry *e = &of_loader;
	const ElfW(Sym) *symbol = NULL;
	struct sp_entry_plan plan;

	if (sp_linkmap_global(LOADER, &map))
		symbol = sp_linkmap_symbol(map, LOADER, NULL);
	if (!symbol || !debug || map->l_addr + symbol->st_value != debug->r_brk)
		return;
	if (sp_entry_plan(debug->r_brk, symbol->st_size, debug->r_brk, &plan) ||
	    plan.trampoline[plan.bytes - 1] != RET ||
	    *(const uint8_t *)plan.at != RET ||
	    !sp_entry_jump(e->after, plan.at, (uintptr_t)w->hooks->loaded) ||
	    !sp_divert_open_memory(w))
		return;
	memcpy(e->before, (const void *)plan.at, sizeof(e->before));
	e->at = plan.at;
	if (!sp_divert_write_entry(w, e)) {
		sp_divert_write_code(w, e->at, e->before, SP_ENTRY_JUMP);
		e->at = 0;
	}
}

/* Constructors of libraries have run, of which the executable has served each
 * that knows it by its name. */
static void note_use(struct sp_divert_family *f)
{
	f->was_used = f->object.map &&
		      (f->object.map != sp_linkmap_first() || !f->prefix[0]);
}

bool sp_divert_begin(const struct sp_divert_hooks *hooks)
{
	const char *why;
	bool is_any;

	if (is_left_to_tools())
		return false;
	work.hooks = hooks;
	why = look_at_threads();
	is_any = look_behind_last(&work, why);
	for (unsigned int i = 0; i < SP_DIVERT_FAMILIES; i++)
		note_use(&sp_divert_families.list[i]);
	if (!why)
		watch_loader(&work);
	sp_divert_close_memory(&work);
	return is_any;
}

/* ---- attach and detach ---- */

/* Of one that is still there, but changed, a thread may be on the way: its
 * place is not used again. */
static bool keep_former(struct sp_divert_family *f)
{
	const bool was_there = is_in_list(f->object.map);

	if (f->is_diverted && find_again(f, false)) {
		f->is_new = true;
		return true;
	}
	if (!was_there) {
		forget_family(f);
		return false;
	}
	f->is_new = true;
	if (f->is_diverted) {
		f->culprit = "malloc";
		f->why = "was changed while nothing was attached";
	}
	f->is_diverted = false;
	sp_divert_drop_entries(f);
	return false;
}

bool sp_divert_attach(const struct sp_divert_hooks *hooks)
{
	struct sp_divert_family *f = sp_divert_families.list;
	bool is_any = false;

	if (is_left_to_tools())
		return false;
	work.hooks = hooks;
	work.is_attaching = true;
	for (; f < sp_divert_families.list + SP_DIVERT_FAMILIES; f++)
		is_any |= f->object.map && keep_former(f);
	last = NULL;
	is_any |= look_behind_last(&work, NULL);
	work.is_attaching = false;
	watch_loader(&work);
	sp_divert_close_memory(&work);
	return is_any;
}

void sp_divert_detach(void)
{
	const struct sp_attach_entry *e = &of_loader;

	work.memory = -1;
	if (e->at && sp_divert_open_memory(&work) &&
	    memcmp((const void *)e->at, e->after, SP_ENTRY_JUMP) == 0)
		sp_divert_write_code(&work, e->at, e->before, SP_ENTRY_JUMP);
	of_loader.at = 0;
	sp_divert_close_memory(&work);
}

bool sp_divert_is_entry(uintptr_t address)
{
	const struct sp_divert_family *f = sp_divert_families.list;

	for (; f < sp_divert_families.list + SP_DIVERT_FAMILIES; f++)
		for (unsigned int i = 0; f->is_diverted && i < SP_DIVERT_NAMES;
		     i++)
			if (f->functions[i].entry == address)
				return true;
	return false;
}

struct sp_divert_families *sp_divert_found(void)
{
	return &sp_divert_families;
}
