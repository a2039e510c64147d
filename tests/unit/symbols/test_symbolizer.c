/* SPDX-License-Identifier: MIT */
/*
 * Frames to functions and lines: inlines, clones, C++ names, separate debug
 * files, stripped files, other builds, reloaded modules.
 */

#include <dlfcn.h>
#include <fcntl.h>
#include <gelf.h>
#include <link.h>
#include <unistd.h>

#include "support/symbol_fixture.h"
#include "symbols/symbolizer.h"
#include "support/test.h"

#define WHOLE      SP_SYMBOL_FIXTURES "/libfixture_c.so"
#define CXX        SP_SYMBOL_FIXTURES "/libfixture_cxx.so"
#define NO_DWARF   SP_SYMBOL_FIXTURES "/libfixture_no_dwarf.so"
#define BARE       SP_SYMBOL_FIXTURES "/libfixture_bare.so"
#define LINKED     SP_SYMBOL_FIXTURES "/libfixture_linked.so"
#define NO_ID      SP_SYMBOL_FIXTURES "/no_id/libfixture_linked.so"
#define BY_ID      SP_SYMBOL_FIXTURES "/by_id"
#define NO_ROOTS   "/nonexistent"
#define C_SOURCE   "symbol_fixture_c.c"
#define CXX_SOURCE "symbol_fixture_cxx.cc"

#define BUILD_ID_HEX "5a000102030405060708090a0b0c0d0e0f101112"

static const uint8_t fixture_build_id[20] = {
	0x5a, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18};

/* Where the probe was called from, in the last run of a fixture. */
static uintptr_t probe_return;
static jmp_buf probe_escape;

static void probe(void)
{
	probe_return = (uintptr_t)__builtin_return_address(0);
}

static void probe_and_escape(void)
{
	probe_return = (uintptr_t)__builtin_return_address(0);
	longjmp(probe_escape, 1);
}

/* The return address in the fixture's own virtual addresses. */
static uint64_t run_fixture(const char *path, const char *entry,
			    fixture_probe_fn *probe_fn, int *lines)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	fixture_entry_fn *run;
	struct link_map *map;
	uint64_t address;

	if (!library)
		fail_msg("%s", dlerror());
	run = (fixture_entry_fn *)(uintptr_t)dlsym(library, entry);
	assert_non_null(run);
	assert_int_equal(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
	if (setjmp(probe_escape) == 0)
		run(probe_fn, lines);
	address = probe_return - map->l_addr;
	dlclose(library);
	return address;
}

/* A profile of one module, mapped at a place of its own. */
struct rig {
	struct sp_module module;
	struct sp_profile profile;
	struct sp_symbolizer *symbolizer;
};

static void set_up(struct rig *rig, const char *path, const char *roots)
{
	const struct sp_symbolizer_options options = {.debug_path = roots};
	struct sp_error err;

	memset(rig, 0, sizeof(*rig));
	rig->module = (struct sp_module){
		.id = 1,
		.bias = 0x7f0000000000,
		.start_pc = 0x7f0000001000,
		.end_pc = 0x7f0000100000,
		.path = path,
	};
	rig->profile.path = "test.sprof";
	rig->profile.modules = &rig->module;
	rig->profile.n_modules = 1;
	assert_int_equal(sp_symbolizer_new(&rig->profile, &options,
					   &rig->symbolizer, &err),
			 0);
}

static void set_build_id(struct rig *rig, const uint8_t *id, uint32_t len)
{
	memcpy(rig->module.build_id, id, len);
	rig->module.build_id_len = len;
}

static struct sp_symbols look_up(struct rig *rig, uint64_t address,
				 bool is_return_address)
{
	const struct sp_module *m = &rig->module;
	struct sp_frame frame = {m->id, address + m->bias - m->start_pc};

	return sp_symbolizer_lookup(rig->symbolizer, frame, is_return_address);
}

