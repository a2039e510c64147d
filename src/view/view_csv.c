/* SPDX-License-Identifier: MIT */
#include "view/view.h"

#include <inttypes.h>
#include <stdlib.h>

#include "stats/timeline.h"
#include "text/table.h"

void sp_view_csv_function(FILE *out, const struct sp_aggregate *g,
			  const struct sp_aggregate_function *f)
{
	const struct sp_estimation *how = &g->how;

	sp_table_csv_text(out, f->name);
	putc(',', out);
	sp_table_csv_text(out, f->module);
	putc(',', out);
	sp_table_csv_text(out, f->file ? f->file : "");
	putc(',', out);
	if (f->line)
		fprintf(out, "%" PRIu32, f->line);
	sp_table_csv_interval(out, sp_estimate_bytes(how, &f->flat));
	fprintf(out, ",%" PRIu64, f->flat.all.samples);
	sp_table_csv_interval(out, sp_estimate_bytes(how, &f->cum));
	fprintf(out, ",%" PRIu64, f->cum.all.samples);
	sp_table_csv_interval(out, sp_estimate_objects(how, &f->flat));
	if (g->analysis->live)
		sp_table_csv_interval(out, sp_estimate_bytes(how, &f->live));
	else
		fputs(",,,", out);
	putc('\n', out);
}

void sp_view_csv_functions_head(FILE *out)
{
	fputs("function,module,file,line,"
	      "flat_bytes,flat_bytes_lo,flat_bytes_hi,flat_samples,"
	      "cum_bytes,cum_bytes_lo,cum_bytes_hi,cum_samples,"
	      "flat_objects,flat_objects_lo,flat_objects_hi,"
	      "live_bytes,live_bytes_lo,live_bytes_hi\n",
	      out);
}

void sp_view_csv_functions(FILE *out, const struct sp_aggregate *aggregate,
			   size_t n_max)
{
	size_t n = aggregate->n_functions;

	if (n_max && n_max < n)
		n = n_max;
	sp_view_csv_functions_head(out);
	for (size_t i = 0; i < n; i++)
		sp_view_csv_function(out, aggregate, &aggregate->functions[i]);
}

int sp_view_csv_timeline(FILE *out, const struct sp_analysis *analysis,
			 struct sp_error *err)
{
	const struct sp_profile *p = analysis->profile;
	const size_t n = SP_VIEW_TIMELINE_POINTS;
	struct sp_timeline_point *points = calloc(n, sizeof(*points));
	uint64_t rss;
	int r;

	if (!points)
		return sp_error_memory(err, p->path);
	r = sp_timeline(p, &analysis->selection, &analysis->how, points, n,
			err);
	if (r < 0) {
		free(points);
		return r;
	}
	fputs("time_ns,live_bytes,live_bytes_lo,live_bytes_hi,"
	      "live_objects,live_objects_lo,live_objects_hi,samples,"
	      "rss_bytes\n",
	      out);
	for (size_t i = 0; i < n; i++) {
		fprintf(out, "%" PRIu64, points[i].time_ns);
		sp_table_csv_interval(out, points[i].live_bytes);
		sp_table_csv_interval(out, points[i].live_objects);
		fprintf(out, ",%" PRIu64 ",", points[i].samples);
		if (sp_analysis_rss_at(p, points[i].time_ns, &rss))
			fprintf(out, "%" PRIu64, rss);
		putc('\n', out);
	}
	free(points);
	return 0;
}

void sp_view_csv_sizes(FILE *out, const struct sp_profile *profile)
{
	fputs("max_bytes,alloc_bytes,alloc_objects\n", out);
	for (unsigned int i = 0; i < SP_FORMAT_CLASSES; i++) {
		const struct sp_class_total *class = &profile->classes[i];
		const uint64_t max = sp_format_class_max(i);

		if (!class->objects)
			continue;
		if (max != UINT64_MAX)
			fprintf(out, "%" PRIu64, max);
		fprintf(out, ",%" PRIu64 ",%" PRIu64 "\n", class->bytes,
			class->objects);
	}
}

void sp_view_csv_sizes_estimated(FILE *out, const struct sp_analysis *analysis)
{
	const struct sp_class_sums *all = &analysis->view->all;

	fputs("max_bytes,view_bytes,view_bytes_lo,view_bytes_hi,samples\n",
	      out);
	for (uint32_t i = 0; i < all->n_classes; i++) {
		const uint32_t class = all->classes[i].class;
		const uint64_t max = sp_format_class_max(class);
		uint64_t samples;

		if (max != UINT64_MAX)
			fprintf(out, "%" PRIu64, max);
		sp_table_csv_interval(out,
				      sp_analysis_size_bytes(analysis, class,
							     class, &samples));
		fprintf(out, ",%" PRIu64 "\n", samples);
	}
}
