/* SPDX-License-Identifier: MIT */
#include "symbols/folded.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bisect.h"
#include "base/order.h"
#include "symbols/demangle.h"

/* Names that are put into one text. */
#define NAMES_MAX 4u
#define OR_TEXT   " or "

struct sp_folded_symbol {
	uint64_t start, end;
	int i;
	bool is_asked;
	const char *text; /* of the first of a group that was asked for */
};

static bool section_says(Elf_Scn *section, const char *name)
{
	static const char *const linkers[] = {"LLD ", "mold "};
	Elf_Data *data;

	if (strcmp(name, ".note.gnu.gold-version") == 0)
		return true;
	if (strcmp(name, ".comment") != 0)
		return false;
	data = elf_getdata(section, NULL);
	for (size_t i = 0; data && i < sizeof(linkers) / sizeof(*linkers); i++)
		if (data->d_buf && memmem(data->d_buf, data->d_size, linkers[i],
					  strlen(linkers[i])))
			return true;
	return false;
}

void sp_folded_open(struct sp_folded *f, Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t names;

	if (!elf || elf_getshdrstrndx(elf, &names) != 0)
		return;
	while (!f->is_possible &&
	       (section = elf_nextscn(elf, section)) != NULL) {
		const char *name =
			gelf_getshdr(section, &header)
				? elf_strptr(elf, names, header.sh_name)
				: NULL;

		f->is_possible = name && section_says(section, name);
	}
}

void sp_folded_add(struct sp_folded *f, uint64_t start, uint64_t end, int i)
{
	if (!f->is_possible || sp_array_reserve((void **)&f->symbols, &f->room,
						f->n, sizeof(*f->symbols)))
		return;
	f->symbols[f->n++] =
		(struct sp_folded_symbol){.start = start, .end = end, .i = i};
}

SP_ORDER(compare_symbols, struct sp_folded_symbol,
	 SP_UP(start) || SP_UP(end) || SP_UP(i));

void sp_folded_seal(struct sp_folded *f)
{
	if (f->n)
		qsort(f->symbols, f->n, sizeof(*f->symbols), compare_symbols);
}

/* The first of those at an address. */
static size_t find_first(const struct sp_folded *f, uint64_t address)
{
	size_t behind, first;

	SP_LOWER_BOUND(behind, f->n, f->symbols[behind].start <= address);
	for (first = behind; first > 0; first--)
		if (f->symbols[first - 1].start != f->symbols[behind - 1].start)
			break;
	return first;
}

/* The source form of a symbol that is no alias, to be freed; or NULL. */
static char *name_of(Dwfl_Module *module, int i)
{
	const char *raw;
	GElf_Sym symbol;
	GElf_Addr value;

	raw = dwfl_module_getsym_info(module, i, &symbol, &value, NULL, NULL,
				      NULL);
	if (!raw)
		return NULL;
	if (strncmp(raw, "_Z", 2) == 0 || strncmp(raw, "_R", 2) == 0) {
		char *name = sp_demangle(raw);

		if (name)
			name[sp_demangle_short(name)] = '\0';
		return name;
	}
	return GELF_ST_BIND(symbol.st_info) == STB_LOCAL ? strdup(raw) : NULL;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static const char *join_names(struct sp_folded *f, char **names, size_t n)
{
	char text[8192] = "";
	size_t used = 0, n_used = 0;

	qsort(names, n, sizeof(*names), compare_names);
	for (size_t i = 0; i < n && n_used < NAMES_MAX; i++) {
		const size_t bytes = strlen(names[i]);

		if ((i && strcmp(names[i], names[i - 1]) == 0) ||
		    used + bytes + sizeof(OR_TEXT) > sizeof(text))
			continue;
		if (n_used++) {
			memcpy(text + used, OR_TEXT, sizeof(OR_TEXT) - 1);
			used += sizeof(OR_TEXT) - 1;
		}
		memcpy(text + used, names[i], bytes);
		used += bytes;
	}
	return n_used > 1 ? sp_blocks_text(&f->texts, text, used) : NULL;
}

/* All of one extent. */
static const char *name_group(struct sp_folded *f, Dwfl_Module *module,
			      size_t first, size_t n)
{
	char **names = calloc(n, sizeof(*names));
	const char *text = NULL;
	size_t n_names = 0;

	for (size_t i = 0; names && i < n; i++) {
		names[n_names] = name_of(module, f->symbols[first + i].i);
		n_names += names[n_names] != NULL;
	}
	if (n_names > 1)
		text = join_names(f, names, n_names);
	for (size_t i = 0; i < n_names; i++)
		free(names[i]);
	free(names);
	return text;
}

const char *sp_folded_find(struct sp_folded *f, Dwfl_Module *module,
			   uint64_t address)
{
	size_t first, n = 1;
	struct sp_folded_symbol *s;

	if (!f->n || address < f->symbols[0].start)
		return NULL;
	first = find_first(f, address);
	/* The first of the smallest extent that has the address. */
	while (first < f->n && f->symbols[first].end <= address &&
	       f->symbols[first].start <= address)
		first++;
	if (first == f->n || f->symbols[first].start > address)
		return NULL;
	s = &f->symbols[first];
	while (first + n < f->n && s[n].start == s->start && s[n].end == s->end)
		n++;
	if (n > 1 && !s->is_asked)
		s->text = name_group(f, module, first, n);
	s->is_asked = true;
	return s->text;
}

void sp_folded_done(struct sp_folded *f)
{
	free(f->symbols);
	sp_blocks_free(&f->texts);
	*f = (struct sp_folded){.n = 0};
}
