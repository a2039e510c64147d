/* SPDX-License-Identifier: MIT */
#include "symbols/debuginfo.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/blocks.h"
#include "symbols/debugaltlink.h"
#include "symbols/debuginfod.h"
#include "symbols/ehframe.h"
#include "symbols/folded.h"
#include "symbols/othername.h"
#include "symbols/rangemap.h"
#include "symbols/scopename.h"
#include "symbols/splitunit.h"
#include "symbols/unpacked.h"

/* Namespaces and functions nested deeper than this are not looked into. */
#define SCOPE_DEPTH_MAX 32

/* A compilation unit.  `functions` maps to indices of `function_dies`; both
 * are filled when the unit is first asked for. */
struct unit {
	Dwarf_Die die;
	Dwarf_Die body; /* the same, or what it is the skeleton of */
	bool is_indexed;
	bool lacks_body;
	struct sp_rangemap functions;
	Dwarf_Die *function_dies;
	size_t n_functions;
};

/*
 * libdw's own searches by address are linear in the symbol table, and fail if
 * the compiler left out .debug_aranges.  Hence the two indices.
 */
struct sp_debuginfo {
	Dwfl_Callbacks callbacks;
	Dwfl *dwfl;
	Dwfl_Module *module;
	const char *path;
	char *found;      /* the path, if it is not the module's own */
	char *debug_path; /* of its debug file, or NULL */
	char lack[512];   /* sp_debuginfo_lack() */
	struct stat stat;
	const struct sp_symbolizer_options *options;

	struct sp_ehframe ehframe;
	struct sp_debugaltlink altlink;
	struct sp_rangemap symbols; /* to indices of dwfl's symbols */
	GElf_Addr dwarf_bias;       /* virtual address minus DWARF address */
	struct sp_rangemap unit_ranges; /* to indices of units */
	struct unit *units;
	size_t n_units;
	struct sp_homes homes;
	struct sp_blocks names; /* that were put together */
	struct sp_folded folded;
	bool is_ada;          /* Ada's runtime is in it, or used by it */
	bool has_all_symbols; /* not only those that others may use */
};

static int find_debuginfo(Dwfl_Module *module, void **userdata,
			  const char *module_name, Dwarf_Addr base,
			  const char *file_name, const char *link_name,
			  GElf_Word link_crc, char **ret_path)
{
	struct sp_debuginfo *info = *userdata;
	const unsigned char *id = NULL;
	struct sp_debug_query query = {
		.main_path = info->path,
		.main_stat = &info->stat,
		.link_name = link_name,
		.link_crc = link_crc,
		.roots = info->options->debug_path,
	};
	GElf_Addr vaddr;
	int id_len, fd;

	(void)module_name;
	(void)base;
	(void)file_name;
	id_len = dwfl_module_build_id(module, &id, &vaddr);
	if (id_len > 0)
		query.build_id = (struct sp_build_id){id, (size_t)id_len};
	fd = sp_elffile_find_debug(&query, ret_path);
	if (fd < 0 && info->options->use_debuginfod)
		fd = sp_debuginfod_find(&query.build_id, ret_path);
	if (fd < 0 && link_name)
		snprintf(
			info->lack, sizeof(info->lack),
			"whose debug information was moved to %.200s, which is "
			"not there: put it beside the program or into a "
			"directory of --debug-path",
			link_name);
	if (fd >= 0 && *ret_path) {
		free(info->debug_path);
		info->debug_path = strdup(*ret_path);
	}
	return fd >= 0 ? sp_unpacked_open(fd) : -1;
}

Elf *sp_debuginfo_elf(const struct sp_debuginfo *info)
{
	GElf_Addr bias;

	return dwfl_module_getelf(info->module, &bias);
}

