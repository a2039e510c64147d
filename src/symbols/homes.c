/* SPDX-License-Identifier: MIT */
/*
 * A static function is the same in all builds if its name and its file are.
 * Directories differ from machine to machine, so only as many are named as are
 * needed to tell the files of one module apart.
 */
#include "symbols/homes.h"

#include <dwarf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bisect.h"
#include "base/hash.h"
#include "base/order.h"
#include "symbols/home.h"
#include "symbols/othername.h"

struct sp_home_unit {
	uint64_t hash;    /* of the last part */
	const char *path; /* absolute unless that is not known, without "." */
};

struct sp_home_file {
	int symbol;
	const char *name; /* NULL: what follows is of no known file */
};

struct sp_home_local {
	uint64_t hash; /* of name and file */
	uint64_t address;
};

/* ---- paths ---- */

/* Remove ".", ".." and empty parts, in place. */
static void clean_path(char *path)
{
	const bool is_absolute = *path == '/';
	char *const begin = path + is_absolute;
	char *to = begin;

	for (const char *at = begin, *next; *at; at = next) {
		const size_t n = strcspn(at, "/");
		const bool is_up = n == 2 && !strncmp(at, "..", 2);
		char *last = to;

		next = at + n + (at[n] == '/');
		while (last > begin && last[-1] != '/')
			last--;
		if (is_up && to > begin &&
		    (to - last != 2 || strncmp(last, "..", 2) != 0)) {
			to = last > begin ? last - 1 : begin;
		} else if (n && !(n == 1 && *at == '.')) {
			if (to > begin)
				*to++ = '/';
			to = (char *)memmove(to, at, n) + n;
		}
	}
	*to = '\0';
}

/* To be freed; NULL without memory. */
static char *full_path(Dwarf_Die *unit, const char *file)
{
	Dwarf_Attribute attribute;
	const char *directory = NULL;
	char *joined;

	if (*file != '/')
		directory = dwarf_formstring(
			dwarf_attr(unit, DW_AT_comp_dir, &attribute));
	joined = malloc((directory ? strlen(directory) : 0) + strlen(file) + 2);
	if (!joined)
		return NULL;
	*joined = '\0';
	if (directory)
		strcat(strcpy(joined, directory), "/");
	clean_path(strcat(joined, file));
	return joined;
}

static const char *last_part(const char *path)
{
	return sp_home_tail(path, strlen(path), 1);
}

static uint64_t hash_text(uint64_t h, const char *text)
{
	return sp_hash_bytes(h, text, strlen(text) + 1);
}

/* ---- what debug information says ---- */

SP_ORDER(compare_units, struct sp_home_unit, SP_UP(hash));

static int add_unit(struct sp_homes *h, Dwarf_Die *die, const char *name)
{
	char *full = full_path(die, name);
	const char *path =
		full ? sp_blocks_text(&h->texts, full, strlen(full)) : NULL;

	free(full);
	if (!path || sp_array_reserve((void **)&h->units, &h->units_room,
				      h->n_units, sizeof(*h->units)) < 0)
		return -ENOMEM;
	h->units[h->n_units++] =
		(struct sp_home_unit){hash_text(0, last_part(path)), path};
	return 0;
}

static int index_units(struct sp_homes *h, Dwarf *dwarf)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;

	while (dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &die, NULL) == 0) {
		const char *name = dwarf_diename(&die);

		if (name && add_unit(h, &die, name) < 0)
			return -ENOMEM;
	}
	if (h->n_units)
		qsort(h->units, h->n_units, sizeof(*h->units), compare_units);
	return 1;
}

/* The first that is not before the hash. */
static size_t first_unit(const struct sp_homes *h, uint64_t hash)
{
	size_t at;

	SP_LOWER_BOUND(at, h->n_units, h->units[at].hash < hash);
	return at;
}