static void tear_down(struct rig *rig)
{
	sp_symbolizer_free(rig->symbolizer);
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

static void check_symbol(const struct sp_symbol *s, const char *function,
			 const char *source, int line, bool is_inlined)
{
	assert_string_equal(s->function, function);
	assert_non_null(s->file);
	if (s->file[0] != '/' || !ends_with(s->file, source))
		fail_msg("%s is not %s", s->file, source);
	assert_int_equal(s->line, line);
	assert_int_equal(s->is_inlined, is_inlined);
	assert_false(s->is_fallback);
}

static void check_inlined_fixture(struct rig *rig)
{
	int lines[FIXTURE_DEPTH] = {0};
	uint64_t address = run_fixture(WHOLE, "fixture_inlined", probe, lines);
	struct sp_symbols s = look_up(rig, address, true);

	assert_int_equal(s.count, 3);
	check_symbol(&s.symbol[0], "innermost", C_SOURCE, lines[0], true);
	check_symbol(&s.symbol[1], "middle", C_SOURCE, lines[1], true);
	check_symbol(&s.symbol[2], "fixture_inlined", C_SOURCE, lines[2],
		     false);
}

TEST(inlines_innermost_first_with_call_sites)
{
	struct rig rig;

	set_up(&rig, WHOLE, NO_ROOTS);
	set_build_id(&rig, fixture_build_id, sizeof(fixture_build_id));
	check_inlined_fixture(&rig);
	tear_down(&rig);
}

TEST(local_function_and_clone_go_by_name)
{
	int lines[FIXTURE_DEPTH] = {0, 1, 0};
	struct sp_symbols s;
	uint64_t address;
	struct rig rig;

	set_up(&rig, WHOLE, NO_ROOTS);
	address = run_fixture(WHOLE, "fixture_local", probe, lines);
	s = look_up(&rig, address, true);
	assert_int_equal(s.count, 1);
	check_symbol(s.symbol, "local_function", C_SOURCE, lines[0], false);

	address = run_fixture(WHOLE, "fixture_cold", probe, lines);
	s = look_up(&rig, address, true);
	assert_int_equal(s.count, 1);
	check_symbol(s.symbol, "fixture_cold", C_SOURCE, lines[0], false);
	tear_down(&rig);
}

TEST(return_address_belongs_to_the_call)
{
	int lines[FIXTURE_DEPTH] = {0};
	uint64_t address;
	struct sp_symbols s;
	struct rig rig;

	set_up(&rig, WHOLE, NO_ROOTS);
	address = run_fixture(WHOLE, "fixture_last", probe_and_escape, lines);
	s = look_up(&rig, address, true);
	assert_int_equal(s.count, 1);
	check_symbol(s.symbol, "fixture_last", C_SOURCE, lines[0], false);
	/* The fixture is worth something only if the next byte is not its. */
	s = look_up(&rig, address, false);
	assert_string_not_equal(s.symbol[s.count - 1].function, "fixture_last");
	tear_down(&rig);
}

static void check_cxx(const char *entry, const char *inlined,
		      const char *function)
{
	int lines[FIXTURE_DEPTH] = {0};
	uint64_t address = run_fixture(CXX, entry, probe, lines);
	size_t n = 0;
	struct sp_symbols s;
	struct rig rig;

	set_up(&rig, CXX, NO_ROOTS);
	s = look_up(&rig, address, true);
	assert_int_equal(s.count, inlined ? 2 : 1);
	if (inlined)
		check_symbol(&s.symbol[n++], inlined, CXX_SOURCE, lines[0],
			     true);
	check_symbol(&s.symbol[n], function, CXX_SOURCE, lines[n], false);
	tear_down(&rig);
}

TEST(cxx_names)
{
	const char *inlined = "shapes::Inliner::call";

	check_cxx("fixture_template", NULL, "shapes::Box<char const*>::push");
	check_cxx("fixture_method", inlined, "shapes::outer");
	check_cxx("fixture_anonymous", inlined,
		  "shapes::(anonymous namespace)::hidden");
	check_cxx("fixture_lambda", inlined,
		  "shapes::Inliner::call_in_lambda(void (*)(), int*) "
		  "const::{lambda()#1}::operator()");
}

static void check_identity(const char *entry, const char *identity)
{
	int lines[FIXTURE_DEPTH] = {0};
	uint64_t address = run_fixture(CXX, entry, probe, lines);
	struct sp_symbols s;
	struct rig rig;

	set_up(&rig, CXX, NO_ROOTS);
	s = look_up(&rig, address, true);
	assert_string_equal(s.symbol->identity, identity);
	tear_down(&rig);
}

/* Parameters tell functions of one name apart, and scopes those that have no
 * symbol, since they are inlined, and no linkage name. */
TEST(cxx_identities)
{
	check_cxx("fixture_second_lambda",
		  "fixture_second_lambda::{lambda()#2}::operator()",
		  "fixture_second_lambda");
	check_identity("fixture_second_lambda",
		       "fixture_second_lambda::{lambda()#2}::operator()() "
		       "const");
	check_cxx("fixture_overload", "shapes::(anonymous namespace)::same",
		  "fixture_overload");
	check_identity("fixture_overload",
		       "shapes::(anonymous namespace)::same(void (*)(), int "
		       "const* const&, int*) [in symbol_fixture_cxx.cc]");
	check_identity("fixture_template",
		       "shapes::Box<char const*>::push(char const* const&, "
		       "int*)");
}

static void check_no_dwarf(const char *entry, const char *function)
{
	int lines[FIXTURE_DEPTH] = {0};
	struct sp_symbols s;
	struct rig rig;

	set_up(&rig, NO_DWARF, NO_ROOTS);
	s = look_up(&rig, run_fixture(WHOLE, entry, probe, lines), true);
	assert_int_equal(s.count, 1);
	assert_string_equal(s.symbol->function, function);
	assert_null(s.symbol->file);
	assert_false(s.symbol->is_fallback);
	tear_down(&rig);
}

TEST(symbol_table_alone)
{
	check_no_dwarf("fixture_local", "local_function");
	check_no_dwarf("fixture_aliased_weak", "fixture_aliased");
	check_no_dwarf("fixture_versioned", "fixture_versioned");
	check_no_dwarf("fixture_label", "fixture_label");
}

TEST(separate_debug_file_by_build_id)
{
	struct rig rig;

	set_up(&rig, BARE, NO_ROOTS ":" BY_ID);
	check_inlined_fixture(&rig);
	tear_down(&rig);
}

TEST(separate_debug_file_by_link)
{
	struct rig rig;

	set_up(&rig, LINKED, NO_ROOTS);
	check_inlined_fixture(&rig);
	tear_down(&rig);

	/* Without a build id the CRC decides. */
	set_up(&rig, NO_ID, NO_ROOTS);
	check_inlined_fixture(&rig);
	tear_down(&rig);
}

/* Where the function around an address of the whole fixture begins, by its
 * symbol table. */
static uint64_t start_by_symbol(uint64_t address)
{
	int fd = open(WHOLE, O_RDONLY | O_CLOEXEC);
	uint64_t start = 0;
	Elf_Scn *section = NULL;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	assert_non_null(elf);
	while ((section = elf_nextscn(elf, section))) {
		Elf_Data *data = elf_getdata(section, NULL);
		GElf_Shdr header;
		GElf_Sym symbol;

		assert_non_null(gelf_getshdr(section, &header));
		if (header.sh_type != SHT_SYMTAB)
			continue;
		for (int i = 0; gelf_getsym(data, i, &symbol); i++)
			if (GELF_ST_TYPE(symbol.st_info) == STT_FUNC &&
			    address - symbol.st_value < symbol.st_size)
				start = symbol.st_value;
	}
	elf_end(elf);
	close(fd);
	assert_int_not_equal(start, 0);
	return start;
}

/* Without a name: the module and where the function begins (unwind information
 * says it), or just the address if the file cannot be used. */
static void check_fallback(struct rig *rig, const char *entry,
			   const char *module_name, bool is_usable)
{
	int lines[FIXTURE_DEPTH] = {0};
	uint64_t address = run_fixture(WHOLE, entry, probe, lines);
	struct sp_symbols s = look_up(rig, address, true);
	char expected[128];

	snprintf(expected, sizeof(expected), "%s+0x%llx", module_name,
		 (unsigned long long)(is_usable ? start_by_symbol(address - 1)
						: address));
	assert_int_equal(s.count, 1);
	assert_string_equal(s.symbol->function, expected);
	assert_null(s.symbol->file);
	assert_int_equal(s.symbol->line, 0);
	assert_true(s.symbol->is_fallback);
	assert_false(s.symbol->is_inlined);
}

TEST(stripped_file_has_its_exports_only)
{
	int lines[FIXTURE_DEPTH] = {0};
	struct sp_symbols s;
	struct rig rig;

	set_up(&rig, BARE, NO_ROOTS);
	s = look_up(&rig, run_fixture(WHOLE, "fixture_inlined", probe, lines),
		    true);
	assert_int_equal(s.count, 1);
	assert_string_equal(s.symbol->function, "fixture_inlined");
	assert_null(s.symbol->file);
	assert_false(s.symbol->is_fallback);
	check_fallback(&rig, "fixture_local", "libfixture_bare.so", true);
	tear_down(&rig);
}

TEST(anonymous_code)
{
	const struct sp_frame jit = {0, 0x7f1234};
	struct sp_symbols s;
	struct rig rig;

	set_up(&rig, WHOLE, NO_ROOTS);
	s = sp_symbolizer_lookup(rig.symbolizer, jit, true);
	assert_int_equal(s.count, 1);
	assert_string_equal(s.symbol->function, "[anonymous]+0x7f1234");
	assert_true(s.symbol->is_fallback);
	tear_down(&rig);
}

TEST(results_are_cached_and_stay)
{
	struct sp_symbols first[3000], again;
	struct rig rig;
	uint64_t i;

	set_up(&rig, WHOLE, NO_ROOTS);
	for (i = 0; i < 3000; i++)
		first[i] = look_up(&rig, 0x1000 + i / 2, i % 2);
	for (i = 0; i < 3000; i++) {
		again = look_up(&rig, 0x1000 + i / 2, i % 2);
		assert_ptr_equal(again.symbol, first[i].symbol);
		assert_int_equal(again.count, first[i].count);
	}
	tear_down(&rig);
}

struct problems {
	int count;
	const struct sp_module *module;
	char reason[256];
};

static void note_problem(void *arg, const struct sp_module *module,
			 const char *reason)
{
	struct problems *problems = arg;

	problems->count++;
	problems->module = module;
	snprintf(problems->reason, sizeof(problems->reason), "%s", reason);
}

/* `path` cannot be used, for a reason that contains `reason`. */
static void check_problem(struct rig *rig, const char *reason)
{
	struct problems problems = {0};
	const char *slash = strrchr(rig->module.path, '/');

	sp_symbolizer_problems(rig->symbolizer, note_problem, &problems);
	assert_int_equal(problems.count, 0); /* nobody has asked yet */
	check_fallback(rig, "fixture_inlined",
		       slash ? slash + 1 : rig->module.path, false);
	sp_symbolizer_problems(rig->symbolizer, note_problem, &problems);
	assert_int_equal(problems.count, 1);
	assert_ptr_equal(problems.module, &rig->module);
	if (!strstr(problems.reason, reason))
		fail_msg("\"%s\" lacks \"%s\"", problems.reason, reason);
}

static void check_unusable(const char *path, const char *reason)
{
	struct rig rig;

	set_up(&rig, path, NO_ROOTS);
	check_problem(&rig, reason);
	tear_down(&rig);
}

TEST(other_build_is_not_used)
{
	uint8_t other[sizeof(fixture_build_id)];
	struct rig rig;

	memcpy(other, fixture_build_id, sizeof(other));
	other[0] ^= 0xff;
	set_up(&rig, WHOLE, NO_ROOTS);
	set_build_id(&rig, other, sizeof(other));
	check_problem(&rig, "changed since the profile was recorded (build id "
			    "a5000102030405060708090a0b0c0d0e0f101112, "
			    "now " BUILD_ID_HEX ")");
	tear_down(&rig);

	set_up(&rig, WHOLE, NO_ROOTS);
	set_build_id(&rig, fixture_build_id, sizeof(fixture_build_id) - 1);
	check_problem(&rig, "changed since");
	tear_down(&rig);

	set_up(&rig, NO_ID, NO_ROOTS);
	set_build_id(&rig, fixture_build_id, sizeof(fixture_build_id));
	check_problem(&rig, "build id " BUILD_ID_HEX ", now none");
	tear_down(&rig);
}

TEST(reloaded_module_shares_the_file)
{
	static const uint8_t other[] = {1, 2, 3};
	struct sp_module modules[2];
	struct problems problems = {0};
	struct rig rig;

	set_up(&rig, WHOLE, NO_ROOTS);
	modules[0] = rig.module;
	modules[1] = rig.module;
	modules[1].id = 2;
	sp_symbolizer_free(rig.symbolizer);
	rig.profile.modules = modules;
	rig.profile.n_modules = 2;
	assert_int_equal(sp_symbolizer_new(&rig.profile,
					   &(struct sp_symbolizer_options){0},
					   &rig.symbolizer, NULL),
			 0);
	check_inlined_fixture(&rig);
	/* The same path but another build is another file. */
	memcpy(modules[1].build_id, other, sizeof(other));
	modules[1].build_id_len = sizeof(other);
	rig.module = modules[1];
	check_fallback(&rig, "fixture_inlined", "libfixture_c.so", false);
	sp_symbolizer_problems(rig.symbolizer, note_problem, &problems);
	assert_int_equal(problems.count, 1);
	assert_ptr_equal(problems.module, &modules[1]);
	tear_down(&rig);
}

TEST(paths_that_cannot_be_used)
{
	check_unusable("/dev/zero", "is not a regular file");
	check_unusable("/nonexistent/libx.so",
		       "cannot be opened: No such file");
	check_unusable("/nonexistent/libx.so (deleted)", "was deleted");
	check_unusable("libx.so", "relative path");
}

TEST(names_of_no_file_are_no_problem)
{
	static const char *const names[] = {"[vdso]", "linux-vdso.so.1"};
	struct problems problems = {0};
	struct rig rig;
	size_t i;

	for (i = 0; i < 2; i++) {
		set_up(&rig, names[i], NO_ROOTS);
		check_fallback(&rig, "fixture_inlined", names[i], false);
		sp_symbolizer_problems(rig.symbolizer, note_problem, &problems);
		assert_int_equal(problems.count, 0);
		tear_down(&rig);
	}
	set_up(&rig, "", NO_ROOTS);
	check_fallback(&rig, "fixture_inlined", "[anonymous]", false);
	tear_down(&rig);
}

TEST_MAIN(NULL, NULL)
