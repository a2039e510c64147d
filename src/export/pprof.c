/* SPDX-License-Identifier: MIT */
/*
 * Samples come first and give numbers to the frames that they have; then the
 * locations of these frames, which give numbers to functions; then the
 * functions, and the table of all strings at the end.  Numbers count from 1 in
 * the order of the file, which some readers insist on.
 */
#include "export/format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "export/proto.h"
#include "export/rows.h"
#include "base/intern.h"
#include "text/lack.h"
#include "text/text.h"

/* Fields of profile.proto. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_DROP_FRAMES = 7,
	PROFILE_TIME_NANOS = 9,
	PROFILE_DURATION_NANOS = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_TYPE = 14,
	VALUE_TYPE = 1,
	VALUE_UNIT = 2,
	SAMPLE_LOCATION = 1,
	SAMPLE_VALUE = 2,
	SAMPLE_LABEL = 3,
	LABEL_KEY = 1,
	LABEL_NUM = 3,
	LABEL_UNIT = 4,
	MAPPING_ID = 1,
	MAPPING_START = 2,
	MAPPING_LIMIT = 3,
	MAPPING_FILE = 5,
	MAPPING_BUILD_ID = 6,
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

#define TYPES_MAX 6

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

/* Functions that only forward an allocation.  Readers drop these frames and
 * their callees, so none may run code of the program, as traits of its own
 * allocator would. */
static const char drop_frames[] =
	"malloc|calloc|realloc|reallocarray|memalign|posix_memalign|"
	"aligned_alloc|valloc|pvalloc|mallocx|rallocx|xallocx|"
	"operator new(\\[\\])?|"
	"(std::__new_allocator|__gnu_cxx::new_allocator|std::allocator|"
	"std::allocator_traits<std::allocator)<.*>::allocate";

struct mapping {
	uint64_t id; /* 0: not in the file */
	bool has_functions;
	bool has_files;
	bool has_lines;
	bool has_inlines;
};

struct writer {
	const struct sp_aggregate *aggregate;
	const struct sp_profile *profile;
	const struct sp_export_options *options;
	bool is_of_inuse;    /* the view shows what is alive */
	int64_t value_max;   /* so that no sum overflows */
	struct sp_row *rows; /* with a size of 0: of any size */
	size_t n_rows;
	size_t n_folded; /* rows that became one */
	struct mapping *mappings;
	struct sp_intern strings;
	struct sp_intern places;    /* struct place */
	struct sp_intern functions; /* name and file, numbers of strings */
	struct sp_proto out;
	struct sp_proto inner;     /* a message of `out` */
	struct sp_proto innermost; /* a message of that */
	bool failed;               /* not enough memory */
};

static uint32_t intern_bytes(struct writer *w, struct sp_intern *table,
			     const void *bytes, size_t n)
{
	uint32_t number = 0;

	if (sp_intern_add(table, bytes, n, &number) < 0)
		w->failed = true;
	return number;
}

/* The number of a string that is ours. */
static uint32_t own_string(struct writer *w, const char *text)
{
	return intern_bytes(w, &w->strings, text, strlen(text));
}

static uint32_t untrusted_string(struct writer *w, const char *text)
{
	char *clean = NULL;
	size_t n = 0;
	FILE *stream = open_memstream(&clean, &n);
	uint32_t number = 0;

	if (stream)
		sp_text_print(stream, text);
	if (stream && fclose(stream) == 0)
		number = intern_bytes(w, &w->strings, clean, n);
	else
		w->failed = true;
	free(clean);
	return number;
}

static int64_t limited_value(uint64_t value)
{
	return value < INT64_MAX ? (int64_t)value : INT64_MAX;
}

/* ---- sample types ---- */

static void put_type(struct writer *w, unsigned int field, const char *type,
		     const char *unit)
{
	sp_proto_uint(&w->inner, VALUE_TYPE, own_string(w, type));
	sp_proto_uint(&w->inner, VALUE_UNIT, own_string(w, unit));
	sp_proto_message(&w->out, field, &w->inner);
}