static int report_file(struct sp_debuginfo *info, int fd, struct sp_error *err)
{
	void **userdata;
	Elf *elf;

	info->dwfl = dwfl_begin(&info->callbacks);
	if (info->dwfl) {
		dwfl_report_begin(info->dwfl);
		info->module = dwfl_report_elf(info->dwfl, info->path,
					       info->path, fd, 0, true);
		dwfl_report_end(info->dwfl, NULL, NULL);
	}
	if (!info->module) {
		close(fd);
		return sp_error_set(err, -ENOEXEC, info->path,
				    "cannot be read as ELF: %s",
				    dwfl_errmsg(-1));
	}
	dwfl_module_info(info->module, &userdata, NULL, NULL, NULL, NULL, NULL,
			 NULL);
	*userdata = info;
	elf = sp_debuginfo_elf(info);
	if (elf) {
		sp_ehframe_open(elf, &info->ehframe);
		sp_folded_open(&info->folded, elf);
		info->has_all_symbols = sp_elffile_has_all_symbols(elf);
	}
	return 0;
}

bool sp_debuginfo_function_start(const struct sp_debuginfo *info,
				 uint64_t address, uint64_t *ret_start)
{
	return sp_ehframe_find(&info->ehframe, address, ret_start);
}

static int index_symbol(struct sp_debuginfo *info, int i)
{
	struct sp_range range = {.value = (uint32_t)i};
	const char *name;
	GElf_Word shndx;
	GElf_Addr bias;
	GElf_Shdr section;
	GElf_Sym symbol;
	Elf *elf;

	name = dwfl_module_getsym_info(info->module, i, &symbol, &range.start,
				       &shndx, &elf, &bias);
	info->is_ada |= name && strncmp(name, "__gnat_", 7) == 0;
	if (!name || !name[0] || symbol.st_shndx == SHN_UNDEF ||
	    !gelf_getshdr(elf_getscn(elf, shndx), &section) ||
	    !sp_elffile_is_code(&symbol, &section))
		return 0;
	range.is_label = !symbol.st_size;
	range.rank = sp_elffile_binding_rank(&symbol);
	if (range.is_label)
		range.end = section.sh_addr + bias + section.sh_size;
	else if (__builtin_add_overflow(range.start, symbol.st_size,
					&range.end))
		return 0;
	if (!range.is_label)
		sp_folded_add(&info->folded, range.start, range.end, i);
	return sp_rangemap_add(&info->symbols, range);
}

static int index_symbols(struct sp_debuginfo *info)
{
	int n = dwfl_module_getsymtab(info->module);
	GElf_Word shndx;
	GElf_Addr address;
	GElf_Sym symbol;
	Elf *elf = NULL;
	int r = 0;

	/* The last symbol is of the file that has the debug information. */
	if (n > 1 && dwfl_module_getsym_info(info->module, n - 1, &symbol,
					     &address, &shndx, &elf, NULL)) {
		sp_unpacked_hide_locations(elf);
		/* packages have its notes and comments there alone */
		sp_folded_open(&info->folded, elf);
		info->has_all_symbols |= sp_elffile_has_all_symbols(elf);
	}
	for (int i = 1; i < n && r != -ENOMEM; i++)
		r = index_symbol(info, i);
	sp_folded_seal(&info->folded);
	return r == -ENOMEM ? r : sp_rangemap_seal(&info->symbols);
}

const struct sp_rangemap *sp_debuginfo_symbols(const struct sp_debuginfo *info)
{
	return &info->symbols;
}

const char *sp_debuginfo_symbol(const struct sp_debuginfo *info, uint32_t i,
				GElf_Sym *ret, uint64_t *ret_value)
{
	return dwfl_module_getsym_info(info->module, (int)i, ret, ret_value,
				       NULL, NULL, NULL);
}

