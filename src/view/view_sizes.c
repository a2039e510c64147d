/* SPDX-License-Identifier: MIT */
#include "view/view.h"

#include <errno.h>
#include <math.h>

#include "text/text.h"

#define BAR_WIDTH           24
#define BAR_WIDTH_ESTIMATED 16

#define ESTIMATE_WIDTH 31

#define ROWS SP_VIEW_SIZES_ROWS

int sp_view_sizes_check(const struct sp_profile *profile, struct sp_error *err)
{
	if (profile->has_classes)
		return 0;
	return sp_error_set(err, -ENODATA, profile->path,
			    "the profile has no exact totals per object size: "
			    "an older version recorded it, or there was no "
			    "room for them in the file; record again, with a "
			    "larger SAMPLEPROF_MAX_FILE if the report lists "
			    "class_totals_not_published");
}

/* Classes end at powers of two, among others, so that each is in one row. */
size_t sp_view_sizes_row(unsigned int class)
{
	const uint64_t max = sp_format_class_max(class);
	size_t row = 0;

	while (row + 1 < ROWS && max > 16ull << row)
		row++;
	return row;
}

struct sp_text_cell sp_view_sizes_row_name(size_t row)
{
	struct sp_text_cell larger = {"larger"};

	return row + 1 < ROWS ? sp_text_size(16ull << row) : larger;
}

struct sizes {
	struct sp_class_total rows[ROWS];
	size_t first;
	size_t end; /* rows with something in them: first..end - 1 */
	struct sp_class_total sum;
	uint64_t most_bytes;
};

static void coarsen_sizes(const struct sp_profile *profile, struct sizes *sizes)
{
	*sizes = (struct sizes){.first = ROWS};
	for (unsigned int i = 0; i < SP_FORMAT_CLASSES; i++) {
		const struct sp_class_total *class = &profile->classes[i];
		size_t at = sp_view_sizes_row(i);
		struct sp_class_total *row = &sizes->rows[at];

		if (!class->objects)
			continue;
		row->bytes += class->bytes;
		row->objects += class->objects;
		sizes->sum.bytes += class->bytes;
		sizes->sum.objects += class->objects;
		if (at < sizes->first)
			sizes->first = at;
		sizes->end = at + 1;
		if (row->bytes > sizes->most_bytes)
			sizes->most_bytes = row->bytes;
	}
}

static void print_bar(FILE *out, double bytes, double most, int width,
		      bool ascii)
{
	double share = most > 0 ? bytes / most : 0;
	int n = (int)(share * width + 0.5);

	if (n)
		fputs("  ", out);
	for (int i = 0; i < n; i++)
		fputs(ascii ? "#" : "\u2588", out);
}

static void print_size_row(FILE *out, const struct sizes *sizes, size_t i,
			   bool ascii)
{
	const struct sp_class_total *row = &sizes->rows[i];

	fprintf(out, "  %10s %14s %6s  %10s %6s",
		sp_view_sizes_row_name(i).text,
		sp_text_count(row->objects).text,
		sp_text_percent((double)row->objects,
				(double)sizes->sum.objects)
			.text,
		sp_text_bytes((double)row->bytes).text,
		sp_text_percent((double)row->bytes, (double)sizes->sum.bytes)
			.text);
	print_bar(out, (double)row->bytes, (double)sizes->most_bytes, BAR_WIDTH,
		  ascii);
	putc('\n', out);
}

static const struct {
	double share;
	const char *text;
} shares[] = {{0.5, "half"}, {0.9, "90 %"}, {0.99, "99 %"}};

#define N_SHARES (sizeof(shares) / sizeof(shares[0]))

static void print_percentiles(FILE *out, const struct sp_profile *profile,
			      bool of_bytes)
{
	fputs(of_bytes ? "  of the bytes  " : "  of the objects", out);
	for (size_t i = 0; i < N_SHARES; i++) {
		uint64_t size = sp_analysis_size_percentile(profile, of_bytes,
							    shares[i].share);

		fprintf(out, "%s %s at most %s", i ? "," : "", shares[i].text,
			sp_text_size(size).text);
	}
	putc('\n', out);
}

