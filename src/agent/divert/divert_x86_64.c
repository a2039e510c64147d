/* SPDX-License-Identifier: MIT */
/*
 * I1  No page is writable and executable at once: stubs and trampolines are
 *     mapped to be executed, and they and the entries are written through
 *     /proc/self/mem, which changes no protection.
 * I2  All functions of a family are planned before the first entry is written;
 *     what is written of one that cannot be finished is taken back.
 * I3  There is one thread, and it is in none of the functions.
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
#define ROOM_BYTES  (SP_DIVERT_FAMILIES * SP_DIVERT_NAMES * PLACE_BYTES)

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

/* ---- room near the executable ---- */

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

/* The code of a function is in a segment that can be read and executed. */
static bool is_code(const struct sp_divert_function *f)
{
	const struct link_map *map = sp_linkmap_first();
	const uintptr_t at = f->entry - map->l_addr;
	unsigned long n;
	const ElfW(Phdr) *p = sp_linkmap_executable(&n);

	for (; n; n--, p++)
		if (p->p_type == PT_LOAD && p->p_flags & PF_X &&
		    p->p_flags & PF_R && !(p->p_flags & PF_W) &&
		    at >= p->p_vaddr && at - p->p_vaddr < p->p_filesz &&
		    f->bytes <= p->p_filesz - (at - p->p_vaddr))
			return true;
	return false;
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
static const char *prepare_function(struct work *w,
				    struct sp_divert_function *f)
{
	struct entry *e = &w->entries[w->n];
	struct sp_entry_plan plan;
	uint8_t stub[STUB_BYTES];
	const char *why;

	if (!is_code(f))
		return "is not in the code of the executable";
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
	const uintptr_t to =
		is_code(f) ? sp_entry_follow(f->entry, f->bytes) : 0;

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
		if (f->name->does == SP_DIVERT_RESIZES && !answers)
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

static void write_entries(struct work *w, struct sp_divert_family *family)
{
	for (unsigned int i = 0; i < w->n; i++) {
		const struct entry *e = &w->entries[i];

		if (write_code(w, e->at, e->jump, SP_ENTRY_JUMP) &&
		    memcmp((const void *)e->at, e->jump, SP_ENTRY_JUMP) == 0)
			continue;
		restore_entries(w, i + 1);
		refuse(family, NULL, "cannot be written: the kernel refuses");
		return;
	}
	family->is_diverted = true;
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

static void divert_family(struct work *w, struct sp_divert_family *family,
			  const char *why)
{
	if (!why && family->is_ambiguous)
		why = "is there twice";
	if (why)
		refuse(family, NULL, why);
	else if (prepare_family(w, family))
		write_entries(w, family);
}

static const char *prepare_room(struct work *w)
{
	const char *why = look_at_threads();

	if (why)
		return why;
	w->memory = SP_SYS4(openat, AT_FDCWD, "/proc/self/mem",
			    O_RDWR | O_CLOEXEC, 0);
	if (w->memory < 0)
		return "cannot be written: the kernel refuses";
	w->room = map_room(families.list[0].functions[0].entry);
	w->end = w->room + ROOM_BYTES;
	return w->room ? NULL : "has no room near it";
}

bool sp_divert_begin(void (*enter)(void))
{
	bool is_any = false;
	const char *why;

	if (is_left_to_tools())
		return false;
	if (!sp_divert_find(&families))
		return false;
	work.enter = enter;
	work.memory = -1;
	why = prepare_room(&work);
	for (unsigned int i = 0; i < families.n; i++) {
		divert_family(&work, &families.list[i], why);
		is_any |= families.list[i].is_diverted;
	}
	if (work.memory >= 0)
		SP_SYS1(close, work.memory);
	return is_any;
}

const struct sp_divert_families *sp_divert_found(void)
{
	return &families;
}