static const char *short_path(const struct sp_homes *h, const char *path)
{
	const uint64_t hash = hash_text(0, last_part(path));
	const size_t n = strlen(path);
	size_t parts = 1;

	for (size_t i = first_unit(h, hash);
	     i < h->n_units && h->units[i].hash == hash; i++) {
		const char *other = h->units[i].path;
		const size_t common =
			sp_home_common(path, n, other, strlen(other));

		if (strcmp(path, other) != 0 && common >= parts)
			parts = common + 1;
	}
	return sp_home_tail(path, n, parts);
}

static bool is_external(Dwarf_Die *function)
{
	Dwarf_Attribute attribute;
	bool flag = false;

	return dwarf_formflag(dwarf_attr_integrate(function, DW_AT_external,
						   &attribute),
			      &flag) == 0 &&
	       flag;
}

struct sp_home_found sp_homes_of_die(struct sp_homes *h, Dwarf *dwarf,
				     Dwarf_Die *function)
{
	struct sp_home_found found = {0};
	Dwarf_Attribute attribute;
	Dwarf_Word number;
	Dwarf_Files *files;
	const char *file;
	Dwarf_Die unit;
	char *path;

	if (is_external(function))
		return found;
	/* Not by dwarf_decl_file(), which fails for units in files of their
	 * own.  The unit is that which the file's number is from. */
	if (!dwarf_attr_integrate(function, DW_AT_decl_file, &attribute) ||
	    dwarf_formudata(&attribute, &number) != 0 || !number ||
	    !dwarf_cu_die(attribute.cu, &unit, NULL, NULL, NULL, NULL, NULL,
			  NULL) ||
	    dwarf_getsrcfiles(&unit, &files, NULL) != 0)
		return found;
	file = dwarf_filesrc(files, number, NULL, NULL);
	if (!file)
		return found;
	if (!h->has_units)
		h->has_units = index_units(h, dwarf);
	path = h->has_units > 0 ? full_path(&unit, file) : NULL;
	if (path && *path) {
		const char *tail = short_path(h, path);

		found.file = sp_blocks_text(&h->texts, tail, strlen(tail));
	}
	free(path);
	return found;
}

/* ---- what the symbol table says ---- */

SP_ORDER(compare_locals, struct sp_home_local, SP_UP(hash) || SP_UP(address));

static uint64_t hash_local(const char *name, const char *file)
{
	return hash_text(hash_text(0, name), file ? file : "");
}

static int add_file(struct sp_homes *h, int symbol, const char *name)
{
	if (sp_array_reserve((void **)&h->files, &h->files_room, h->n_files,
			     sizeof(*h->files)) < 0)
		return -ENOMEM;
	h->files[h->n_files++] =
		(struct sp_home_file){symbol, *name ? last_part(name) : NULL};
	return 0;
}

static int add_local(struct sp_homes *h, const char *name, uint64_t address)
{
	const char *file = h->n_files ? h->files[h->n_files - 1].name : NULL;

	if (sp_array_reserve((void **)&h->locals, &h->locals_room, h->n_locals,
			     sizeof(*h->locals)) < 0)
		return -ENOMEM;
	h->locals[h->n_locals++] =
		(struct sp_home_local){hash_local(name, file), address};
	return 0;
}

static int add_global(struct sp_homes *h, const char *name)
{
	if (sp_array_reserve((void **)&h->globals, &h->globals_room,
			     h->n_globals, sizeof(*h->globals)) < 0)
		return -ENOMEM;
	h->globals[h->n_globals++] = hash_text(0, name);
	return 0;
}

static int add_symbol(struct sp_homes *h, int i, const GElf_Sym *symbol,
		      const char *name, uint64_t address)
{
	const int type = GELF_ST_TYPE(symbol->st_info);
	const bool is_local = GELF_ST_BIND(symbol->st_info) == STB_LOCAL;

	if (is_local && type == STT_FILE)
		return add_file(h, i, name);
	if (type != STT_FUNC || !*name)
		return 0;
	return is_local ? add_local(h, name, address) : add_global(h, name);
}

