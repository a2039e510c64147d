/* SPDX-License-Identifier: MIT */
/* The snapshot of loaded objects compared with the loader's list. */
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/unwind/modules.h"
#include "support/agent_fixture.h"
#include "support/test.h"

#define EXE "/opt/program"

#define LATER_OBJECT   SP_SYMBOL_FIXTURES "/libfixture_c.so"
#define LATER_FUNCTION "fixture_inlined"
#define OTHER_OBJECT   SP_SYMBOL_FIXTURES "/libfixture_no_dwarf.so"

#ifndef HAS_HOLES
#define HAS_HOLES 0
#endif

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

TEST(snapshot)
{
	struct seen seen = {0, 0};
	struct sp_module_entry *e = sp_modules_get(0);

	dl_iterate_phdr(compare_object, &seen);
	assert_int_equal(seen.n, sp_modules_count());
	assert_true(seen.loads > seen.n);
	assert_string_equal(e->name, EXE);
	for (unsigned int i = 0; i < sp_modules_count(); i++) {
		e = sp_modules_get(i);
		assert_int_equal(e->id, i + 1);
		assert_true(e->start < e->end);
		assert_ptr_equal(sp_modules_find(e->start, NULL), e);
		assert_int_equal(e->start % 4096, 0);
		if (strstr(e->name, "libc.so"))
			assert_int_equal(e->build_id_bytes, 20);
	}
	assert_true(agent_fixture_losses() == 0);
}

TEST(nothing_there)
{
	void *heap =
		mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_null(sp_modules_find(0, NULL));
	assert_null(sp_modules_find(UINTPTR_MAX, NULL));
	assert_null(sp_modules_find((uintptr_t)heap, NULL));
	assert_null(sp_modules_find((uintptr_t)heap, sp_modules_get(0)));
	munmap(heap, 4096);
}

TEST(self)
{
	assert_true(sp_modules_is_self((uintptr_t)test_self));
	assert_false(sp_modules_is_self((uintptr_t)dlsym(RTLD_NEXT, "qsort")));
	assert_false(sp_modules_is_self(0));
}

static void *open_later(const char *path, uintptr_t *ret_pc)
{
	void *handle = dlopen(path, RTLD_NOW);

	if (!handle)
		fail_msg("%s", dlerror());
	*ret_pc = (uintptr_t)dlsym(handle, LATER_FUNCTION);
	assert_int_not_equal(*ret_pc, 0);
	return handle;
}

/* An object that comes later is added when its code is met, once, and known to
 * be gone when it is. */
TEST(later_object)
{
	unsigned int before = sp_modules_count();
	uintptr_t pc, start;
	void *handle = open_later(LATER_OBJECT, &pc);
	struct sp_module_entry *e, *again;
	struct link_map *map;

	assert_int_equal(dlinfo(handle, RTLD_DI_LINKMAP, &map), 0);
	e = sp_modules_find(pc, NULL);
	assert_non_null(e);
	assert_int_equal(sp_modules_count(), before + 1);
	assert_int_equal(e->id, before + 1);
	assert_false(e->permanent);
	assert_string_equal(e->name, map->l_name);
	assert_true(e->bias == map->l_addr);
	assert_true(e->start <= pc && pc < e->end);
	assert_ptr_equal(sp_modules_find(pc, NULL), e);
	assert_ptr_equal(sp_modules_find(pc, e), e);
	assert_ptr_equal(sp_modules_find(e->start, NULL), e);
	start = e->start;

	dlclose(handle);
	assert_null(sp_modules_find(start, e));
	assert_null(sp_modules_find(pc, NULL));
	/* Back again: its old entry if it is at its old place, else a new one.
	 */
	handle = open_later(LATER_OBJECT, &pc);
	again = sp_modules_find(pc, NULL);
	assert_non_null(again);
	assert_true((again == e) == (again->start == start));
	assert_ptr_equal(sp_modules_find(again->start, NULL), again);
	dlclose(handle);
	assert_true(agent_fixture_losses() == 0);
}

