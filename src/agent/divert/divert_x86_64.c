/* SPDX-License-Identifier: MIT */
/*
 * I1  No page is writable and executable at once: stubs and trampolines are
 *     mapped to be executed, and they and the entries are written through
 *     /proc/self/mem, which changes no protection.
 * I2  All functions of a family are planned before the first entry is written;
 *     what is written of one that cannot be finished is taken back.
 * I3  No thread is in one of the functions: there is one thread, and it is not;
 *     or the loader has just mapped the object, and has told nobody; or all
 *     threads are stopped, and the command that attaches writes the entries.
 * I4  What a thread may come from, stub, trampoline and family, stays as it is
 *     while its object is loaded, also when nothing leads there any more.
 */
#include "agent/divert/divert_inner.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>

#include "agent/divert/find.h"
#include "agent/sys/sys.h"

#include "agent/sys/poison.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000 /* Linux 4.17 */
#endif

/* Of one function: its stub, and its trampoline behind that. */
#define STUB_BYTES  32u
#define PLACE_BYTES (STUB_BYTES + SP_ENTRY_TRAMPOLINE)
#define ROOM_BYTES  (SP_DIVERT_NAMES * PLACE_BYTES) /* of a family */

struct sp_divert_families sp_divert_families;

struct sp_attach_entries sampleprof_agent_entries;
#define entries sampleprof_agent_entries
static_assert(SP_ATTACH_ENTRIES >= SP_DIVERT_FAMILIES * SP_DIVERT_NAMES &&
		      SP_ATTACH_ENTRY_BYTES == SP_ENTRY_JUMP,
	      "each function has a place");

bool sp_divert_write_code(const struct sp_divert_work *w, uintptr_t at,
			  const void *from, size_t bytes)
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

static void (*find_hook(const struct sp_divert_hooks *hooks,
			const struct sp_divert_name *name))(void)
{
	if (name->does == SP_DIVERT_ALLOCATES && name->size == 0 &&
	    name->times < 0)
		return hooks->enter_sized;
	if (name->does == SP_DIVERT_FREES && name->old == 0)
		return hooks->enter_free;
	return hooks->enter;
}

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
static const char *prepare_function(struct sp_divert_work *w,
				    struct sp_divert_function *f)
{
	struct sp_attach_entry *e = &w->list[w->n];
	struct sp_entry_plan plan;
	uint8_t stub[STUB_BYTES];
	const char *why;

	if (w->room + PLACE_BYTES > w->end)
		return "has no room";
	why = sp_entry_plan(f->entry, f->bytes, w->room + STUB_BYTES, &plan);
	if (why)
		return why;
	if (!sp_entry_jump(e->after, plan.at, w->room))
		return "is too far away";
	e->at = plan.at;
	e->displaced = (uint8_t)plan.displaced;
	memcpy(e->before, (const void *)e->at, sizeof(e->before));
	make_stub(stub, f, find_hook(w->hooks, f->name));
	if (!sp_divert_write_code(w, w->room, stub, sizeof(stub)) ||
	    !sp_divert_write_code(w, w->room + STUB_BYTES, plan.trampoline,
				  plan.bytes))
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

/* Another family's, by another prefix. */
static bool is_of_another(const struct sp_divert_function *f)
{
	for (uint32_t i = 0; i < entries.n; i++)
		if (entries.list[i].at >= f->entry &&
		    entries.list[i].at < f->entry + f->bytes)
			return true;
	return false;
}

static void refuse(struct sp_divert_family *family,
		   const struct sp_divert_function *f, const char *why)
{
	family->culprit = f ? f->name->name : "malloc";
	family->why = why;
}

/* 0: there is none. */
static uintptr_t find_answering(const struct sp_divert_family *family)
{
	for (unsigned int i = 0; i < SP_DIVERT_NAMES; i++)
		if (sp_divert_names[i].does == SP_DIVERT_ANSWERS &&
		    family->functions[i].entry)
			return family->functions[i].entry;
	return 0;
}

static bool prepare_family(struct sp_divert_work *w,
			   struct sp_divert_family *family)
{
	const uintptr_t answers = find_answering(family);

	w->list = entries.list + entries.n;
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
			 !leads_to_other(family, f) && !is_of_another(f))
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

bool sp_divert_write_entry(const struct sp_divert_work *w,
			   const struct sp_attach_entry *e)
{
	return sp_divert_write_code(w, e->at, e->after, SP_ENTRY_JUMP) &&
	       memcmp((const void *)e->at, e->after, SP_ENTRY_JUMP) == 0;
}

/* All, or none. */
static bool write_all(const struct sp_divert_work *w)
{
	unsigned int n = 0;

	while (n < w->n && sp_divert_write_entry(w, &w->list[n]))
		n++;
	if (n == w->n)
		return true;
	for (n++; n--;)
		sp_divert_write_code(w, w->list[n].at, w->list[n].before,
				     SP_ENTRY_JUMP);
	return false;
}

uint32_t sp_divert_number_of(const struct sp_divert_family *family)
{
	return (uint32_t)(family - sp_divert_families.list);
}

/* The command reads it at any time. */
static void begin_change(void)
{
	__atomic_store_n(&entries.is_changing, 1, __ATOMIC_SEQ_CST);
}

static void end_change(void)
{
	__atomic_store_n(&entries.is_changing, 0, __ATOMIC_SEQ_CST);
}

static void write_entries(const struct sp_divert_work *w,
			  struct sp_divert_family *family)
{
	family->is_diverted = w->is_attaching || write_all(w);
	if (!family->is_diverted) {
		refuse(family, NULL, "cannot be written: the kernel refuses");
		return;
	}
	begin_change();
	for (unsigned int i = 0; i < w->n; i++)
		w->list[i].family = sp_divert_number_of(family);
	entries.n += w->n;
	end_change();
}

void sp_divert_drop_entries(const struct sp_divert_family *family)
{
	uint32_t n = 0;

	begin_change();
	for (uint32_t i = 0; i < entries.n; i++)
		if (entries.list[i].family != sp_divert_number_of(family))
			entries.list[n++] = entries.list[i];
	entries.n = n;
	end_change();
}

bool sp_divert_open_memory(struct sp_divert_work *w)
{
	if (w->memory < 0)
		w->memory = SP_SYS4(openat, AT_FDCWD, "/proc/self/mem",
				    O_RDWR | O_CLOEXEC, 0);
	return w->memory >= 0;
}

static const char *prepare_room(struct sp_divert_work *w, uintptr_t near)
{
	if (!sp_divert_open_memory(w))
		return "cannot be written: the kernel refuses";
	w->room = map_room(near);
	w->end = w->room + ROOM_BYTES;
	return w->room ? NULL : "has no room near it";
}

void sp_divert_give_room(uintptr_t *room)
{
	if (*room)
		SP_SYS2(munmap, *room, ROOM_BYTES);
	*room = 0;
}

void sp_divert_family_write(struct sp_divert_work *w,
			    struct sp_divert_family *family, const char *why)
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
	if (!family->is_diverted || !w->n)
		sp_divert_give_room(&family->room);
	/* All of it is another's. */
	if (family->is_diverted && !w->n)
		memset(family, 0, sizeof(*family));
}

void sp_divert_close_memory(struct sp_divert_work *w)
{
	if (w->memory >= 0)
		SP_SYS1(close, w->memory);
	w->memory = -1;
}