/* A file's symbol comes before those of its functions. */
static int index_locals(struct sp_homes *h, Dwfl_Module *module)
{
	const int n = dwfl_module_getsymtab(module);
	int r = 0;

	for (int i = 1; !r && i < n; i++) {
		GElf_Addr address;
		GElf_Sym symbol;
		const char *name = dwfl_module_getsym_info(
			module, i, &symbol, &address, NULL, NULL, NULL);

		if (name)
			r = add_symbol(h, i, &symbol, name, address);
	}
	if (r < 0)
		return r;
	if (h->n_locals)
		qsort(h->locals, h->n_locals, sizeof(*h->locals),
		      compare_locals);
	if (h->n_globals)
		qsort(h->globals, h->n_globals, sizeof(*h->globals),
		      sp_array_compare_u64);
	return 1;
}

static const char *file_of(const struct sp_homes *h, int symbol)
{
	size_t at;

	SP_LOWER_BOUND(at, h->n_files, h->files[at].symbol < symbol);
	return at ? h->files[at - 1].name : NULL;
}

/* Has another local function this name, in a file of this name? */
static bool is_shared(const struct sp_homes *h, const char *name,
		      const char *file)
{
	const struct sp_home_local wanted = {hash_local(name, file), 0};
	size_t at;

	SP_LOWER_BOUND(at, h->n_locals,
		       compare_locals(&h->locals[at], &wanted) < 0);
	for (size_t i = at + 1;
	     i < h->n_locals && h->locals[i].hash == wanted.hash; i++)
		if (h->locals[i].address != h->locals[at].address)
			return true;
	return false;
}

/* Of C++: those that only their file knows have an L before their own name
 * (_ZL4makem), or are in an unnamed namespace. */
static bool is_local_by_name(const char *mangled)
{
	if (strstr(mangled, "_GLOBAL__N"))
		return true;
	for (const char *at = strchr(mangled, 'L'); at;
	     at = strchr(at + 1, 'L'))
		if (at[1] >= '0' && at[1] <= '9')
			return true;
	return false;
}

/* "f.part.0" and "f.constprop.0" are local, and so is what gcc makes of a
 * coroutine, though all know f.  Static functions are called .lto_priv.0 to
 * tell them from others. */
static bool is_part_of_global(const struct sp_homes *h, const char *name)
{
	const size_t n = sp_othername_without_clones(name);
	char *whole;
	uint64_t hash;

	if ((!name[n] && !strstr(name, ".Frame.")) || strstr(name, ".lto_priv"))
		return false;
	if (name[0] == '_' && name[1] == 'Z')
		return !is_local_by_name(name);
	whole = strndup(name, n);
	if (!whole)
		return false;
	hash = hash_text(0, whole);
	free(whole);
	return h->n_globals && bsearch(&hash, h->globals, h->n_globals,
				       sizeof(hash), sp_array_compare_u64);
}

struct sp_home_found sp_homes_of_symbol(struct sp_homes *h, Dwfl_Module *module,
					int i)
{
	struct sp_home_found found = {0};
	GElf_Addr address;
	GElf_Sym symbol;
	const char *name = dwfl_module_getsym_info(module, i, &symbol, &address,
						   NULL, NULL, NULL);

	if (!name || GELF_ST_BIND(symbol.st_info) != STB_LOCAL)
		return found;
	if (!h->has_locals)
		h->has_locals = index_locals(h, module);
	if (h->has_locals < 0 || is_part_of_global(h, name))
		return found;
	found.file = file_of(h, i);
	if (is_shared(h, name, found.file))
		found.address = address;
	return found;
}

void sp_homes_done(struct sp_homes *h)
{
	free(h->units);
	free(h->files);
	free(h->locals);
	free(h->globals);
	sp_blocks_free(&h->texts);
}
