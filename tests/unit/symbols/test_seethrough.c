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

/* Functions of the library that are the program's own: the compiler put a
 * lambda or another callable there. */
TEST(callables)
{
	static const char *const own[] = {
		"std::_Function_handler<void (), main::{lambda()#1}>::"
		"_M_invoke(std::_Any_data const&)",
		"std::_Function_handler<void (int), Worker>::_M_invoke("
		"std::_Any_data const&, int&&)",
		"std::thread::_State_impl<std::thread::_Invoker<std::tuple<"
		"main::{lambda()#2}> > >::_M_run()",
		"std::thread::_Invoker<std::tuple<main::{lambda()#1}> >::"
		"_M_invoke<0ul>(std::_Index_tuple<0ul>)",
		"std::__invoke_impl<void, main::{lambda()#1}&>(std::"
		"__invoke_other, main::{lambda()#1}&)",
		"std::__1::__function::__func<main::$_0, std::__1::allocator<"
		"main::$_0>, void ()>::operator()()",
		"std::__1::__invoke[abi:v15000]<main::$_0&>(main::$_0&)",
		NULL};
	static const char *const not_own[] = {
		"std::_Function_handler<void (), void (*)()>::_M_invoke("
		"std::_Any_data const&)",
		"std::_Function_handler<void (), std::_Bind<void (Worker::*("
		"Worker*))()> >::_M_invoke(std::_Any_data const&)",
		"std::_Function_handler<void (), main::{lambda()#1}>::"
		"_M_manager(std::_Any_data&, std::_Any_data const&, "
		"std::_Manager_operation)",
		"std::function<void ()>::function<main::{lambda()#1}, void>("
		"main::{lambda()#1}&&)",
		"std::call_once<void (&)()>(std::once_flag&, void (&)())::"
		"{lambda()#1}::operator()() const",
		"std::vector<main::{lambda()#1}, std::allocator<"
		"main::{lambda()#1}> >::push_back(main::{lambda()#1}&&)",
		NULL};

	check(SP_ROLE_OWN, own);
	check(SP_ROLE_LIBRARY, not_own);
}

TEST(homes_do_not_count)
{
	static const char *const names[] = {"xmalloc [in a.c]", NULL};

	check(SP_ROLE_WRAPPER, names);
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
		/* OCaml */
		"caml_alloc_for_heap", "expand_heap", "mark_slice_darken",
		"caml_start_program", "caml_callback_exn",
		"Stdlib.Buffer.resize", "CamlinternalFormat.make_printf",
		"Stdlib__Map.add", NULL};

	check(SP_ROLE_LIBRARY, names);
	for (const char *const *name = names; *name; name++)
		assert_int_equal(role(NULL, true, "", *name), SP_ROLE_OWN);
}

