/* SPDX-License-Identifier: MIT */
#include "export/export.h"

#include <assert.h>
#include <string.h>

#include "export/format.h"
#include "export/html_cells.h"
#include "read/load.h"
#include "report/answer.h"
#include "report/load.h"
#include "view/view.h"
#include "view/view_json_frames.h"

static_assert(SP_HTML_BINS_MAX + 1 <= SP_LOAD_POINTS_MAX,
	      "the page asks for no more parts of the run than can be told");

static int write_json(FILE *out, const struct sp_aggregate *aggregate,
		      const struct sp_export_options *options,
		      struct sp_error *err)
{
	(void)options;
	return sp_view_json_write(out, aggregate, SP_VIEW_JSON_VERSION, err);
}

static int write_csv(FILE *out, const struct sp_aggregate *aggregate,
		     const struct sp_export_options *options,
		     struct sp_error *err)
{
	(void)options;
	(void)err;
	sp_view_csv_functions(out, aggregate, 0);
	return 0;
}

const struct sp_export_format sp_export_formats[] = {
	{"pprof",
	 "profile.proto, gzip: go tool pprof, Parca, Pyroscope",
	 true,
	 SP_EXPORT_KNOWS_PPROF | SP_EXPORT_KNOWS_OTHERS |
		 SP_EXPORT_KNOWS_MAPPED | SP_EXPORT_KNOWS_RESIDENT,
	 sp_export_pprof_write,
	 {0}},
	{"otlp",
	 "OpenTelemetry's profiles.proto: collectors, Pyroscope",
	 true,
	 SP_EXPORT_KNOWS_PPROF | SP_EXPORT_KNOWS_OTHERS |
		 SP_EXPORT_KNOWS_MAPPED | SP_EXPORT_KNOWS_RESIDENT,
	 sp_export_otlp_write,
	 {0}},
	{"otlp_json",
	 "the same as OTLP's JSON, on one line",
	 false,
	 SP_EXPORT_KNOWS_PPROF | SP_EXPORT_KNOWS_OTHERS |
		 SP_EXPORT_KNOWS_MAPPED | SP_EXPORT_KNOWS_RESIDENT,
	 sp_export_otlp_json_write,
	 {0}},
	{"speedscope",
	 "speedscope's JSON: alloc and live, inlines kept",
	 false,
	 SP_EXPORT_KNOWS_OTHERS | SP_EXPORT_KNOWS_MAPPED |
		 SP_EXPORT_KNOWS_RESIDENT,
	 sp_export_speedscope_write,
	 {0}},
	{"collapsed",
	 "one line per stack: flamegraph.pl, inferno",
	 false,
	 SP_EXPORT_KNOWS_METRIC | SP_EXPORT_KNOWS_MAPPED |
		 SP_EXPORT_KNOWS_RESIDENT,
	 sp_export_collapsed_write,
	 {0}},
	{"dhat",
	 "DHAT's JSON: dh_view.html, the Firefox Profiler",
	 false,
	 SP_EXPORT_KNOWS_OTHERS,
	 sp_export_dhat_write,
	 {0}},
	{"massif",
	 "Massif's text, live bytes over time: ms_print",
	 false,
	 SP_EXPORT_KNOWS_OTHERS,
	 sp_export_massif_write,
	 {.peak = true, .n_points = SP_EXPORT_MASSIF_POINTS}},
	{"heap_v2",
	 "samples as text: jeprof, google-pprof, go tool pprof",
	 false,
	 0,
	 sp_export_heap_v2_write,
	 {0}},
	{"html",
	 "a page for a browser: flame graph, timeline, tables",
	 false,
	 SP_EXPORT_KNOWS_BASE | SP_EXPORT_KNOWS_OTHERS,
	 sp_export_html_write,
	 {.parts = true, .n_points = SP_HTML_BINS_MAX + 1}},
	{"json",
	 "everything, as --json",
	 false,
	 SP_EXPORT_KNOWS_MAPPED | SP_EXPORT_KNOWS_RESIDENT,
	 write_json,
	 {.lifetimes = true, .n_points = SP_VIEW_TIMELINE_POINTS}},
	{"csv",
	 "functions, as --csv",
	 false,
	 SP_EXPORT_KNOWS_MAPPED | SP_EXPORT_KNOWS_RESIDENT,
	 write_csv,
	 {0}},
	{"jsonl",
	 "a line for each sample, for statistics of your own",
	 false,
	 SP_EXPORT_KNOWS_OTHERS | SP_EXPORT_KNOWS_MAPPED |
		 SP_EXPORT_KNOWS_RESIDENT,
	 sp_export_jsonl_write,
	 {0}},
	{0},
};

