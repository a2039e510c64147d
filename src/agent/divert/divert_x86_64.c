/* SPDX-License-Identifier: MIT */
/*
 * I1  No page is writable and executable at once: stubs and trampolines are
 *     mapped to be executed, and they and the entries are written through
 *     /proc/self/mem, which changes no protection.
 * I2  All functions of a family are planned before the first entry is written;
 *     what is written of one that cannot be finished is taken back.
 * I3  No thread is in one of the functions: there is one thread, and it is not;
 *     or the loader has just mapped the object, and has told nobody.
 */
#include "agent/divert/divert.h"

#include <fcntl.h>
#include <link.h>
#include <string.h>

#include "agent/divert/entry.h"
#include "agent/divert/find.h"
#include "agent/sys/linkmap.h"
#include "agent/sys/sys.h"

#include "agent/sys/poison.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000 /* Linux 4.17 */
#endif

/* Of one function: its stub, and its trampoline behind that. */
#define STUB_BYTES  32u
#define PLACE_BYTES (STUB_BYTES + SP_ENTRY_TRAMPOLINE)
#define ROOM_BYTES  (SP_DIVERT_NAMES * PLACE_BYTES) /* of a family */

static struct sp_divert_families families;

/* What the entries are to become, and were. */
struct entry {
	uintptr_t at;
	uint8_t jump[SP_ENTRY_JUMP], before[SP_ENTRY_JUMP];
};

struct work {
	void (*enter)(void);
	long memory; /* /proc/self/mem */
	uintptr_t room, end;
	struct entry entries[SP_DIVERT_NAMES];
	unsigned int n;
};

static struct work work;

static bool write_code(const struct work *w, uintptr_t at, const void *from,
		       size_t bytes)
{
	return SP_SYS4(pwrite64, w->memory, from, bytes, at) == (long)bytes;
}

/* ---- room near an object ---- */

#define STEP_BYTES (1ul << 20)
#define STEPS      256u

/* The free place next below it: the heap grows above. */
static uintptr_t map_room(uintptr_t text)
{
	for (unsigned int i = 1; i <= STEPS; i++) {
		const uintptr_t at = (text - i * STEP_BYTES) & ~0xfffful;
		long got;

		if (at > text || at < (64u << 10))
			return 0;
		got = sp_syscall(
			SYS_mmap, (long)at, ROOM_BYTES, PROT_READ | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
			0);
		if ((uintptr_t)got == at)
			return at;
		if (got > 0)
			SP_SYS2(munmap, got, ROOM_BYTES);
	}
	return 0;
}

/* ---- one function ---- */

/* mov %r11,-16(%rsp); mov $function,%r11; jmp *enter */
static void make_stub(uint8_t stub[STUB_BYTES],
		      const struct sp_divert_function *f, void (*enter)(void))
{
	static const uint8_t code[STUB_BYTES] = {
		0x4c, 0x89, 0x5c, 0x24, 0xf0, 0x49, 0xbb, 0, 0, 0, 0,
		0,    0,    0,    0,    0xff, 0x25, 0,    0, 0, 0};

	memcpy(stub, code, sizeof(code));
	memcpy(stub + 7, &f, sizeof(f));
	memcpy(stub + 21, &enter, sizeof(enter));
}

/* Stub and trampoline are written; the entry is not. */
static const char *prepare_function(struct work *w,
				    struct sp_divert_function *f)
{
	struct entry *e = &w->entries[w->n];
	struct sp_entry_plan plan;
	uint8_t stub[STUB_BYTES];
	const char *why;

	if (w->room + PLACE_BYTES > w->end)
		return "has no room";
	why = sp_entry_plan(f->entry, f->bytes, w->room + STUB_BYTES, &plan);
	if (why)
		return why;
	if (!sp_entry_jump(e->jump, plan.at, w->room))
		return "is too far away";
	e->at = plan.at;
	memcpy(e->before, (const void *)e->at, sizeof(e->before));
	make_stub(stub, f, w->enter);
	if (!write_code(w, w->room, stub, sizeof(stub)) ||
	    !write_code(w, w->room + STUB_BYTES, plan.trampoline, plan.bytes))
		return "cannot be written: the kernel refuses";
	f->below = __extension__(sp_divert_below *)(w->room + STUB_BYTES);
	w->room += PLACE_BYTES;
	w->n++;
	return NULL;
}

