/* SPDX-License-Identifier: MIT */
#include "export/code.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/rows.h"
#include "text/text.h"

/* Fields of profile.proto's entries. */
enum {
	MAPPING_ID = 1,
	MAPPING_START = 2,
	MAPPING_LIMIT = 3,
	MAPPING_FILE = 5,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILES = 8,
	MAPPING_HAS_LINES = 9,
	MAPPING_HAS_INLINES = 10,
	LOCATION_ID = 1,
	LOCATION_MAPPING = 2,
	LOCATION_ADDRESS = 3,
	LOCATION_LINE = 4,
	LINE_FUNCTION = 1,
	LINE_LINE = 2,
	FUNCTION_ID = 1,
	FUNCTION_NAME = 2,
	FUNCTION_FILE = 4,
};

/* A frame; with PSEUDO_MODULE, which no file has, the offset is an enum pseudo.
 */
struct place {
	uint64_t module;
	uint64_t offset;
};

#define PSEUDO_MODULE UINT64_MAX

enum pseudo {
	PSEUDO_NO_STACK,
	PSEUDO_OTHER,
};

struct sp_code_mapping {
	uint64_t id; /* 0: not in the file */
	bool has_functions;
	bool has_files;
	bool has_lines;
	bool has_inlines;
};

static uint32_t intern_bytes(struct sp_code *code, struct sp_intern *table,
			     const void *bytes, size_t n)
{
	uint32_t number = 0;

	if (sp_intern_add(table, bytes, n, &number) < 0)
		code->failed = true;
	return number;
}

/* The number of a string that is ours. */
uint32_t sp_code_string(struct sp_code *code, const char *text)
{
	return intern_bytes(code, &code->strings, text, strlen(text));
}

char *sp_code_clean(struct sp_code *code, const char *untrusted)
{
	char *clean = NULL;
	size_t n = 0;
	FILE *stream = open_memstream(&clean, &n);

	if (stream)
		sp_text_print(stream, untrusted);
	if (stream && fclose(stream) == 0)
		return clean;
	code->failed = true;
	free(clean);
	return NULL;
}

uint32_t sp_code_untrusted(struct sp_code *code, const char *text)
{
	char *clean = sp_code_clean(code, text);
	const uint32_t number = clean ? sp_code_string(code, clean) : 0;

	free(clean);
	return number;
}

static uint64_t location_id(struct sp_code *code, uint64_t module,
			    uint64_t offset)
{
	const struct place place = {module, offset};

	return 1 + (uint64_t)intern_bytes(code, &code->places, &place,
					  sizeof(place));
}

size_t sp_code_locations(struct sp_code *code, uint32_t stack,
			 uint64_t ids[SP_FORMAT_FRAMES_MAX])
{
	const struct sp_stack *frames;
	size_t n = 0;

	if (stack == SP_ROWS_OTHER) {
		ids[n++] = location_id(code, PSEUDO_MODULE, PSEUDO_OTHER);
	} else {
		frames = &code->profile->stacks[stack];
		for (; n < frames->n_frames && n < SP_FORMAT_FRAMES_MAX; n++)
			ids[n] = location_id(code, frames->frames[n].module,
					     frames->frames[n].offset);
	}
	if (!n)
		ids[n++] = location_id(code, PSEUDO_MODULE, PSEUDO_NO_STACK);
	return n;
}

/* ---- mappings, locations, functions ---- */

/* The place of the location with that number, from 0. */
static struct place place_of(const struct sp_code *code, uint32_t number)
{
	return *SP_INTERN_AT(&code->places, number, struct place);
}

static struct sp_symbols symbols_of(const struct sp_code *code,
				    struct place place)
{
	static const struct sp_symbol pseudo[] = {
		[PSEUDO_NO_STACK] = {.function = SP_LABEL_NO_STACK},
		[PSEUDO_OTHER] = {.function = "[other]"},
	};

	if (place.module == PSEUDO_MODULE)
		return (struct sp_symbols){&pseudo[place.offset], 1};
	return sp_aggregate_symbols(
		code->aggregate,
		(struct sp_frame){(uint32_t)place.module, place.offset});
}