/* Map what `die` covers to `value`. */
static int add_ranges(struct sp_rangemap *map, Dwarf_Die *die, size_t value)
{
	Dwarf_Addr base, start, end;
	struct sp_range range = {.value = (uint32_t)value};
	ptrdiff_t at = 0;
	int r = 0;

	while (r == 0 &&
	       (at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		range.start = start;
		range.end = end;
		/* 0 and 1 stand for code that the linker discarded. */
		if (start > 1)
			r = sp_rangemap_add(map, range);
	}
	return r;
}

/* The file that has the debug information, which names others beside it. */
static const char *beside(const struct sp_debuginfo *info)
{
	return info->debug_path ? info->debug_path : info->path;
}

static int index_units(struct sp_debuginfo *info)
{
	Dwarf *dwarf = dwfl_module_getdwarf(info->module, &info->dwarf_bias);
	size_t capacity = 0;
	Dwarf_CU *cu = NULL;
	struct unit *grown;
	Dwarf_Die die;
	int r = 0;

	/* This replaces the file that find_debuginfo() found: libdwfl asks it
	 * for the alternate file as for any debug file. */
	if (dwarf)
		r = sp_debugaltlink_open(dwarf, info->options->debug_path,
					 beside(info), &info->altlink);
	if (info->altlink.fd >= 0)
		info->lack[0] = '\0';
	while (dwarf && r != -ENOMEM && info->n_units < SP_RANGEMAP_MAX &&
	       dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &die, NULL) == 0) {
		if (info->n_units == capacity) {
			capacity = capacity ? 2 * capacity : 16;
			grown = realloc(info->units, capacity * sizeof(*grown));
			if (!grown)
				return -ENOMEM;
			info->units = grown;
		}
		info->units[info->n_units] =
			(struct unit){.die = die, .body = die};
		r = add_ranges(&info->unit_ranges, &die, info->n_units);
		info->n_units++;
	}
	if (!info->n_units && !info->lack[0])
		snprintf(info->lack, sizeof(info->lack),
			 "which has no debug information: lines and inlined "
			 "functions are missing; build it with -g");
	return r == -ENOMEM ? r : sp_rangemap_seal(&info->unit_ranges);
}

const char *sp_debuginfo_lack(const struct sp_debuginfo *info)
{
	return info->lack;
}

/* As sp_elffile_find(), and at last from the network. */
static int find_module(const char *path, const struct sp_build_id *want,
		       const struct sp_symbolizer_options *options,
		       char **ret_path, struct sp_error *err)
{
	int fd, fetched;

	if (strcmp(path, SP_ELFFILE_VDSO) == 0)
		return sp_elffile_open_vdso(want, err);
	fd = sp_elffile_find(path, want, options->debug_path, ret_path, err);
	if (fd >= 0 || fd == -ENOMEM || !options->use_debuginfod)
		return fd;
	fetched = sp_debuginfod_find(want, ret_path);
	return fetched >= 0 ? fetched : fd;
}

int sp_debuginfo_open(const char *path, const struct sp_build_id *want,
		      const struct sp_symbolizer_options *options,
		      struct sp_debuginfo **ret_info, struct sp_error *err)
{
	struct sp_debuginfo *info = calloc(1, sizeof(*info));
	int fd, r;

	if (!info)
		return sp_error_set(err, -ENOMEM, path, "out of memory");
	fd = find_module(path, want, options, &info->found, err);
	if (fd < 0) {
		free(info->found);
		free(info);
		return fd;
	}
	info->path = info->found ? info->found : path;
	info->options = options;
	info->altlink.fd = -1;
	info->callbacks.find_debuginfo = find_debuginfo;
	fstat(fd, &info->stat);
	r = report_file(info, sp_unpacked_open(fd), err);
	if (r == 0) {
		r = index_symbols(info);
		if (r == 0)
			r = index_units(info);
		if (r < 0)
			sp_error_set(err, r, path, "out of memory");
	}
	if (r < 0) {
		sp_debuginfo_close(info);
		return r;
	}
	*ret_info = info;
	return 0;
}

void sp_debuginfo_close(struct sp_debuginfo *info)
{
	if (!info)
		return;
	for (size_t i = 0; i < info->n_units; i++) {
		sp_rangemap_clear(&info->units[i].functions);
		free(info->units[i].function_dies);
	}
	free(info->units);
	sp_rangemap_clear(&info->unit_ranges);
	sp_rangemap_clear(&info->symbols);
	dwfl_end(info->dwfl);
	sp_debugaltlink_close(&info->altlink);
	sp_homes_done(&info->homes);
	sp_blocks_free(&info->names);
	sp_folded_done(&info->folded);
	free(info->found);
	free(info->debug_path);
	free(info);
}