TEST(wrappers)
{
	static const char *const names[] = {
		"xmalloc", "zmalloc", "ztrymalloc_usable_internal", "g_malloc0",
		"g_malloc_n", "g_strdup_printf", "xstrdup",
		"os::malloc(unsigned long, int)",
		"node::Malloc<char>(unsigned long)",
		"Node::operator new(unsigned long)", "PyMem_RawMalloc",
		"_PyObject_GC_New", "sqlite3DbMallocRaw", "apr_palloc",
		"jv_mem_alloc",
		/* of servers and large libraries */
		"ngx_alloc", "ngx_memalign", "ngx_palloc_large",
		"ngx_pmemalign", "ngx_create_pool", "ngx_alloc_chain_link",
		"ngx_calloc", "apr_pstrcat", "apr_pool_create_ex",
		"apr_psprintf", "MemoryContextAllocZero", "MemoryContextStrdup",
		"AllocSetContextCreateInternal", "GenerationAlloc", "repalloc",
		"psprintf", "pg_strdup", "alloc_root", "multi_alloc_root",
		"strmake_root", "my_malloc", "thd_strdup",
		"MEM_ROOT::AllocSlow(unsigned long)",
		"mem_heap_create_block_func(mem_block_info_t*, unsigned long)",
		"ut_allocator<unsigned char, true>::allocate(unsigned long)",
		"pool_alloc_nocache", "__pool_alloc", "pool_get_from_os_noinc",
		"_talloc_zero", "talloc_named_const", "talloc_strdup",
		"__talloc_with_prefix", "_talloc_realloc_array", "av_mallocz",
		"av_reallocp_array", "av_fast_padded_malloc",
		"av_buffer_allocz", "av_new_packet", "AcquireAlignedMemory",
		"ResizeMagickMemory", "png_malloc_warn", "Rf_allocVector3",
		"my_multi_malloc_large", "g_aligned_alloc",
		"g_object_new_with_properties", "g_atomic_rc_box_alloc_full",
		"QArrayData::allocate(unsigned long, unsigned long, unsigned "
		"long, QFlags<QArrayData::AllocationOption>)",
		"g_strconcat", "QListData::realloc_grow(int)",
		"AllocateHeap(unsigned long, MEMFLAGS)",
		"Arena::grow(unsigned long, int)",
		"v8::internal::AllocWithRetry(unsigned long, void*)",
		"QArrayData::allocate2(QArrayData**, long long, "
		"QArrayData::AllocationOption)",
		/* of interpreters and runtimes */
		"Perl_more_bodies", "zend_mm_alloc_huge", "TclpAlloc",
		"Tcl_AttemptRealloc", "TclThreadAllocObj",
		"erts_sys_aligned_alloc", "erts_alloc_fnf", "PL_malloc_atomic",
		"GC_malloc_atomic", NULL};

	check(SP_ROLE_WRAPPER, names);
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
		"ngx_http_create_request",
		"ngx_palloc_statistics",
		"apr_table_set",
		"MemoryContextReset",
		"alloc_roots",
		"pool_allocator_name",
		"talloc_free",
		"caml_init_gc",
		"camlT__fill",
		"Store.Buffer.resize",
		"Tcl_ListObjAppendElement",
		"Perl_sv_grow",
		"erts_allocated",
		"_talloc_steal_loc",
		"av_frame_get_buffer",
		"av_packet_ref",
		"AcquireImage",
		"Rf_eval",
		"g_list_append",
		"QString::append(QString const&)",
		"app::load::{{closure}}",
		"<app::Order as core::clone::Clone>::clone",
		"<app::List<alloc::vec::Vec<u8>>>::push",
		"<app::List<T> as core::clone::Clone>::clone",
		"<T as app::Shape>::name",
		"<alloc::vec::Vec<u8> as app::Buffer>::grow",
		"[anonymous]",
		"[anonymous]+0x7f3a",
		"operator+(A, B)",
		"+0x",
		"libz.so.1+0x2a4g",
		"",
		NULL};

	check(SP_ROLE_OWN, names);
}

static bool is_in_one(const void *modules, size_t a, size_t b)
{
	return ((const char *)modules)[a] == ((const char *)modules)[b];
}

/* Which function of a stack; its modules are the letters. */
static size_t flat(const char *modules, const char *const *names)
{
	enum sp_role roles[8];
	size_t n = strlen(modules);

	for (size_t i = 0; i < n; i++)
		roles[i] = role(NULL, false, "lib.so", names[i]);
	return sp_find_flat(roles, n, is_in_one, modules);
}

/* Static functions of a stripped program that a wrapper calls are a part of
 * it; others, and what the wrapper of another module calls, are not. */
TEST(nameless)
{
	static const char *const stack[] = {"malloc", "pg+0x5d2c90", "pg+0x5d",
					    "palloc", "btbeginscan"};
	static const char *const paths[] = {"[unknown]", "palloc", "[unknown]"};
	static const char *const other[] = {"pg+0x1", "btbeginscan", "palloc"};
	static const char *const sorted[] = {"app+0x1", "std::sort(int*, int*)",
					     "main"};

	check(SP_ROLE_NAMELESS,
	      (const char *const[]){"[unknown]", "libz.so.1+0x2a40", NULL});
	assert_int_equal(flat("caaaa", stack), 4);
	assert_int_equal(flat("cbaaa", stack), 1);
	assert_int_equal(flat("caabb", stack), 1);
	assert_int_equal(flat("caa", stack), 1);
	assert_int_equal(flat("aaa", paths), 2);
	assert_int_equal(flat("aaa", other), 0);
	assert_int_equal(flat("aaa", sorted), 0);
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
			 SP_ROLE_WRAPPER);
}

TEST(file)
{
	static const char text[] = "# the game's allocators\n"
				   "\n"
				   "  ^Arena::  \n"
				   "^pool_get$\r\n"
				   "  # not this: ^main$\n"
				   "^last$";
	FREED_BY(memfile_close) struct memfile file;
	char more[64];

	memfile_open(&file);
	memfile_write(&file, 0, text, sizeof(text) - 1);
	snprintf(more, sizeof(more), "@%s", file.path);
	assert_int_equal(role(more, false, "", "Arena::get()"),
			 SP_ROLE_LIBRARY);
	assert_int_equal(role(more, false, "", "pool_get"), SP_ROLE_LIBRARY);
	assert_int_equal(role(more, false, "", "last"), SP_ROLE_LIBRARY);
	assert_int_equal(role(more, false, "", "main"), SP_ROLE_OWN);
}

TEST(errors)
{
	struct sp_see_through_options options = {.more = "a(b"};
	struct sp_see_through *rules;
	FREED_BY(memfile_close) struct memfile file;
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