void sp_view_sizes_print(FILE *out, const struct sp_profile *profile,
			 bool ascii)
{
	struct sizes sizes;

	coarsen_sizes(profile, &sizes);
	fprintf(out,
		"\n%s by object size (--sizes --csv has every "
		"class):\n\n",
		sp_profile_is_exact(profile) ? "Exact totals"
					     : "Lower limits of the totals");
	fprintf(out, "  %10s %14s %6s  %10s %6s\n", "size up to", "objects",
		"%", "bytes", "%");
	for (size_t i = sizes.first; i < sizes.end; i++)
		print_size_row(out, &sizes, i, ascii);
	fprintf(out, "  %10s %14s %6s  %10s\n", "all",
		sp_text_count(sizes.sum.objects).text, "",
		sp_text_bytes((double)sizes.sum.bytes).text);
	if (sizes.sum.objects) {
		putc('\n', out);
		print_percentiles(out, profile, false);
		print_percentiles(out, profile, true);
	}
	if (profile->class_slack_bytes)
		fprintf(out,
			"  up to %s is missing: threads had not published it "
			"when the file ended\n",
			sp_text_bytes_beyond((double)profile->class_slack_bytes,
					     true)
				.text);
}

/* ---- of a part: estimated ---- */

struct estimated_row {
	struct sp_interval bytes;
	uint64_t samples;
};

struct estimated {
	struct estimated_row rows[ROWS];
	size_t first;
	size_t end; /* rows that may have something: first..end - 1 */
	double most_bytes;
	bool has_few;
	bool has_bound;
};

static void estimate_sizes(const struct sp_analysis *a, struct estimated *e)
{
	const struct sp_class_total *totals = a->profile->classes;
	unsigned int next;

	*e = (struct estimated){.first = ROWS};
	for (unsigned int i = 0; i < SP_FORMAT_CLASSES; i = next) {
		const size_t at = sp_view_sizes_row(i);
		struct estimated_row *row = &e->rows[at];
		bool is_there = false;

		for (next = i;
		     next < SP_FORMAT_CLASSES && sp_view_sizes_row(next) == at;
		     next++)
			is_there |= totals[next].objects &&
				    sp_analysis_may_have_size(a, next);
		row->bytes =
			sp_analysis_size_bytes(a, i, next - 1, &row->samples);
		if (!is_there && !row->samples)
			continue;
		if (at < e->first)
			e->first = at;
		e->end = at + 1;
		if (row->bytes.value > e->most_bytes)
			e->most_bytes = row->bytes.value;
	}
}

static void print_estimated(FILE *out, const char *name,
			    const struct estimated_row *row, double whole,
			    struct estimated *e)
{
	struct sp_text_estimate text =
		sp_text_estimate(row->bytes, row->samples);

	e->has_few |= text.order == SP_TEXT_INTERVAL_FIRST;
	e->has_bound |= text.order == SP_TEXT_BOUND;
	fprintf(out, "  %10s %*s %6s", name, ESTIMATE_WIDTH,
		sp_text_estimate_cell(row->bytes, row->samples).text,
		sp_text_percent(row->bytes.value, whole).text);
}

static struct sp_text_cell size_text(double size)
{
	struct sp_text_cell unlimited = {"any size"};

	return isinf(size) ? unlimited : sp_text_size((uint64_t)size);
}

static void print_estimated_percentiles(FILE *out, const struct sp_analysis *a)
{
	const bool is_exact = sp_analysis_is_every(a);
	struct sp_interval size;

	fprintf(out, "\n  of the bytes, estimated\n");
	for (size_t i = 0; i < N_SHARES; i++) {
		if (!sp_analysis_view_percentile(a, shares[i].share, &size))
			return;
		fprintf(out, "    %s at most %10s  ", shares[i].text,
			size_text(size.value).text);
		if (is_exact)
			fputs("exact\n", out);
		else
			fprintf(out, "[%s, %s]\n", size_text(size.lo).text,
				size_text(size.hi).text);
	}
}

void sp_view_sizes_print_estimated(FILE *out,
				   const struct sp_analysis *analysis,
				   bool ascii)
{
	const double confidence = analysis->how.confidence;
	const struct sp_class_sums *view = &analysis->view->all;
	const struct estimated_row all = {
		sp_estimate_bytes(&analysis->how, view), view->all.samples};
	struct estimated e;

	estimate_sizes(analysis, &e);
	fputs("\nEstimated bytes by object size in this view (--sizes --csv "
	      "has "
	      "every class;\n--sizes alone: the totals of all that was "
	      "allocated):\n\n",
	      out);
	fprintf(out, "  %10s %*s %6s\n", "size up to", ESTIMATE_WIDTH, "bytes",
		"%");
	for (size_t i = e.first; i < e.end; i++) {
		print_estimated(out, sp_view_sizes_row_name(i).text, &e.rows[i],
				all.bytes.value, &e);
		print_bar(out, e.rows[i].bytes.value, e.most_bytes,
			  BAR_WIDTH_ESTIMATED, ascii);
		putc('\n', out);
	}
	print_estimated(out, "all", &all, all.bytes.value, &e);
	putc('\n', out);
	sp_text_print_legend(out, e.has_few, e.has_bound, confidence);
	if (view->n_classes)
		print_estimated_percentiles(out, analysis);
}