static void put_types(struct writer *w)
{
	const bool inuse = w->is_of_inuse;

	put_type(w, PROFILE_SAMPLE_TYPE, "alloc_objects", "count");
	put_type(w, PROFILE_SAMPLE_TYPE, "alloc_space", "bytes");
	if (w->profile->has_frees) {
		put_type(w, PROFILE_SAMPLE_TYPE, "inuse_objects", "count");
		put_type(w, PROFILE_SAMPLE_TYPE, "inuse_space", "bytes");
	}
	if (w->options->pprof_error) {
		put_type(w, PROFILE_SAMPLE_TYPE,
			 inuse ? "inuse_space_variance"
			       : "alloc_space_variance",
			 "KiB^2");
		put_type(w, PROFILE_SAMPLE_TYPE,
			 inuse ? "inuse_samples" : "alloc_samples", "count");
	}
	put_type(w, PROFILE_PERIOD_TYPE, "space", "bytes");
	sp_proto_uint(&w->out, PROFILE_PERIOD,
		      (uint64_t)limited_value(w->profile->period_bytes));
	sp_proto_uint(&w->out, PROFILE_DEFAULT_TYPE,
		      own_string(w, inuse ? "inuse_space" : "alloc_space"));
}

/* ---- samples ---- */

static uint64_t rounded_value(const struct writer *w, double value,
			      uint64_t *hash)
{
	*hash = sp_hash_word(*hash, 1);
	return (uint64_t)sp_export_round(value, *hash, w->value_max);
}

static size_t values_of(const struct writer *w, const struct sp_row *row,
			uint64_t hash, uint64_t values[TYPES_MAX])
{
	const struct sp_acc *of = w->is_of_inuse ? &row->inuse : &row->alloc;
	size_t n = 0;

	values[n++] = rounded_value(w, row->alloc.est_count, &hash);
	values[n++] = rounded_value(w, row->alloc.est_bytes, &hash);
	if (w->profile->has_frees) {
		values[n++] = rounded_value(w, row->inuse.est_count, &hash);
		values[n++] = rounded_value(w, row->inuse.est_bytes, &hash);
	}
	if (w->options->pprof_error) {
		values[n++] =
			rounded_value(w, of->k2 / (1024.0 * 1024.0), &hash);
		values[n++] = of->samples;
	}
	return n;
}

static uint64_t location_id(struct writer *w, uint64_t module, uint64_t offset)
{
	const struct place place = {module, offset};

	return 1 + (uint64_t)intern_bytes(w, &w->places, &place, sizeof(place));
}

static void put_locations_of(struct writer *w, const struct sp_row *row)
{
	uint64_t ids[SP_FORMAT_FRAMES_MAX];
	const struct sp_stack *stack;
	size_t n = 0;

	if (row->stack == SP_ROWS_OTHER) {
		ids[n++] = location_id(w, PSEUDO_MODULE, PSEUDO_OTHER);
	} else {
		stack = &w->profile->stacks[row->stack];
		for (; n < stack->n_frames && n < SP_FORMAT_FRAMES_MAX; n++)
			ids[n] = location_id(w, stack->frames[n].module,
					     stack->frames[n].offset);
	}
	if (!n)
		ids[n++] = location_id(w, PSEUDO_MODULE, PSEUDO_NO_STACK);
	sp_proto_packed(&w->inner, SAMPLE_LOCATION, ids, n);
}