static int add_function(struct unit *unit, Dwarf_Die *die)
{
	size_t n_ranges = unit->functions.count, n = unit->n_functions;
	Dwarf_Die *grown;
	int r;

	if ((n & (n - 1)) == 0) {
		grown = reallocarray(unit->function_dies, n ? 2 * n : 1,
				     sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		unit->function_dies = grown;
	}
	unit->function_dies[n] = *die;
	r = add_ranges(&unit->functions, die, n);
	/* Declarations and abstract instances cover nothing. */
	if (unit->functions.count > n_ranges)
		unit->n_functions++;
	return r;
}

/*
 * Definitions stand in the unit and in namespaces, also those of methods; but
 * those of nested functions and lambdas in whatever surrounds them.
 */
static int add_functions(struct unit *unit, Dwarf_Die *scope, int depth)
{
	Dwarf_Die die;
	int r = 0;

	if (depth > SCOPE_DEPTH_MAX || dwarf_child(scope, &die) != 0)
		return 0;
	do {
		switch (dwarf_tag(&die)) {
		case DW_TAG_subprogram:
			r = add_function(unit, &die);
			if (r != 0)
				break;
			/* fall through */
		case DW_TAG_namespace:
		case DW_TAG_module:
		case DW_TAG_lexical_block:
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
		case DW_TAG_union_type:
			r = add_functions(unit, &die, depth + 1);
			break;
		}
	} while (r == 0 && dwarf_siblingof(&die, &die) == 0);
	return r;
}

static struct unit *unit_at(struct sp_debuginfo *info, Dwarf_Addr pc)
{
	struct unit *unit;
	uint32_t i;

	if (!sp_rangemap_find(&info->unit_ranges, pc, &i))
		return NULL;
	unit = &info->units[i];
	if (!unit->is_indexed) {
		unit->is_indexed = true;
		unit->lacks_body =
			!sp_splitunit_find(&unit->die, beside(info),
					   &unit->body) &&
			sp_splitunit_lack(&unit->die, beside(info), info->lack,
					  sizeof(info->lack));
		add_functions(unit, &unit->body, 0);
		sp_rangemap_seal(&unit->functions);
	}
	return unit;
}

/* The part of `scope` that pc lies in, in place; false if there is none. */
static bool enter_scope(Dwarf_Die *scope, Dwarf_Addr pc)
{
	Dwarf_Die die;

	if (dwarf_child(scope, &die) != 0)
		return false;
	do {
		switch (dwarf_tag(&die)) {
		case DW_TAG_lexical_block:
		case DW_TAG_try_block:
		case DW_TAG_catch_block:
		case DW_TAG_inlined_subroutine:
			if (dwarf_haspc(&die, pc) == 1) {
				*scope = die;
				return true;
			}
		}
	} while (dwarf_siblingof(&die, &die) == 0);
	return false;
}

/* The function at pc and the calls inlined there, outermost first. */
static size_t inline_chain(const struct unit *unit, Dwarf_Addr pc,
			   Dwarf_Die chain[SP_LOCATION_MAX])
{
	Dwarf_Die scope;
	size_t n = 0;
	uint32_t i;

	if (!sp_rangemap_find(&unit->functions, pc, &i))
		return 0;
	scope = unit->function_dies[i];
	chain[n++] = scope;
	while (n < SP_LOCATION_MAX && enter_scope(&scope, pc)) {
		if (dwarf_tag(&scope) == DW_TAG_inlined_subroutine)
			chain[n++] = scope;
	}
	return n;
}

static void set_place(struct unit *unit, struct sp_location *location,
		      const char *file, uint64_t line)
{
	Dwarf_Attribute attribute;

	if (!file || strcmp(file, "???") == 0)
		return;
	location->file = file;
	location->line = line <= INT32_MAX ? (uint32_t)line : 0;
	if (file[0] != '/')
		location->directory = dwarf_formstring(
			dwarf_attr(&unit->die, DW_AT_comp_dir, &attribute));
}

static void line_at(struct unit *unit, Dwarf_Addr pc,
		    struct sp_location *location)
{
	Dwarf_Line *line = dwarf_getsrc_die(&unit->die, pc);
	int number;

	if (line && dwarf_lineno(line, &number) == 0)
		set_place(unit, location, dwarf_linesrc(line, NULL, NULL),
			  (uint64_t)number);
}

/* Where `inlined` was called, as the place in the function around it. */
static void call_site(struct unit *unit, Dwarf_Die *inlined,
		      struct sp_location *location)
{
	Dwarf_Attribute attribute;
	Dwarf_Word file, line = 0;
	Dwarf_Files *files;

	if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute),
			    &file) != 0 ||
	    dwarf_getsrcfiles(&unit->body, &files, NULL) != 0)
		return;
	dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute),
			&line);
	set_place(unit, location, dwarf_filesrc(files, file, NULL, NULL), line);
}