const struct sp_export_format *sp_export_find(const char *name)
{
	for (const struct sp_export_format *f = sp_export_formats; f->name; f++)
		if (strcmp(f->name, name) == 0)
			return f;
	return NULL;
}

/* Answer the request for one side. */
struct side {
	struct sp_answer answer;
	struct sp_aggregate *aggregate; /* NULL until it is there */
};

static int side_init(struct side *side, const struct sp_profile *profile,
		     const struct sp_export_request *request,
		     sp_progress_fn *progress, void *progress_arg,
		     struct sp_error *err)
{
	int r;

	*side = (struct side){.answer = {.profile = profile,
					 .question = &request->question,
					 .symbols = &request->symbols,
					 .progress = progress,
					 .progress_arg = progress_arg}};
	r = sp_answer_analyse(&side->answer, SP_VIEW_ALLOC, err);
	if (r >= 0)
		r = sp_answer_aggregate(&side->answer, SP_BY_FUNCTION,
					&side->aggregate, err);
	if (r >= 0 && (request->format->knows & SP_EXPORT_KNOWS_OTHERS))
		r = sp_aggregate_label_with(side->aggregate, side->aggregate,
					    err);
	return r;
}

static void side_done(struct side *side)
{
	if (side->aggregate)
		sp_aggregate_free(side->aggregate);
	sp_answer_done(&side->answer);
}

/* With --base, the caller cannot see which file has the error, so the error
 * names the file as it was given. */
static int write_with_base(FILE *out, struct sp_aggregate *aggregate,
			   const struct sp_export_request *request,
			   sp_progress_fn *progress, void *progress_arg,
			   struct sp_error *err)
{
	struct sp_export_options how = request->how;
	struct sp_profile *profile;
	struct side base;
	int r = sp_load(how.base_files, how.n_base_files, &request->question,
			&request->format->needs, progress, progress_arg,
			&profile, err);

	if (r < 0)
		return r;
	r = side_init(&base, profile, request, progress, progress_arg, err);
	/* A function has one name on both sides. */
	if (r >= 0)
		r = sp_aggregate_label_with(aggregate, base.aggregate, err);
	if (r >= 0)
		r = sp_aggregate_label_with(base.aggregate, aggregate, err);
	if (r < 0) {
		err->file = how.base_files[0];
	} else {
		how.base = base.aggregate;
		r = request->format->write(out, aggregate, &how, err);
		if (r < 0 && err->file == profile->path)
			err->file = how.base_files[0];
	}
	side_done(&base);
	sp_profile_free(profile);
	return r;
}

int sp_export_write(FILE *out, const struct sp_profile *profile,
		    const struct sp_export_request *request,
		    sp_progress_fn *progress, void *progress_arg,
		    struct sp_error *err)
{
	struct side side;
	int r = side_init(&side, profile, request, progress, progress_arg, err);

	if (r >= 0 && request->how.n_base_files)
		r = write_with_base(out, side.aggregate, request, progress,
				    progress_arg, err);
	else if (r >= 0)
		r = request->format->write(out, side.aggregate, &request->how,
					   err);
	side_done(&side);
	return r;
}
