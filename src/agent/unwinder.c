/* SPDX-License-Identifier: MIT */
/*
 * libunwind walks the stack: fast through its trace cache, right through DWARF.
 * It is opened privately, so that its _Unwind_* functions do not come before
 * libgcc's for the program, and cut off from everything that could block
 * (unwinder_imports.c).
 *
 * I1  The library is used only by a thread that holds a lane (sp_thread.lane),
 *     whose caches it works with.
 * I2  Threads that other constructors have started sample while it is loaded.
 *     `why` becomes NULL last (release; pairs with the acquire load of
 *     sp_unwinder_why), when nothing below changes any more.
 */
#include "agent/unwinder.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "agent/arena.h"
#include "agent/linkmap.h"
#include "agent/modules.h"
#include "agent/stackend.h"
#include "agent/sys.h"
#include "agent/thread.h"
#include "agent/unwinder_imports.h"

#include "agent/poison.h"

#define LIBRARY       "libunwind.so.8"
#define TLS_BYTES_MAX (64u * 1024)
#define REGISTER_IP   16 /* UNW_X86_64_RIP */

static int (*unw_backtrace_fn)(void **, int);
static void (*unw_flush_cache_fn)(void *, unsigned long, unsigned long);
static int (*unw_getcontext_fn)(void *);
static int (*unw_init_fn)(void *, void *);
static int (*unw_step_fn)(void *);
static int (*unw_get_reg_fn)(void *, int, void *);
static void *local_addr_space;
static const struct link_map *library;
static const char *_Atomic why = "not loaded yet";

static size_t tls_bytes;
static const void *tls_image;
static size_t tls_image_bytes;

static bool cut_off(void)
{
	struct sp_module_entry *e =
		sp_modules_find((uintptr_t)unw_backtrace_fn, NULL);

	if (!e)
		return false;
	for (unsigned int i = 0; i < e->n_phdr; i++) {
		if (e->phdr[i].p_type != PT_TLS)
			continue;
		tls_bytes = e->phdr[i].p_memsz;
		tls_image = (const void *)(e->bias + e->phdr[i].p_vaddr);
		tls_image_bytes = e->phdr[i].p_filesz;
	}
	if (tls_bytes > TLS_BYTES_MAX)
		return false;
	return sp_unwinder_imports_replace(library, e);
}

/* What flushing wants; the one data symbol, while functions go through find. */
static void *find_address_space(void)
{
	const ElfW(Sym) *symbols =
		(const void *)sp_linkmap_dynamic(library, DT_SYMTAB);
	const char *strings =
		(const void *)sp_linkmap_dynamic(library, DT_STRTAB);

	/* The symbol table has no length; the strings follow it. */
	for (const ElfW(Sym) *s = symbols; (const char *)s < strings; s++) {
		if (ELF64_ST_TYPE(s->st_info) == STT_OBJECT &&
		    strcmp(strings + s->st_name,
			   "_ULx86_64_local_addr_space") == 0)
			return *(void **)(library->l_addr + s->st_value);
	}
	return NULL;
}

static bool find_functions(void)
{
	const struct {
		const char *name;
		void *function;
	} wanted[] = {
		{"unw_backtrace", &unw_backtrace_fn},
		{"_Ux86_64_flush_cache", &unw_flush_cache_fn},
		{"_Ux86_64_getcontext", &unw_getcontext_fn},
		{"_ULx86_64_init_local", &unw_init_fn},
		{"_ULx86_64_step", &unw_step_fn},
		{"_ULx86_64_get_reg", &unw_get_reg_fn},
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		void *address = sp_linkmap_find(library, wanted[i].name);

		if (!address)
			return false;
		memcpy(wanted[i].function, &address, sizeof(address));
	}
	return true;
}

/*
 * unw_backtrace has its state on the stack, twice: with the rest it needs 5
 * KiB, and a signal handler on an alternate stack of 8 KiB has less.  This walk
 * has it in the lane and needs half; it is slower, since the trace cache is not
 * to be had without unw_backtrace.
 */