/* ---- a family ---- */

/* A short function may end with a jump to another one of its family, and is
 * seen there. */
static bool leads_to_other(const struct sp_divert_family *family,
			   const struct sp_divert_function *f)
{
	const uintptr_t to = sp_entry_follow(f->entry, f->bytes);

	for (unsigned int i = 0; to && i < SP_DIVERT_NAMES; i++)
		if (family->functions[i].entry == to &&
		    family->functions[i].entry != f->entry)
			return true;
	return false;
}

static bool is_same(const struct sp_divert_name *a,
		    const struct sp_divert_name *b)
{
	return a->does == b->does && a->size == b->size &&
	       a->times == b->times && a->old == b->old;
}

/* One that is another's, too, by another name, was diverted with it.  *ret: two
 * that share their code, and do different things. */
static bool is_shared(const struct sp_divert_family *family,
		      const struct sp_divert_function *f, bool *ret_differs)
{
	const struct sp_divert_function *other = family->functions;

	for (; other < f; other++)
		if (other->entry == f->entry) {
			*ret_differs = !is_same(other->name, f->name);
			return true;
		}
	return false;
}

static void refuse(struct sp_divert_family *family,
		   const struct sp_divert_function *f, const char *why)
{
	family->culprit = f ? f->name->name : "malloc";
	family->why = why;
}

static struct sp_divert_function *answering(struct sp_divert_family *family)
{
	for (unsigned int i = 0; i < SP_DIVERT_NAMES; i++)
		if (sp_divert_names[i].does == SP_DIVERT_ANSWERS)
			return &family->functions[i];
	return NULL;
}

static bool prepare_family(struct work *w, struct sp_divert_family *family)
{
	const uintptr_t answers = answering(family)->entry;

	w->n = 0;
	for (unsigned int i = 0; i < SP_DIVERT_NAMES; i++) {
		struct sp_divert_function *f = &family->functions[i];
		bool differs = false;
		const char *why = NULL;

		if (!f->entry || f->name->does == SP_DIVERT_ANSWERS)
			continue;
		f->answers = __extension__(sp_divert_below *) answers;
		if (!sp_divert_is_code(&family->object, f))
			why = "is not in the code of its file";
		else if (f->name->does == SP_DIVERT_RESIZES && !answers)
			why = "has no sallocx beside it";
		else if (!is_shared(family, f, &differs) &&
			 !leads_to_other(family, f))
			why = prepare_function(w, f);
		else if (differs)
			why = "shares its code with another function";
		if (why) {
			refuse(family, f, why);
			return false;
		}
	}
	return true;
}

static void restore_entries(const struct work *w, unsigned int n)
{
	while (n--)
		write_code(w, w->entries[n].at, w->entries[n].before,
			   SP_ENTRY_JUMP);
}

/* All, or none. */
static bool write_all(const struct work *w)
{
	for (unsigned int i = 0; i < w->n; i++) {
		const struct entry *e = &w->entries[i];

		if (write_code(w, e->at, e->jump, SP_ENTRY_JUMP) &&
		    memcmp((const void *)e->at, e->jump, SP_ENTRY_JUMP) == 0)
			continue;
		restore_entries(w, i + 1);
		return false;
	}
	return true;
}

static void write_entries(const struct work *w, struct sp_divert_family *family)
{
	family->is_diverted = write_all(w);
	if (!family->is_diverted)
		refuse(family, NULL, "cannot be written: the kernel refuses");
}

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

static bool open_memory(struct work *w)
{
	if (w->memory < 0)
		w->memory = SP_SYS4(openat, AT_FDCWD, "/proc/self/mem",
				    O_RDWR | O_CLOEXEC, 0);
	return w->memory >= 0;
}

static const char *prepare_room(struct work *w, uintptr_t near)
{
	if (!open_memory(w))
		return "cannot be written: the kernel refuses";
	w->room = map_room(near);
	w->end = w->room + ROOM_BYTES;
	return w->room ? NULL : "has no room near it";
}

