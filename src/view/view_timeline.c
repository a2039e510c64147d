/* SPDX-License-Identifier: MIT */
#include "view/view.h"

#include <math.h>
#include <string.h>

#include "stats/timeline.h"
#include "text/text.h"

#define COLUMNS     SP_VIEW_TIMELINE_COLUMNS
#define ROWS        12
#define LABEL_EVERY 4
#define LABEL_WIDTH 10

/* RSS above so many times the curve would flatten the curve. */
#define RSS_TIMES_MAX 4

enum mark {
	NOTHING,
	CERTAIN,  /* below the lower limit */
	LIKELY,   /* below the estimate */
	POSSIBLE, /* below the upper limit */
	RSS,
	PEAK,
	AXIS,
	CORNER,
	N_MARKS
};

static const char *const marks[2][N_MARKS] = {
	{" ", "\u2588", "\u2593", "\u2591", "\u25cf", "\u25b2", "\u2500",
	 "\u2514"},
	{" ", "#", "=", "-", "o", "^", "-", "+"},
};

struct plot {
	const struct sp_analysis *analysis;
	struct sp_timeline_point points[COLUMNS];
	double top; /* bytes at the upper edge, > 0 */
	bool shows_rss;
	const char *const *marks;
};

static bool rss_of(const struct plot *plot, size_t column, double *ret)
{
	uint64_t bytes;

	if (!sp_analysis_rss_at(plot->analysis->profile,
				plot->points[column].time_ns, &bytes))
		return false;
	*ret = (double)bytes;
	return true;
}

static void choose_scale(struct plot *plot)
{
	double live = 0, most_rss = 0, rss;

	for (size_t i = 0; i < COLUMNS; i++) {
		const struct sp_interval *at = &plot->points[i].live_bytes;

		/* Where there is no upper limit all above is possible. */
		live = fmax(live, isfinite(at->hi) ? at->hi : at->value);
		if (rss_of(plot, i, &rss) && rss > most_rss)
			most_rss = rss;
	}
	plot->shows_rss = most_rss > 0 && most_rss <= RSS_TIMES_MAX * live;
	plot->top = plot->shows_rss && most_rss > live ? most_rss : live;
	if (!(plot->top > 0))
		plot->top = 1;
}

static enum mark mark_at(const struct plot *plot, size_t column, size_t row)
{
	const struct sp_interval *live = &plot->points[column].live_bytes;
	const double step = plot->top / ROWS;
	const double low = step * (double)row, mid = low + step / 2;
	double rss;

	if (plot->shows_rss && rss_of(plot, column, &rss) && rss > low &&
	    rss <= low + step)
		return RSS;
	if (live->lo >= mid)
		return CERTAIN;
	if (live->value >= mid)
		return LIKELY;
	/* However little it is, it is not nothing. */
	if (live->hi >= mid || (row == 0 && live->hi > 0))
		return POSSIBLE;
	return NOTHING;
}

static void print_rows(FILE *out, const struct plot *plot)
{
	for (size_t row = ROWS; row-- > 0;) {
		const char *label = "";
		struct sp_text_cell bytes;
		enum mark line[COLUMNS];
		size_t n = 0;

		bytes = sp_text_bytes(plot->top * (double)(row + 1) / ROWS);
		if ((row + 1) % LABEL_EVERY == 0)
			label = bytes.text;
		for (size_t i = 0; i < COLUMNS; i++) {
			line[i] = mark_at(plot, i, row);
			if (line[i] != NOTHING)
				n = i + 1;
		}
		fprintf(out, "  %*s |", LABEL_WIDTH, label);
		for (size_t i = 0; i < n; i++)
			fputs(plot->marks[line[i]], out);
		putc('\n', out);
	}
}

static void print_axis(FILE *out, const struct plot *plot)
{
	const uint64_t from = plot->points[0].time_ns;
	const uint64_t to = plot->points[COLUMNS - 1].time_ns;
	struct sp_text_cell begin = sp_text_moment(from);
	struct sp_text_cell middle = sp_text_moment(from + (to - from) / 2);
	struct sp_text_cell end = sp_text_moment(to);
	const int half = COLUMNS / 2 + (int)strlen(middle.text) / 2;

	fprintf(out, "  %*s %s", LABEL_WIDTH, "0", plot->marks[CORNER]);
	for (size_t i = 0; i < COLUMNS; i++)
		fputs(plot->marks[AXIS], out);
	fprintf(out, "\n  %*s  %s%*s%*s\n", LABEL_WIDTH, "", begin.text,
		half - (int)strlen(begin.text), middle.text, COLUMNS - half,
		end.text);
}

/* Below the column in which the peak is. */
static void print_peak(FILE *out, const struct plot *plot)
{
	const struct sp_peak *peak = &plot->analysis->peak;
	const uint64_t from = plot->points[0].time_ns;
	const uint64_t to = plot->points[COLUMNS - 1].time_ns;
	const int length = (int)strlen(" peak");
	double column;
	int before;

	if (!peak->samples || peak->time_ns < from || peak->time_ns > to ||
	    from >= to)
		return;
	column = (double)(peak->time_ns - from) / (double)(to - from) *
		 (COLUMNS - 1);
	/* The first point that has it: it holds from then on. */
	before = (int)ceil(column);
	if (before + length < COLUMNS)
		fprintf(out, "  %*s  %*s%s peak\n", LABEL_WIDTH, "", before, "",
			plot->marks[PEAK]);
	else
		fprintf(out, "  %*s  %*speak %s\n", LABEL_WIDTH, "",
			before - length, "", plot->marks[PEAK]);
}

static void print_legend(FILE *out, const struct plot *plot)
{
	const struct sp_analysis *a = plot->analysis;
	const uint64_t rss = sp_analysis_peak_rss(a->profile);

	fprintf(out,
		"\n  %s at least, %s estimated, %s at most, at each moment by "
		"itself",
		plot->marks[CERTAIN], plot->marks[LIKELY],
		plot->marks[POSSIBLE]);
	if (plot->shows_rss)
		fprintf(out, "; %s RSS", plot->marks[RSS]);
	putc('\n', out);
	if (rss && !plot->shows_rss)
		fprintf(out,
			"  RSS is beyond the scale, %s at most "
			"(docs/guide.md)\n",
			sp_text_bytes((double)rss).text);
}

int sp_view_timeline_print(FILE *out, const struct sp_analysis *analysis,
			   bool ascii, struct sp_error *err)
{
	struct plot plot = {.analysis = analysis, .marks = marks[ascii]};
	int r = sp_timeline(analysis->profile, &analysis->selection,
			    &analysis->how, plot.points, COLUMNS, err);

	if (r < 0)
		return r;
	choose_scale(&plot);
	fputs("\nLive bytes over time:\n\n", out);
	print_rows(out, &plot);
	print_peak(out, &plot);
	print_axis(out, &plot);
	print_legend(out, &plot);
	return 0;
}