static int frugal_trace(struct sp_lane *lane, int max)
{
	int n = 0;

	unw_getcontext_fn(lane->unwind_context);
	if (unw_init_fn(lane->unwind_cursor, lane->unwind_context) < 0)
		return 0;
	do
		unw_get_reg_fn(lane->unwind_cursor, REGISTER_IP,
			       &lane->pcs[n++]);
	while (n < max && unw_step_fn(lane->unwind_cursor) > 0);
	return n;
}

/* Apart from its caller, because __builtin_setjmp spoils registers. */
static int __attribute__((noinline))
guarded_trace(struct sp_lane *lane, int max, bool is_frugal)
{
	if (__builtin_setjmp(lane->unwind_jump))
		return 0;
	return is_frugal ? frugal_trace(lane, max)
			 : unw_backtrace_fn(lane->pcs, max);
}

/*
 * Begin with empty caches: in the lane's first use, and when objects have
 * appeared since.  What was cached about an address may be a guess made without
 * knowing its object, or be about an object that is gone.  The trace cache is
 * not covered by the library's own flush, so it is taken away from it.
 */
static bool fresh_caches(struct sp_lane *lane)
{
	unsigned int known = sp_modules_count();

	if (lane->unwind_tls && lane->unwind_modules == known)
		return true;
	if (!lane->unwind_tls)
		lane->unwind_tls =
			sp_arena_get(SP_ARENA_WALKS, tls_bytes ? tls_bytes : 1);
	else if (lane->unwind_cache)
		SP_SYS2(munmap, lane->unwind_cache, lane->unwind_cache_bytes);
	lane->unwind_cache = NULL;
	if (!lane->unwind_tls)
		return false;
	memset(lane->unwind_tls, 0, tls_bytes);
	memcpy(lane->unwind_tls, tls_image, tls_image_bytes);
	unw_flush_cache_fn(local_addr_space, 0, 0);
	lane->unwind_modules = known;
	return true;
}

/* Walk once, without the trace cache: 256 KiB that a program whose first sample
 * never comes has no use for. */
static bool warm_up(struct sp_lane *lane)
{
	bool is_warm;

	sp_thread.lane = sp_lane_number(lane);
	is_warm = fresh_caches(lane) && guarded_trace(lane, 16, true) > 0;
	sp_thread.lane = 0;
	return is_warm;
}

/* NULL, or why it cannot be used. */
static const char *load(void)
{
	void *(*open_library)(const char *, int);
	void *address = sp_linkmap_global("dlopen", NULL);
	uint8_t hint = 0;
	struct sp_lane *lane;
	bool is_warm;

	if (!address)
		return "this C library has no dlopen";
	memcpy(&open_library, &address, sizeof(address));
	library = open_library(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		void *clear = sp_linkmap_global("dlerror", NULL);
		char *(*clear_error)(void);

		/* The program shall not find our failure in dlerror(). */
		memcpy(&clear_error, &clear, sizeof(clear));
		if (clear)
			clear_error();
		return LIBRARY " is not installed";
	}
	if (!find_functions() || !cut_off())
		return LIBRARY " is of an unknown kind";
	local_addr_space = find_address_space();
	lane = sp_lane_take(&hint);
	if (!local_addr_space || !lane)
		return LIBRARY " cannot unwind here";
	is_warm = warm_up(lane);
	sp_lane_give(lane);
	return is_warm ? NULL : LIBRARY " cannot unwind here";
}

bool sp_unwinder_init(void)
{
	const char *reason = load();

	atomic_store_explicit(&why, reason, memory_order_release);
	return !reason;
}

const char *sp_unwinder_why(void)
{
	return atomic_load_explicit(&why, memory_order_acquire);
}

int sp_unwinder_trace(struct sp_lane *lane, int max)
{
	if (sp_unwinder_why() || sp_unwinder_imports_broken() ||
	    !fresh_caches(lane))
		return 0;
	sp_unwinder_imports_keep();
	/* A coroutine's stack and an alternate one may be small. */
	return guarded_trace(
		lane, max,
		!sp_stackend_nearby((uintptr_t)__builtin_frame_address(0)));
}