/* Memory of nobody is asked for before the object comes to lie there. */
TEST(later_in_known_gap)
{
	const size_t bytes = 256ul << 20;
	uint8_t *gap = mmap(NULL, bytes, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uintptr_t pc;
	void *handle;

	assert_ptr_not_equal(gap, MAP_FAILED);
	for (int i = 0; i < 3; i++)
		for (size_t at = 0; at < bytes; at += 64ul << 10)
			assert_null(sp_modules_find((uintptr_t)gap + at, NULL));
	munmap(gap, bytes);
	handle = open_later(LATER_OBJECT, &pc);
	assert_non_null(sp_modules_find(pc, NULL));
	dlclose(handle);
	assert_null(sp_modules_find(pc, NULL));
}

/* Between the segments of an object is nobody, or another one: the kernel may
 * place the vDSO between the loader's. */
TEST(holes)
{
	unsigned int holes = 0;

	for (unsigned int i = 0; i < sp_modules_entries(); i++) {
		const struct sp_module_entry *e = sp_modules_get(i);
		uintptr_t end = 0;

		for (unsigned int k = 0; k < e->n_phdr; k++) {
			const ElfW(Phdr) *p = &e->phdr[k];
			uintptr_t at = (e->bias + p->p_vaddr) & ~4095ul;

			if (p->p_type != PT_LOAD)
				continue;
			if (end && at > end) {
				assert_true(e->has_holes);
				assert_ptr_not_equal(sp_modules_find(end, NULL),
						     e);
				assert_ptr_not_equal(
					sp_modules_find(at - 1, NULL), e);
				assert_ptr_not_equal(
					sp_modules_find(at - 1,
							sp_modules_get(i)),
					e);
				holes++;
			}
			end = (e->bias + p->p_vaddr + p->p_memsz + 4095) &
			      ~4095ul;
		}
	}
	if (HAS_HOLES)
		assert_true(sp_modules_get(0)->has_holes && holes > 0);
}

/* The same plug-in again and again does not fill the table. */
TEST(comes_back)
{
	unsigned int before = sp_modules_count();

	for (int i = 0; i < 3000; i++) {
		uintptr_t pc;
		void *handle = open_later(LATER_OBJECT, &pc);

		assert_non_null(sp_modules_find(pc, NULL));
		dlclose(handle);
	}
	assert_true(sp_modules_count() - before < 10);
	assert_true(agent_fixture_losses() == 0);
}

/* Other plug-ins again and again, more than there are entries: each has its
 * name and an id of its own. */
TEST(many_others)
{
	uintptr_t kept_pc, pc;
	void *kept = open_later(LATER_OBJECT, &kept_pc);
	struct sp_module_entry *kept_entry = sp_modules_find(kept_pc, NULL);
	uint32_t last = 0;

	assert_non_null(kept_entry);
	for (int i = 0; i < 3000; i++) {
		const char *path = agent_fixture_path("other.so");
		char name[1024];
		struct sp_module_entry *e;
		void *handle;

		snprintf(name, sizeof(name), "%s.%d", path, i);
		assert_int_equal(symlink(OTHER_OBJECT, name), 0);
		handle = dlopen(name, RTLD_NOW);
		assert_non_null(handle);
		pc = (uintptr_t)dlsym(handle, LATER_FUNCTION);
		assert_int_not_equal(pc, 0);
		e = sp_modules_find(pc, NULL);
		assert_non_null(e);
		assert_string_equal(e->name, name);
		assert_true(e->id > last);
		last = e->id;
		dlclose(handle);
		unlink(name);
	}
	assert_ptr_equal(sp_modules_find(kept_pc, NULL), kept_entry);
	assert_true(agent_fixture_losses() == 0);
	dlclose(kept);
}

/* The file gets the kernel's name of an object whose own is relative; it is
 * found again by the loader's. */
TEST(relative_name)
{
	FREED char *cwd = getcwd(NULL, 0);
	char expected[4096];
	struct sp_module_entry *e;
	uintptr_t pc;
	void *handle;

	assert_int_equal(chdir(SP_SYMBOL_FIXTURES), 0);
	assert_non_null(realpath("libfixture_no_dwarf.so", expected));
	handle = open_later("./libfixture_no_dwarf.so", &pc);
	e = sp_modules_find(pc, NULL);
	assert_non_null(e);
	assert_string_equal(e->name, "./libfixture_no_dwarf.so");
	assert_string_equal(e->path, expected);
	assert_ptr_equal(sp_modules_find(pc, NULL), e);
	dlclose(handle);
	handle = open_later(LATER_OBJECT, &pc);
	e = sp_modules_find(pc, NULL);
	assert_ptr_equal(e->path, e->name);
	dlclose(handle);
	assert_int_equal(chdir(cwd), 0);
}

static int begin(void **state)
{
	sp_modules_init(EXE);
	return agent_fixture_begin(state);
}

TEST_MAIN(begin, agent_fixture_end)