static void put_samples(struct writer *w)
{
	const uint64_t seed = sp_export_seed(w->profile);
	const uint32_t bytes = own_string(w, "bytes");
	uint64_t values[TYPES_MAX];

	for (size_t i = 0; i < w->n_rows && !w->failed; i++) {
		const struct sp_row *row = &w->rows[i];
		uint64_t hash = sp_hash_word(seed, row->stack);
		size_t n;

		hash = sp_hash_word(hash, row->size_bytes);
		n = values_of(w, row, hash, values);
		put_locations_of(w, row);
		sp_proto_packed(&w->inner, SAMPLE_VALUE, values, n);
		if (row->size_bytes) {
			sp_proto_uint(&w->innermost, LABEL_KEY, bytes);
			sp_proto_uint(&w->innermost, LABEL_NUM,
				      (uint64_t)limited_value(row->size_bytes));
			sp_proto_uint(&w->innermost, LABEL_UNIT, bytes);
			sp_proto_message(&w->inner, SAMPLE_LABEL,
					 &w->innermost);
		}
		sp_proto_message(&w->out, PROFILE_SAMPLE, &w->inner);
	}
}

/* ---- mappings, locations, functions ---- */

/* The place of the location with that number, from 0. */
static struct place place_of(const struct writer *w, uint32_t number)
{
	return *SP_INTERN_AT(&w->places, number, struct place);
}

static struct sp_symbols symbols_of(const struct writer *w, struct place place)
{
	static const struct sp_symbol pseudo[] = {
		[PSEUDO_NO_STACK] = {.function = SP_LABEL_NO_STACK},
		[PSEUDO_OTHER] = {.function = "[other]"},
	};

	if (place.module == PSEUDO_MODULE)
		return (struct sp_symbols){&pseudo[place.offset], 1};
	return sp_aggregate_symbols(
		w->aggregate,
		(struct sp_frame){(uint32_t)place.module, place.offset});
}

/* NULL if the place is in no module. */
static const struct sp_module *module_of(const struct writer *w,
					 struct place place)
{
	return place.module == PSEUDO_MODULE
		       ? NULL
		       : sp_profile_module(w->profile, (uint32_t)place.module);
}

static struct mapping *mapping_of(const struct writer *w, struct place place)
{
	const struct sp_module *module = module_of(w, place);

	return module ? &w->mappings[module - w->profile->modules] : NULL;
}

