/* SPDX-License-Identifier: MIT */
#include "report/export.h"

#include <string.h>

#include "base/hash.h"
#include "profile/merge.h"
#include "report/answer.h"
#include "report/export_collapsed.h"
#include "report/export_csv.h"
#include "report/export_dhat.h"
#include "report/export_heap_v2.h"
#include "report/export_html.h"
#include "report/export_json.h"
#include "report/export_jsonl.h"
#include "report/export_massif.h"
#include "report/export_pprof.h"
#include "report/export_speedscope.h"
#include "report/options.h"

static int write_json(FILE *out, const struct sp_aggregate *aggregate,
		      const struct sp_export_options *options,
		      struct sp_error *err)
{
	(void)options;
	return sp_export_json_write(out, aggregate, err);
}

static int write_csv(FILE *out, const struct sp_aggregate *aggregate,
		     const struct sp_export_options *options,
		     struct sp_error *err)
{
	(void)options;
	(void)err;
	sp_export_csv_functions(out, aggregate, 0);
	return 0;
}

const struct sp_export_format sp_export_formats[] = {
	{"pprof", "profile.proto, gzip: go tool pprof, Parca, Pyroscope", true,
	 SP_EXPORT_KNOWS_PPROF, sp_export_pprof_write},
	{"speedscope", "speedscope's JSON: alloc and live, inlines kept", false,
	 0, sp_export_speedscope_write},
	{"collapsed", "one line per stack: flamegraph.pl, inferno", false,
	 SP_EXPORT_KNOWS_METRIC, sp_export_collapsed_write},
	{"dhat", "DHAT's JSON: dh_view.html, the Firefox Profiler", false, 0,
	 sp_export_dhat_write},
	{"massif", "Massif's text, live bytes over time: ms_print", false, 0,
	 sp_export_massif_write},
	{"heap_v2", "samples as text: jeprof, google-pprof, go tool pprof",
	 false, 0, sp_export_heap_v2_write},
	{"html", "a page for a browser: flame graph, timeline, tables", false,
	 SP_EXPORT_KNOWS_BASE, sp_export_html_write},
	{"json", "everything, as --json", false, 0, write_json},
	{"csv", "functions, as --csv", false, 0, write_csv},
	{"jsonl", "a line for each sample, for statistics of your own", false,
	 0, sp_export_jsonl_write},
	{0},
};

const struct sp_export_format *sp_export_find(const char *name)
{
	for (const struct sp_export_format *f = sp_export_formats; f->name; f++)
		if (strcmp(f->name, name) == 0)
			return f;
	return NULL;
}

/* What was asked for, of one side. */
struct side {
	struct sp_answer answer;
	struct sp_aggregate *aggregate; /* NULL until it is there */
};

static int side_init(struct side *side, const struct sp_profile *profile,
		     const struct sp_options *options, sp_progress_fn *progress,
		     void *progress_arg, struct sp_error *err)
{
	int r;

	*side = (struct side){.answer = {.profile = profile,
					 .question = &options->question,
					 .symbols = &options->symbols,
					 .progress = progress,
					 .progress_arg = progress_arg}};
	r = sp_answer_analyse(&side->answer, SP_VIEW_ALLOC, err);
	return r < 0 ? r
		     : sp_answer_aggregate(&side->answer, SP_BY_FUNCTION,
					   &side->aggregate, err);
}

static void side_done(struct side *side)
{
	if (side->aggregate)
		sp_aggregate_free(side->aggregate);
	sp_answer_done(&side->answer);
}

/* With what --base says, which goes before the caller could tell the error:
 * the error is made to name the file as it was given. */
static int write_with_base(FILE *out, const struct sp_aggregate *aggregate,
			   const struct sp_options *options,
			   sp_progress_fn *progress, void *progress_arg,
			   struct sp_error *err)
{
	struct sp_export_options export = options->export;
	struct sp_profile *profile;
	struct side base;
	int r = sp_profile_load_many(export.base_files, export.n_base_files,
				     progress, progress_arg, &profile, err);

	if (r < 0)
		return r;
	r = side_init(&base, profile, options, progress, progress_arg, err);
	if (r < 0) {
		err->file = export.base_files[0];
	} else {
		export.base = base.aggregate;
		r = options->format->write(out, aggregate, &export, err);
		if (r < 0 && err->file == profile->path)
			err->file = export.base_files[0];
	}
	side_done(&base);
	sp_profile_free(profile);
	return r;
}

int sp_export_write(FILE *out, const struct sp_profile *profile,
		    const struct sp_options *options, sp_progress_fn *progress,
		    void *progress_arg, struct sp_error *err)
{
	struct side side;
	int r = side_init(&side, profile, options, progress, progress_arg, err);

	if (r >= 0 && options->export.n_base_files)
		r = write_with_base(out, side.aggregate, options, progress,
				    progress_arg, err);
	else if (r >= 0)
		r = options->format->write(out, side.aggregate,
					   &options->export, err);
	side_done(&side);
	return r;
}

int64_t sp_export_round(double value, uint64_t hash, int64_t max)
{
	const double uniform = (double)(hash >> 11) * 0x1p-53; /* in [0, 1) */
	int64_t whole;

	if (!(value < (double)max))
		return max;
	whole = (int64_t)value;
	return whole + (uniform < value - (double)whole);
}

uint64_t sp_export_seed(const struct sp_profile *profile)
{
	uint64_t h = sp_hash_word(profile->seed, profile->pid);

	return sp_hash_word(h, profile->start_unix_ns);
}
