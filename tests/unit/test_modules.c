/* SPDX-License-Identifier: MIT */
/* The snapshot of loaded objects beside the loader's list. */
#include <dlfcn.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "agent/diag.h"
#include "agent/modules.h"
#include "support/agent_fixture.h"

#define EXE "/opt/program"

#define LATER_OBJECT   SP_SYMBOL_FIXTURES "/libfixture_c.so"
#define LATER_FUNCTION "fixture_inlined"

struct seen {
	size_t n;
	size_t loads;
};

/* Each object that the loader reports is in the snapshot, with its headers. */
static int compare_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct seen *seen = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t from = info->dlpi_addr + p->p_vaddr;
		struct sp_module_entry *e;

		if (p->p_type != PT_LOAD)
			continue;
		e = sp_modules_find(from, NULL);
		assert_non_null(e);
		assert_true(e->permanent);
		assert_true(e->bias == info->dlpi_addr);
		assert_int_equal(e->n_phdr, info->dlpi_phnum);
		assert_memory_equal(e->phdr, info->dlpi_phdr,
				    sizeof(*p) * info->dlpi_phnum);
		assert_true(e->start <= from && from + p->p_memsz <= e->end);
		assert_ptr_equal(sp_modules_find(from + p->p_memsz - 1, NULL),
				 e);
		/* The neighbour's answer may be right, or wrong. */
		assert_ptr_equal(sp_modules_find(from, e), e);
		assert_ptr_equal(sp_modules_find(from, sp_modules_get(0)), e);
		seen->loads++;
	}
	seen->n++;
	return 0;
}

static void test_snapshot(void **state)
{
	struct seen seen = {0, 0};
	const struct sp_module_entry *e = sp_modules_get(0);

	(void)state;
	dl_iterate_phdr(compare_object, &seen);
	assert_int_equal(seen.n, sp_modules_count());
	assert_true(seen.loads > seen.n);
	assert_string_equal(e->name, EXE);
	for (unsigned int i = 0; i < sp_modules_count(); i++) {
		e = sp_modules_get(i);
		assert_int_equal(e->id, i + 1);
		assert_true(e->start < e->end);
		assert_true(sp_modules_alive(e));
		assert_int_equal(e->start % 4096, 0);
		if (strstr(e->name, "libc.so"))
			assert_int_equal(e->build_id_bytes, 20);
	}
	assert_true(agent_fixture_losses() == 0);
}

static void test_nothing_there(void **state)
{
	void *heap =
		mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_null(sp_modules_find(0, NULL));
	assert_null(sp_modules_find(UINTPTR_MAX, NULL));
	assert_null(sp_modules_find((uintptr_t)heap, NULL));
	assert_null(sp_modules_find((uintptr_t)heap, sp_modules_get(0)));
	munmap(heap, 4096);
}

static void test_self(void **state)
{
	(void)state;
	assert_true(sp_modules_is_self((uintptr_t)test_self));
	assert_false(sp_modules_is_self((uintptr_t)dlsym(RTLD_NEXT, "qsort")));
	assert_false(sp_modules_is_self(0));
}

/* An object that comes later is added when its code is met, once, and known to
 * be gone when it is. */
static void test_later_object(void **state)
{
	unsigned int before = sp_modules_count();
	void *handle = dlopen(LATER_OBJECT, RTLD_NOW);
	uintptr_t pc = 0;
	struct sp_module_entry *e, *again;
	struct link_map *map;

	(void)state;
	assert_non_null(handle);
	assert_int_equal(dlinfo(handle, RTLD_DI_LINKMAP, &map), 0);
	pc = (uintptr_t)dlsym(handle, LATER_FUNCTION);
	assert_int_not_equal(pc, 0);
	e = sp_modules_find(pc, NULL);
	if (!e) {
		/* Before glibc 2.35 such objects are not known. */
		assert_null(dlsym(RTLD_DEFAULT, "_dl_find_object"));
		dlclose(handle);
		return;
	}
	assert_int_equal(sp_modules_count(), before + 1);
	assert_int_equal(e->id, before + 1);
	assert_false(e->permanent);
	assert_ptr_equal(e->map, map);
	assert_string_equal(e->name, map->l_name);
	assert_true(e->bias == map->l_addr);
	assert_true(e->start <= pc && pc < e->end);
	assert_ptr_equal(sp_modules_find(pc, NULL), e);
	assert_ptr_equal(sp_modules_find(pc, e), e);
	assert_true(sp_modules_alive(e));

	dlclose(handle);
	assert_false(sp_modules_alive(e));
	assert_null(sp_modules_find(pc, NULL));
	/* Back again: its old entry if it is at its old place, else a new one.
	 */
	handle = dlopen(LATER_OBJECT, RTLD_NOW);
	assert_non_null(handle);
	again = sp_modules_find((uintptr_t)dlsym(handle, LATER_FUNCTION), NULL);
	assert_non_null(again);
	assert_true(again == e || again->start != e->start ||
		    again->map != e->map);
	assert_true(sp_modules_alive(again));
	dlclose(handle);
}

static int begin(void **state)
{
	(void)state;
	sp_modules_init(EXE);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_snapshot),
		cmocka_unit_test(test_nothing_there),
		cmocka_unit_test(test_self),
		cmocka_unit_test(test_later_object),
	};

	return cmocka_run_group_tests(tests, begin, NULL);
}