/* Which modules have frames, and how much is known about the frames. */
static void survey_mappings(struct writer *w)
{
	for (uint32_t i = 0; i < w->places.n_entries; i++) {
		const struct place place = place_of(w, i);
		const struct sp_symbols s = symbols_of(w, place);
		struct mapping *m = mapping_of(w, place);

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

static void put_mapping(struct writer *w, const struct sp_module *module)
{
	const struct mapping *m = &w->mappings[module - w->profile->modules];
	const char *path = module->path;
	char build_id[2 * SP_FORMAT_BUILD_ID_MAX + 1] = "";

	if (module->is_main && !*path)
		path = w->profile->program;
	for (uint32_t i = 0;
	     i < module->build_id_len && i < SP_FORMAT_BUILD_ID_MAX; i++)
		snprintf(build_id + (size_t)2 * i, 3, "%02x",
			 module->build_id[i]);
	sp_proto_uint(&w->inner, MAPPING_ID, m->id);
	sp_proto_uint(&w->inner, MAPPING_START, module->start_pc);
	sp_proto_uint(&w->inner, MAPPING_LIMIT, module->end_pc);
	sp_proto_uint(&w->inner, MAPPING_FILE, untrusted_string(w, path));
	sp_proto_uint(&w->inner, MAPPING_BUILD_ID, own_string(w, build_id));
	sp_proto_uint(&w->inner, MAPPING_HAS_FUNCTIONS, m->has_functions);
	sp_proto_uint(&w->inner, MAPPING_HAS_FILES, m->has_files);
	sp_proto_uint(&w->inner, MAPPING_HAS_LINES, m->has_lines);
	sp_proto_uint(&w->inner, MAPPING_HAS_INLINES, m->has_inlines);
	sp_proto_message(&w->out, PROFILE_MAPPING, &w->inner);
}

/* The program first, by which readers name the profile. */
static void put_mappings(struct writer *w)
{
	const struct sp_profile *p = w->profile;
	uint64_t last_id = 0;

	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < p->n_modules; i++) {
			const struct sp_module *module = &p->modules[i];

			if (module->is_main != !round ||
			    (!module->is_main && !w->mappings[i].id))
				continue;
			w->mappings[i].id = ++last_id;
			put_mapping(w, module);
		}
}

/* The address of the call; the recorded one is the return address. */
static uint64_t address_of(const struct writer *w, struct place place)
{
	const struct sp_module *module = module_of(w, place);

	if (place.module == PSEUDO_MODULE)
		return 0;
	return (module ? module->start_pc : 0) + place.offset -
	       (place.offset != 0);
}

static void put_line(struct writer *w, const struct sp_symbol *symbol)
{
	const uint32_t key[2] = {
		untrusted_string(w, sp_aggregate_name(w->aggregate, symbol)),
		symbol->file ? untrusted_string(w, symbol->file) : 0,
	};
	const uint32_t number =
		intern_bytes(w, &w->functions, key, sizeof(key));

	sp_proto_uint(&w->innermost, LINE_FUNCTION, 1 + (uint64_t)number);
	sp_proto_uint(&w->innermost, LINE_LINE, symbol->line);
	sp_proto_message(&w->inner, LOCATION_LINE, &w->innermost);
}

static void put_locations(struct writer *w)
{
	for (uint32_t i = 0; i < w->places.n_entries && !w->failed; i++) {
		const struct place place = place_of(w, i);
		const struct mapping *m = mapping_of(w, place);

		sp_proto_uint(&w->inner, LOCATION_ID, 1 + (uint64_t)i);
		sp_proto_uint(&w->inner, LOCATION_MAPPING, m ? m->id : 0);
		sp_proto_uint(&w->inner, LOCATION_ADDRESS,
			      address_of(w, place));
		if (!m || m->has_functions) {
			const struct sp_symbols s = symbols_of(w, place);

			for (size_t k = 0; k < s.count; k++)
				put_line(w, &s.symbol[k]);
		}
		sp_proto_message(&w->out, PROFILE_LOCATION, &w->inner);
	}
}

static void put_functions(struct writer *w)
{
	for (uint32_t i = 0; i < w->functions.n_entries; i++) {
		const uint32_t *key = SP_INTERN_AT(&w->functions, i, uint32_t);

		sp_proto_uint(&w->inner, FUNCTION_ID, 1 + (uint64_t)i);
		sp_proto_uint(&w->inner, FUNCTION_NAME, key[0]);
		sp_proto_uint(&w->inner, FUNCTION_FILE, key[1]);
		sp_proto_message(&w->out, PROFILE_FUNCTION, &w->inner);
	}
}

/* ---- the rest ---- */

static void print_comments(const struct writer *w, FILE *out)
{
	const struct sp_analysis *a = w->aggregate->analysis;
	const struct sp_whole whole = sp_whole_of(w->profile);

	fputs("command: ", out);
	sp_text_print(out, w->profile->command);
	fprintf(out,
		"\n%s%" PRIu64 " bytes in %" PRIu64
		" allocations of the process\nview %s: ",
		sp_profile_is_exact(w->profile) ? "exact: "
						: "counted: at least ",
		w->profile->exact_alloc_bytes, w->profile->exact_alloc_objects,
		sp_view_name(a->selection.view));
	sp_text_print_estimate(out, sp_estimate_bytes(&a->how, &a->view->all),
			       a->view->all.all.samples, a->how.confidence);
	fprintf(out, ", %" PRIu64 " samples\n", a->view->all.all.samples);
	if (!sp_whole_is_all(&whole)) {
		fputs("incomplete: ", out);
		sp_lack_print(out, &whole);
		putc('\n', out);
	}
	if (!w->profile->has_frees)
		fputs("frees were not recorded: nothing is known of what is in "
		      "use\n",
		      out);
	if (w->n_folded)
		fprintf(out, "[other] stands for %zu call stacks\n",
			w->n_folded);
}

static void put_comments(struct writer *w)
{
	uint64_t numbers[8];
	char *text = NULL, *rest, *line;
	size_t n = 0, size;
	FILE *out = open_memstream(&text, &size);

	if (out)
		print_comments(w, out);
	if (!out || fclose(out) != 0) {
		w->failed = true;
		free(text);
		return;
	}
	rest = text;
	while ((line = strsep(&rest, "\n")) && *line && n < 8)
		numbers[n++] = own_string(w, line);
	sp_proto_packed(&w->out, PROFILE_COMMENT, numbers, n);
	free(text);
}

static void put_strings(struct writer *w)
{
	for (uint32_t i = 0; i < w->strings.n_entries; i++)
		sp_proto_bytes(&w->out, PROFILE_STRING,
			       sp_intern_bytes(&w->strings, i),
			       w->strings.entries[i].length);
}

static void put_profile(struct writer *w)
{
	const struct sp_export_part *part = w->options->part;
	const struct sp_profile *p = w->profile;

	own_string(w, ""); /* number 0 has to be that */
	put_types(w);
	put_samples(w);
	survey_mappings(w);
	put_mappings(w);
	put_locations(w);
	put_functions(w);
	sp_proto_uint(&w->out, PROFILE_DROP_FRAMES, own_string(w, drop_frames));
	sp_proto_uint(&w->out, PROFILE_TIME_NANOS,
		      (uint64_t)limited_value(part ? part->start_unix_ns
						   : p->start_unix_ns));
	sp_proto_uint(&w->out, PROFILE_DURATION_NANOS,
		      (uint64_t)limited_value(part ? part->duration_ns
						   : p->duration_ns));
	put_comments(w);
	put_strings(w);
}

/* Merge sizes, so that a stack is the same row in each part. */
static void choose_rows(struct writer *w)
{
	const struct sp_export_part *part = w->options->part;
	size_t n_stacks = 0;

	for (size_t i = 0; i < w->n_rows; i++)
		n_stacks += !i || w->rows[i].stack != w->rows[i - 1].stack;
	if (n_stacks)
		sp_rows_fold(w->rows, &w->n_rows, n_stacks, false);
	w->n_rows = part->choose(part->arg, w->profile, w->rows, w->n_rows);
	w->failed = w->n_rows == SIZE_MAX;
}

int sp_export_pprof_write(FILE *out, const struct sp_aggregate *aggregate,
			  const struct sp_export_options *options,
			  struct sp_error *err)
{
	const struct sp_analysis *a = aggregate->analysis;
	const enum sp_view view = a->selection.view;
	struct writer w = {
		.aggregate = aggregate,
		.profile = a->profile,
		.options = options,
		.is_of_inuse = view == SP_VIEW_LIVE || view == SP_VIEW_PEAK ||
			       view == SP_VIEW_LEAKS,
	};
	int r = sp_rows_new(a, &w.rows, &w.n_rows, err);

	if (r < 0)
		return r;
	w.mappings = calloc(w.profile->n_modules + 1, sizeof(*w.mappings));
	w.failed = !w.mappings;
	if (!w.failed && options->part)
		choose_rows(&w);
	if (!w.failed) {
		w.n_folded = sp_rows_fold(w.rows, &w.n_rows,
					  options->max_samples, w.is_of_inuse);
		w.value_max = INT64_MAX / (int64_t)(w.n_rows + 1);
		put_profile(&w);
	}
	r = w.failed ? -ENOMEM : sp_proto_write_gzip(out, &w.out);
	if (r < 0)
		sp_error_memory(err, w.profile->path);
	free(w.rows);
	free(w.mappings);
	sp_intern_done(&w.strings);
	sp_intern_done(&w.places);
	sp_intern_done(&w.functions);
	sp_proto_done(&w.out);
	sp_proto_done(&w.inner);
	sp_proto_done(&w.innermost);
	return r;
}
