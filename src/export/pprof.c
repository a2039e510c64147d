/* SPDX-License-Identifier: MIT */
#include "export/format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/code.h"
#include "export/proto.h"
#include "export/rows.h"
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
	MAPPING_BUILD_ID = 6,
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

struct writer {
	const struct sp_profile *profile;
	const struct sp_export_options *options;
	const struct sp_export_rows *rows;
	struct sp_code code;
	struct sp_proto out;
	struct sp_proto inner;     /* a message of `out` */
	struct sp_proto innermost; /* a message of that */
};

static int64_t limited_value(uint64_t value)
{
	return value < INT64_MAX ? (int64_t)value : INT64_MAX;
}

/* ---- sample types ---- */

static void put_type(struct writer *w, unsigned int field, const char *type,
		     const char *unit)
{
	sp_proto_uint(&w->inner, VALUE_TYPE, sp_code_string(&w->code, type));
	sp_proto_uint(&w->inner, VALUE_UNIT, sp_code_string(&w->code, unit));
	sp_proto_message(&w->out, field, &w->inner);
}

static void put_types(struct writer *w)
{
	const struct sp_export_rows *rows = w->rows;

	for (size_t i = 0; i < rows->n_types; i++)
		put_type(w, PROFILE_SAMPLE_TYPE, rows->types[i].name,
			 rows->types[i].unit);
	put_type(w, PROFILE_PERIOD_TYPE, "space", "bytes");
	sp_proto_uint(&w->out, PROFILE_PERIOD,
		      (uint64_t)limited_value(w->profile->period_bytes));
	sp_proto_uint(&w->out, PROFILE_DEFAULT_TYPE,
		      sp_code_string(&w->code, rows->is_of_inuse
						       ? "inuse_space"
						       : "alloc_space"));
}

/* ---- samples ---- */

static void put_samples(struct writer *w)
{
	const uint32_t bytes = sp_code_string(&w->code, "bytes");
	uint64_t values[SP_ROW_TYPES_MAX], ids[SP_FORMAT_FRAMES_MAX];

	for (size_t i = 0; i < w->rows->n_rows && !w->code.failed; i++) {
		const struct sp_row *row = &w->rows->rows[i];

		sp_proto_packed(&w->inner, SAMPLE_LOCATION, ids,
				sp_code_locations(&w->code, row->stack, ids));
		sp_export_rows_values(w->rows, i, values);
		sp_proto_packed(&w->inner, SAMPLE_VALUE, values,
				w->rows->n_types);
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

/* ---- the rest ---- */

static void print_comments(const struct writer *w, FILE *out)
{
	const struct sp_analysis *a = w->code.aggregate->analysis;
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
	if (w->rows->n_folded)
		fprintf(out, "[other] stands for %zu call stacks\n",
			w->rows->n_folded);
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
		w->code.failed = true;
		free(text);
		return;
	}
	rest = text;
	while ((line = strsep(&rest, "\n")) && *line && n < 8)
		numbers[n++] = sp_code_string(&w->code, line);
	sp_proto_packed(&w->out, PROFILE_COMMENT, numbers, n);
	free(text);
}

static void put_build_id(void *arg, struct sp_proto *mapping,
			 const char *build_id)
{
	struct writer *w = arg;

	sp_proto_uint(mapping, MAPPING_BUILD_ID,
		      sp_code_string(&w->code, build_id));
}

static void put_profile(struct writer *w)
{
	const struct sp_code_dialect dialect = {
		.mapping = PROFILE_MAPPING,
		.location = PROFILE_LOCATION,
		.function = PROFILE_FUNCTION,
		.string = PROFILE_STRING,
		.has_ids = true,
		.put_build_id = put_build_id,
		.arg = w,
	};
	const struct sp_export_part *part = w->options->part;
	const struct sp_profile *p = w->profile;

	put_types(w);
	put_samples(w);
	sp_code_write(&w->code, &w->out, &dialect);
	sp_proto_uint(&w->out, PROFILE_DROP_FRAMES,
		      sp_code_string(&w->code, drop_frames));
	sp_proto_uint(&w->out, PROFILE_TIME_NANOS,
		      (uint64_t)limited_value(part ? part->start_unix_ns
						   : p->start_unix_ns));
	sp_proto_uint(&w->out, PROFILE_DURATION_NANOS,
		      (uint64_t)limited_value(part ? part->duration_ns
						   : p->duration_ns));
	put_comments(w);
	sp_code_write_strings(&w->code, &w->out, &dialect);
}

int sp_export_pprof_write(FILE *out, const struct sp_aggregate *aggregate,
			  const struct sp_export_options *options,
			  struct sp_error *err)
{
	struct sp_export_rows rows;
	struct writer w = {
		.profile = aggregate->analysis->profile,
		.options = options,
		.rows = &rows,
	};
	int r = sp_export_rows_new(aggregate->analysis, options, &rows, err);

	if (r < 0)
		return r;
	r = sp_code_init(&w.code, aggregate);
	if (r >= 0) {
		put_profile(&w);
		r = w.code.failed ? -ENOMEM : sp_proto_write_gzip(out, &w.out);
	}
	if (r < 0)
		sp_error_memory(err, w.profile->path);
	free(rows.rows);
	sp_code_done(&w.code);
	sp_proto_done(&w.out);
	sp_proto_done(&w.inner);
	sp_proto_done(&w.innermost);
	return r;
}