/* NULL if the place is in no module. */
static const struct sp_module *module_of(const struct sp_code *code,
					 struct place place)
{
	return place.module == PSEUDO_MODULE
		       ? NULL
		       : sp_profile_module(code->profile,
					   (uint32_t)place.module);
}

static struct sp_code_mapping *mapping_of(const struct sp_code *code,
					  struct place place)
{
	const struct sp_module *module = module_of(code, place);

	return module ? &code->mappings[module - code->profile->modules] : NULL;
}

/* Which modules have frames, and how much is known about the frames. */
static void survey_mappings(struct sp_code *code)
{
	for (uint32_t i = 0; i < code->places.n_entries; i++) {
		const struct place place = place_of(code, i);
		const struct sp_symbols s = symbols_of(code, place);
		struct sp_code_mapping *m = mapping_of(code, place);

		if (!m)
			continue;
		m->id = 1;
		for (size_t k = 0; k < s.count; k++) {
			m->has_functions |= !s.symbol[k].is_fallback;
			m->has_files |= s.symbol[k].file != NULL;
			m->has_lines |= s.symbol[k].line != 0;
			m->has_inlines |= s.symbol[k].is_inlined;
		}
	}
}

/* Entries without numbers begin with an empty one. */
static void put_first(const struct sp_code_dialect *dialect,
		      struct sp_proto *out, unsigned int table)
{
	if (!dialect->has_ids)
		sp_proto_bytes(out, table, "", 0);
}

/* The field of an entry that has this number in profile.proto. */
static unsigned int field(const struct sp_code_dialect *dialect,
			  unsigned int number)
{
	return dialect->has_ids ? number : number - 1;
}

static void put_mapping(struct sp_code *code, struct sp_proto *out,
			const struct sp_code_dialect *d,
			const struct sp_module *module)
{
	const struct sp_code_mapping *m =
		&code->mappings[module - code->profile->modules];
	const char *path = module->path;
	char build_id[2 * SP_FORMAT_BUILD_ID_MAX + 1] = "";
	struct sp_proto *to = &code->inner;

	if (module->is_main && !*path)
		path = code->profile->program;
	for (uint32_t i = 0;
	     i < module->build_id_len && i < SP_FORMAT_BUILD_ID_MAX; i++)
		snprintf(build_id + (size_t)2 * i, 3, "%02x",
			 module->build_id[i]);
	if (d->has_ids)
		sp_proto_uint(to, MAPPING_ID, m->id);
	sp_proto_uint(to, field(d, MAPPING_START), module->start_pc);
	sp_proto_uint(to, field(d, MAPPING_LIMIT), module->end_pc);
	sp_proto_uint(to, field(d, MAPPING_FILE),
		      sp_code_untrusted(code, path));
	d->put_build_id(d->arg, to, build_id);
	if (d->has_ids) {
		sp_proto_uint(to, MAPPING_HAS_FUNCTIONS, m->has_functions);
		sp_proto_uint(to, MAPPING_HAS_FILES, m->has_files);
		sp_proto_uint(to, MAPPING_HAS_LINES, m->has_lines);
		sp_proto_uint(to, MAPPING_HAS_INLINES, m->has_inlines);
	}
	sp_proto_message(out, d->mapping, to);
}

/* The program first, by which readers name the profile. */
static void put_mappings(struct sp_code *code, struct sp_proto *out,
			 const struct sp_code_dialect *dialect)
{
	const struct sp_profile *p = code->profile;
	uint64_t last_id = 0;

	put_first(dialect, out, dialect->mapping);
	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < p->n_modules; i++) {
			const struct sp_module *module = &p->modules[i];

			if (module->is_main != !round ||
			    (!module->is_main && !code->mappings[i].id))
				continue;
			code->mappings[i].id = ++last_id;
			put_mapping(code, out, dialect, module);
		}
}