/* What the symbol table alone knows.  A symbol without a size ends where the
 * unwind tables have another function, at the latest; if they have nothing
 * there, the table has to have all functions. */
static struct sp_location symbol_at(struct sp_debuginfo *info, uint64_t address)
{
	const char *name;
	uint64_t start;
	GElf_Addr value;
	GElf_Sym symbol;
	uint32_t i;

	if (!sp_rangemap_find(&info->symbols, address, &i))
		return (struct sp_location){0};
	name = sp_debuginfo_symbol(info, i, &symbol, &value);
	if (name && !symbol.st_size &&
	    (sp_ehframe_find(&info->ehframe, address, &start)
		     ? start > value
		     : !info->has_all_symbols))
		return (struct sp_location){0};
	return (struct sp_location){
		.function = name,
		.home = sp_homes_of_symbol(&info->homes, info->module, (int)i),
	};
}

/* What is not in the name as it stands in the file. */
static void finish_names(struct sp_debuginfo *info, uint64_t address,
			 struct sp_location *locations, size_t n)
{
	const char *folded =
		sp_folded_find(&info->folded, info->module, address);

	if (folded) {
		locations[n - 1].function = folded;
		locations[n - 1].home = (struct sp_home_found){0};
	}
	for (size_t i = 0; info->is_ada && i < n; i++) {
		char *ada = locations[i].function
				    ? sp_othername_ada(locations[i].function)
				    : NULL;

		if (ada)
			locations[i].function =
				sp_blocks_text(&info->names, ada, strlen(ada));
		free(ada);
	}
}

size_t sp_debuginfo_lookup(struct sp_debuginfo *info, uint64_t address,
			   struct sp_location locations[SP_LOCATION_MAX])
{
	const struct sp_location known = symbol_at(info, address);
	Dwarf_Addr pc = address - info->dwarf_bias;
	struct unit *unit = unit_at(info, pc);
	Dwarf_Die chain[SP_LOCATION_MAX];
	struct sp_location *location;
	size_t n, i, at = 0;

	locations[0] = known;
	if (unit)
		line_at(unit, pc, &locations[0]);
	n = unit ? inline_chain(unit, pc, chain) : 0;
	for (i = 0; i < n; i++) {
		Dwarf_Die *die = &chain[n - 1 - i];

		location = &locations[at];
		if (i > 0) {
			*location = (struct sp_location){0};
			call_site(unit, &chain[n - i], location);
		}
		location->is_inlined = i + 1 < n;
		location->function = sp_scopename_function(
			die, location->is_inlined ? NULL : known.function,
			&info->names);
		/* DWARF calls all parts of a coroutine local. */
		if (location->is_inlined || known.home.file ||
		    !known.function || !strstr(known.function, ".Frame."))
			location->home = sp_homes_of_die(
				&info->homes, dwarf_cu_getdwarf(unit->die.cu),
				die);
		/* Its name is in a file that is not there (dwz). */
		at += location->function || !location->is_inlined;
	}
	locations[0].lacks_inlined = (unit && unit->lacks_body) || at < n;
	n = at + !at;
	locations[n - 1].is_clone =
		known.function &&
		known.function[sp_othername_without_clones(known.function)];
	finish_names(info, address, locations, n);
	return n;
}
