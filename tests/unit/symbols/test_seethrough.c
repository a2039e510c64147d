/* SPDX-License-Identifier: MIT */
/* Which functions are the program's own: the list, and what options add. */
#include <errno.h>

#include "support/memfile.h"
#include "symbols/seethrough.h"
#include "support/test.h"

static struct sp_error error;

static enum sp_role role(const char *more, bool all_frames, const char *module,
			 const char *name)
{
	const struct sp_see_through_options options = {all_frames, more};
	struct sp_see_through *rules;
	enum sp_role r;

	assert_int_equal(sp_see_through_new(&options, &rules, &error), 0);
	r = sp_see_through_role(rules, module, name);
	sp_see_through_free(rules);
	return r;
}

static void check(enum sp_role expected, const char *const *names)
{
	for (; *names; names++)
		if (role(NULL, false, "", *names) != expected)
			fail_msg("%s", *names);
}

TEST(allocators)
{
	static const char *const names[] = {
		"malloc",
		"calloc",
		"aligned_alloc",
		"operator new(unsigned long)",
		"operator new[](unsigned long, std::nothrow_t const&)",
		"operator new",
		"std::__new_allocator<int>::allocate(unsigned long)",
		"std::__1::allocator<int>::allocate(unsigned long)",
		"std::allocator_traits<std::allocator<int> >::allocate(int)",
		NULL};

	check(SP_ROLE_ALLOCATOR, names);
	for (const char *const *name = names; *name; name++)
		assert_int_equal(role(NULL, true, "", *name),
				 SP_ROLE_ALLOCATOR);
}

TEST(libraries)
{
	static const char *const names[] = {
		/* C++ */
		"std::vector<int, std::allocator<int> >::push_back(int&&)",
		"std::__1::vector<int>::push_back(int&&)",
		"__gnu_cxx::__ops::f()", "_start", "__libc_start_main",
		"_IO_file_doallocate",
		/* Rust */
		"alloc::vec::Vec<T,A>::push",
		"<alloc::vec::Vec<app::Order>>::push",
		"<alloc::vec::Vec<T> as core::clone::Clone>::clone",
		"<[app::Order]>::to_vec",
		"<T as alloc::string::ToString>::to_string",
		"<app::Order as alloc::string::ToString>::to_string",
		"<u8 as <[_]>::to_vec_in::ConvertVec>::to_vec",
		"<&dyn core::ops::Fn<(), Output = i32> + core::marker::Sync as "
		"core::ops::FnOnce<()>>::call_once",
		"hashbrown::raw::RawTable<T,A>::reserve",
		"core::ops::function::FnOnce::call_once{{vtable.shim}}",
		"__rust_alloc", "__rustc::__rust_alloc",
		/* wrappers */
		"xmalloc", "zmalloc", "ztrymalloc_usable_internal", "g_malloc0",
		"g_malloc_n", "g_strdup_printf", "xstrdup",
		"os::malloc(unsigned long, int)",
		"node::Malloc<char>(unsigned long)",
		"Node::operator new(unsigned long)", "PyMem_RawMalloc",
		"_PyObject_GC_New", "sqlite3DbMallocRaw", "apr_palloc",
		"jv_mem_alloc", NULL};

	check(SP_ROLE_LIBRARY, names);
	for (const char *const *name = names; *name; name++)
		assert_int_equal(role(NULL, true, "", *name), SP_ROLE_OWN);
}

TEST(own)
{
	static const char *const names[] = {
		"main",
		"load(std::vector<int>&)",
		"mystd::f()",
		"Cache<std::string>::put(std::string)",
		"core::Engine::start(int) const",
		"alloc::Pool::get(unsigned long)",
		"malloc_statistics",
		"strdup_all_lines",
		"PyList_New",
		"sdsnewlen",
		"getline",
		"app::load::{{closure}}",
		"<app::Order as core::clone::Clone>::clone",
		"<app::List<alloc::vec::Vec<u8>>>::push",
		"<app::List<T> as core::clone::Clone>::clone",
		"<T as app::Shape>::name",
		"<alloc::vec::Vec<u8> as app::Buffer>::grow",
		"[unknown]",
		"[anonymous]",
		"",
		NULL};

	check(SP_ROLE_OWN, names);
}

TEST(scripts)
{
	static const char *const scripts[] = {
		"py::load", "py::<module>", "py::Order.__init__",
		"py::load.<locals>.<genexpr>", NULL};

	check(SP_ROLE_SCRIPT, scripts);
	/* of a file; Rust's */
	assert_int_equal(role(NULL, false, "liba.so", "py::load"), SP_ROLE_OWN);
	assert_int_equal(role(NULL, false, "", "py::load::step"), SP_ROLE_OWN);
	assert_int_equal(role(NULL, false, "libpython3.13.so.1.0",
			      "_PyEval_EvalFrameDefault"),
			 SP_ROLE_INTERPRETER);
	assert_int_equal(role(NULL, false, "", "_PyEval_EvalFrameDefault.cold"),
			 SP_ROLE_INTERPRETER);
	assert_int_equal(role(NULL, false, "", "_PyEval_EvalFrameDefaults"),
			 SP_ROLE_OWN);
	assert_int_equal(role(NULL, true, "", "py::load"), SP_ROLE_OWN);
	assert_int_equal(role(NULL, true, "", "_PyEval_EvalFrameDefault"),
			 SP_ROLE_OWN);
}

