/* SPDX-License-Identifier: MIT */
/* The loader's tables, read directly, give the loader's own answers. */
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include "agent/sys/linkmap.h"
#include "support/test.h"

TEST(first)
{
	const struct link_map *first = sp_linkmap_first();

	assert_ptr_equal(first, _r_debug.r_map);
	/* This program stands for the library here. */
	assert_ptr_equal(sp_linkmap_self(), first);
}

static const struct link_map *find_library(const char *part)
{
	const struct link_map *map = sp_linkmap_first();

	while (map && !strstr(map->l_name, part))
		map = map->l_next;
	return map;
}

TEST(libc)
{
	const struct link_map *libc = find_library("libc.so");
	const struct link_map *provider = NULL;
	void *handle = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);

	assert_non_null(libc);
	assert_non_null(handle);
	assert_non_null(sp_linkmap_find(libc, "malloc"));
	assert_ptr_equal(sp_linkmap_find(libc, "malloc"),
			 dlsym(handle, "malloc"));
	assert_ptr_equal(sp_linkmap_find(libc, "printf"),
			 dlsym(handle, "printf"));
	/* Indirect functions are resolved as the loader does. */
	assert_ptr_equal(sp_linkmap_find(libc, "memcpy"),
			 dlsym(handle, "memcpy"));
	assert_ptr_equal(sp_linkmap_find(libc, "strlen"),
			 dlsym(handle, "strlen"));
	assert_null(sp_linkmap_find(libc, "no_such_function"));
	assert_null(sp_linkmap_find(libc, ""));
	/* Data is no function. */
	assert_null(sp_linkmap_find(libc, "environ"));

	assert_ptr_equal(sp_linkmap_next("malloc", &provider),
			 dlsym(RTLD_NEXT, "malloc"));
	assert_non_null(provider);
	assert_null(sp_linkmap_next("no_such_function", &provider));
	assert_non_null(sp_linkmap_global("getpid", NULL));
	dlclose(handle);
}

/* A function of this program, which it exports. */
int linkmap_test_function(void);
int linkmap_test_function(void)
{
	return 4711;
}

TEST(program)
{
	int (*function)(void) = NULL;
	const struct link_map *provider = NULL;
	void *address = sp_linkmap_global("linkmap_test_function", &provider);

	memcpy(&function, &address, sizeof(address));
	assert_non_null(function);
	assert_int_equal(function(), 4711);
	assert_ptr_equal(provider, sp_linkmap_first());
	/* What stands behind the library does not include it. */
	assert_null(sp_linkmap_next("linkmap_test_function", NULL));
}

/* A function of the C library, in the program, where a sanitizer has its own.
 */
int getdtablesize(void)
{
	return -1;
}

TEST(libc_of_the_program)
{
	void *handle = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	const struct link_map *provider = NULL;

	assert_non_null(handle);
	assert_non_null(sp_linkmap_global("getdtablesize", &provider));
	assert_ptr_equal(provider, sp_linkmap_first());
	assert_ptr_equal(sp_linkmap_libc("getdtablesize"),
			 dlsym(handle, "getdtablesize"));
	assert_null(sp_linkmap_libc("linkmap_test_function"));
	dlclose(handle);
}

/* Names of defined, default-version functions of an object, as its own dynamic
 * symbol table lists them. */
struct names {
	const char *at[4000];
	size_t n;
};

static void list_functions(const struct link_map *map, struct names *names)
{
	const ElfW(Sym) *symbols =
		(const void *)sp_linkmap_dynamic(map, DT_SYMTAB);
	const char *strings = (const void *)sp_linkmap_dynamic(map, DT_STRTAB);
	const ElfW(Half) *versions =
		(const void *)sp_linkmap_dynamic(map, DT_VERSYM);

	/* The string table follows the symbols in what linkers write. */
	for (const ElfW(Sym) *s = symbols + 1; (const char *)s < strings; s++) {
		size_t i = (size_t)(s - symbols);

		if (ELF64_ST_TYPE(s->st_info) != STT_FUNC ||
		    s->st_shndx == SHN_UNDEF || !s->st_value ||
		    (versions && (versions[i] & 0x8000)))
			continue;
		if (names->n < 4000)
			names->at[names->n++] = strings + s->st_name;
	}
}

/* Many names of every loaded object that has them, the same answer as dlsym's
 * on that object alone. */
TEST(like_dlsym)
{
	static struct names names;
	size_t compared = 0;

	for (const struct link_map *map = sp_linkmap_first(); map;
	     map = map->l_next) {
		void *handle;

		if (!map->l_name[0] || !strchr(map->l_name, '/'))
			continue;
		handle = dlopen(map->l_name, RTLD_NOW | RTLD_NOLOAD);
		assert_non_null(handle);
		names.n = 0;
		list_functions(map, &names);
		for (size_t i = 0; i < names.n; i += 1 + names.n / 200) {
			struct link_map *owner = NULL;
			void *want = dlsym(handle, names.at[i]);
			Dl_info info;

			/* The handle's scope has other objects too. */
			if (!want ||
			    !dladdr1(want, &info, (void **)&owner,
				     RTLD_DL_LINKMAP) ||
			    owner != map)
				continue;
			if (sp_linkmap_find(map, names.at[i]) != want)
				fail_msg("%s of %s", names.at[i], map->l_name);
			compared++;
		}
		dlclose(handle);
	}
	assert_true(compared >= 200);
}

TEST_MAIN(NULL, NULL)