static void give_room(uintptr_t *room)
{
	if (*room)
		SP_SYS2(munmap, *room, ROOM_BYTES);
	*room = 0;
}

static void divert_family(struct work *w, struct sp_divert_family *family,
			  const char *why)
{
	if (family->why)
		return;
	if (!why && family->is_ambiguous)
		why = "is there twice";
	if (!why)
		why = prepare_room(w, family->functions[0].entry);
	if (why) {
		refuse(family, NULL, why);
		return;
	}
	family->room = w->room;
	if (prepare_family(w, family))
		write_entries(w, family);
	if (!family->is_diverted)
		give_room(&family->room);
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

static bool look_at(struct work *w, const struct link_map *map, const char *why)
{
	struct sp_divert_family *f = families.list;
	struct sp_loaded object;
	bool is_any = false;

	if (!is_to_be_looked_at(map) || !sp_loaded_describe(map, &object) ||
	    !sp_divert_find(&object, &families))
		return false;
	for (; f < families.list + SP_DIVERT_FAMILIES; f++) {
		if (f->object.map != map)
			continue;
		divert_family(w, f, why);
		is_any |= f->is_diverted;
	}
	return is_any;
}

/* The last one that was looked at; the loader appends others. */
static const struct link_map *last;

static bool look_behind_last(struct work *w, const char *why)
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

/* The code is gone, and nobody is on the way to it. */
static void forget_gone(void)
{
	struct sp_divert_family *f = families.list;

	for (; f < families.list + SP_DIVERT_FAMILIES; f++) {
		if (!f->object.map || is_in_list(f->object.map))
			continue;
		give_room(&f->room);
		memset(f, 0, sizeof(*f));
	}
}

static void close_memory(struct work *w)
{
	if (w->memory >= 0)
		SP_SYS1(close, w->memory);
	w->memory = -1;
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
	close_memory(&work);
	return is_any;
}

/* ---- what will be ---- */

#define RET 0xc3u

/* It only returns, and debuggers have a breakpoint there.  What it is called
 * for then, `loaded` does and returns.  No page is needed: the loader has
 * mapped this library near itself. */
static void watch_loader(struct work *w, void (*loaded)(void))
{
	const struct r_debug *debug = sp_linkmap_debug();
	const struct link_map *map = NULL;
	struct entry *e = &w->entries[0];
	const ElfW(Sym) *symbol = NULL;
	struct sp_entry_plan plan;

	if (sp_linkmap_global(LOADER, &map))
		symbol = sp_linkmap_symbol(map, LOADER, NULL);
	if (!symbol || !debug || map->l_addr + symbol->st_value != debug->r_brk)
		return;
	if (sp_entry_plan(debug->r_brk, symbol->st_size, debug->r_brk, &plan) ||
	    plan.trampoline[plan.bytes - 1] != RET ||
	    *(const uint8_t *)plan.at != RET ||
	    !sp_entry_jump(e->jump, plan.at, (uintptr_t)loaded) ||
	    !open_memory(w))
		return;
	e->at = plan.at;
	memcpy(e->before, (const void *)e->at, sizeof(e->before));
	w->n = 1;
	write_all(w);
}

/* Constructors of libraries have run, of which the executable has served each
 * that knows it by its name. */
static void note_use(struct sp_divert_family *f)
{
	f->was_used = f->object.map &&
		      (f->object.map != sp_linkmap_first() || !f->prefix[0]);
}

bool sp_divert_begin(void (*enter)(void), void (*loaded)(void))
{
	const char *why;
	bool is_any;

	if (is_left_to_tools())
		return false;
	work.enter = enter;
	why = look_at_threads();
	is_any = look_behind_last(&work, why);
	for (unsigned int i = 0; i < SP_DIVERT_FAMILIES; i++)
		note_use(&families.list[i]);
	if (!why)
		watch_loader(&work, loaded);
	close_memory(&work);
	return is_any;
}

struct sp_divert_families *sp_divert_found(void)
{
	return &families;
}