/* The address of the call; the recorded one is the return address. */
static uint64_t address_of(const struct sp_code *code, struct place place)
{
	const struct sp_module *module = module_of(code, place);

	if (place.module == PSEUDO_MODULE)
		return 0;
	return (module ? module->start_pc : 0) + place.offset -
	       (place.offset != 0);
}

static void put_line(struct sp_code *code, unsigned int line,
		     const struct sp_symbol *symbol)
{
	const uint32_t key[2] = {
		sp_code_untrusted(code,
				  sp_aggregate_name(code->aggregate, symbol)),
		symbol->file ? sp_code_untrusted(code, symbol->file) : 0,
	};
	const uint32_t number =
		intern_bytes(code, &code->functions, key, sizeof(key));

	sp_proto_uint(&code->innermost, LINE_FUNCTION, 1 + (uint64_t)number);
	sp_proto_uint(&code->innermost, LINE_LINE, symbol->line);
	sp_proto_message(&code->inner, line, &code->innermost);
}

static void put_locations(struct sp_code *code, struct sp_proto *out,
			  const struct sp_code_dialect *d)
{
	struct sp_proto *to = &code->inner;

	put_first(d, out, d->location);
	for (uint32_t i = 0; i < code->places.n_entries && !code->failed; i++) {
		const struct place place = place_of(code, i);
		const struct sp_code_mapping *m = mapping_of(code, place);

		if (d->has_ids)
			sp_proto_uint(to, LOCATION_ID, 1 + (uint64_t)i);
		sp_proto_uint(to, field(d, LOCATION_MAPPING), m ? m->id : 0);
		sp_proto_uint(to, field(d, LOCATION_ADDRESS),
			      address_of(code, place));
		if (!m || m->has_functions) {
			const struct sp_symbols s = symbols_of(code, place);

			for (size_t k = 0; k < s.count; k++)
				put_line(code, field(d, LOCATION_LINE),
					 &s.symbol[k]);
		}
		sp_proto_message(out, d->location, to);
	}
}

static void put_functions(struct sp_code *code, struct sp_proto *out,
			  const struct sp_code_dialect *d)
{
	struct sp_proto *to = &code->inner;

	put_first(d, out, d->function);
	for (uint32_t i = 0; i < code->functions.n_entries; i++) {
		const uint32_t *key =
			SP_INTERN_AT(&code->functions, i, uint32_t);

		if (d->has_ids)
			sp_proto_uint(to, FUNCTION_ID, 1 + (uint64_t)i);
		sp_proto_uint(to, field(d, FUNCTION_NAME), key[0]);
		sp_proto_uint(to, field(d, FUNCTION_FILE), key[1]);
		sp_proto_message(out, d->function, to);
	}
}

void sp_code_write(struct sp_code *code, struct sp_proto *out,
		   const struct sp_code_dialect *dialect)
{
	survey_mappings(code);
	put_mappings(code, out, dialect);
	put_locations(code, out, dialect);
	put_functions(code, out, dialect);
}

void sp_code_write_strings(const struct sp_code *code, struct sp_proto *out,
			   const struct sp_code_dialect *dialect)
{
	for (uint32_t i = 0; i < code->strings.n_entries; i++)
		sp_proto_bytes(out, dialect->string,
			       sp_intern_bytes(&code->strings, i),
			       code->strings.entries[i].length);
}

int sp_code_init(struct sp_code *code, const struct sp_aggregate *aggregate)
{
	const struct sp_profile *profile = aggregate->analysis->profile;

	*code = (struct sp_code){.aggregate = aggregate, .profile = profile};
	code->mappings =
		calloc(profile->n_modules + 1, sizeof(*code->mappings));
	if (!code->mappings)
		return -ENOMEM;
	sp_code_string(code, ""); /* number 0 has to be that */
	return 0;
}

void sp_code_done(struct sp_code *code)
{
	free(code->mappings);
	sp_intern_done(&code->strings);
	sp_intern_done(&code->places);
	sp_intern_done(&code->functions);
	sp_proto_done(&code->inner);
	sp_proto_done(&code->innermost);
}