TEST(modules)
{
	static const char *const libraries[] = {"libc.so.6",
						"libc-2.31.so",
						"ld-linux-x86-64.so.2",
						"libstdc++.so.6",
						"libc++.so.1",
						"libm.so.6",
						"libjemalloc.so.2",
						"libtcmalloc_minimal.so.4",
						"ld-musl-x86_64.so.1",
						"libstd-0123456789abcdef.so"};
	static const char *const own[] = {"",
					  "libcrypto.so.3",
					  "libmagic.so.1",
					  "libcurl.so.4",
					  "libdlib.so",
					  "libsqlite3.so.0",
					  "libstdfoo.so.1",
					  "plugin.so"};

	for (size_t i = 0; i < sizeof(libraries) / sizeof(*libraries); i++)
		if (role(NULL, false, libraries[i], "f") != SP_ROLE_LIBRARY)
			fail_msg("%s", libraries[i]);
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (role(NULL, false, own[i], "f") != SP_ROLE_OWN)
			fail_msg("%s", own[i]);
	assert_int_equal(role(NULL, true, "libc.so.6", "f"), SP_ROLE_OWN);
}

/* Searched in the name with its parameters, as people read it, and in the
 * module's. */
TEST(more)
{
	const char *string =
		"Pool::get(std::__cxx11::basic_string<char, "
		"std::char_traits<char>, std::allocator<char> > const&)";

	assert_int_equal(role("^Pool::", false, "", string), SP_ROLE_LIBRARY);
	assert_int_equal(role("::get$", false, "", string), SP_ROLE_LIBRARY);
	assert_int_equal(role("char_traits", false, "", string),
			 SP_ROLE_LIBRARY);
	assert_int_equal(role("^libpool", false, "libpool.so", "f"),
			 SP_ROLE_LIBRARY);
	assert_int_equal(role("^set$", false, "", string), SP_ROLE_OWN);
	assert_int_equal(role("^Pool::", true, "", string), SP_ROLE_OWN);
	/* the list holds as well */
	assert_int_equal(role("^Pool::", false, "", "xmalloc"),
			 SP_ROLE_LIBRARY);
}

TEST(file)
{
	static const char text[] = "# the game's allocators\n"
				   "\n"
				   "  ^Arena::  \n"
				   "^pool_get$\r\n"
				   "  # not this: ^main$\n"
				   "^last$";
	struct memfile file;
	char more[64];

	memfile_open(&file);
	memfile_write(&file, 0, text, sizeof(text) - 1);
	snprintf(more, sizeof(more), "@%s", file.path);
	assert_int_equal(role(more, false, "", "Arena::get()"),
			 SP_ROLE_LIBRARY);
	assert_int_equal(role(more, false, "", "pool_get"), SP_ROLE_LIBRARY);
	assert_int_equal(role(more, false, "", "last"), SP_ROLE_LIBRARY);
	assert_int_equal(role(more, false, "", "main"), SP_ROLE_OWN);
	memfile_close(&file);
}

TEST(errors)
{
	struct sp_see_through_options options = {.more = "a(b"};
	struct sp_see_through *rules;
	struct memfile file;
	char more[64];

	assert_int_equal(sp_see_through_new(&options, &rules, &error), -EINVAL);
	assert_non_null(strstr(error.message, "--see-through: missing"));
	options.more = "@/nowhere/at/all";
	assert_int_equal(sp_see_through_new(&options, &rules, &error), -ENOENT);
	assert_non_null(strstr(error.message, "No such file"));
	memfile_open(&file);
	memfile_write(&file, 0, "fine\na(b\n", 9);
	snprintf(more, sizeof(more), "@%s", file.path);
	options.more = more;
	assert_int_equal(sp_see_through_new(&options, &rules, &error), -EINVAL);
	assert_non_null(strstr(error.message, "line 2: --see-through: miss"));
	memfile_close(&file);
}

/* All of a list are tried at one place. */
TEST(rules_begin_at_the_beginning)
{
	static const char *const expressions[] = {
#define SP_SEE_THROUGH(role, where, expression, text) expression,
#include "symbols/see_through.def"
#undef SP_SEE_THROUGH
	};

	for (size_t i = 0; i < sizeof(expressions) / sizeof(*expressions); i++)
		if (*expressions[i] != '^')
			fail_msg("%s", expressions[i]);
}

/* The guide has the list, each rule by its examples. */
TEST(documented)
{
	static const char *const examples[] = {
#define SP_SEE_THROUGH(role, where, expression, text) text,
#include "symbols/see_through.def"
	};
	static char guide[1 << 20];
	FILE *in = fopen(SP_TESTS_DIR "/../docs/guide.md", "r");

	assert_non_null(in);
	assert_in_range(fread(guide, 1, sizeof(guide) - 1, in), 1,
			sizeof(guide) - 2);
	fclose(in);
	for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++)
		if (!strstr(guide, examples[i]))
			fail_msg("docs/guide.md lacks: %s", examples[i]);
}

TEST_MAIN(NULL, NULL)
