/* SPDX-License-Identifier: MIT */
#include "view/view_row.h"

#include <inttypes.h>

#include "text/text.h"

#define ESTIMATE_WIDTH 31

void sp_view_row_head(const struct sp_view_rows *rows, const char *behind)
{
	char head[96];

	snprintf(head, sizeof(head), "bytes [%s interval]",
		 sp_text_level(rows->confidence).text);
	fprintf(rows->out, "  %*s %6s %9s%s%s\n", ESTIMATE_WIDTH, head, "%",
		"samples", *behind ? "  " : "", behind);
}

void sp_view_row_print(struct sp_view_rows *rows, struct sp_interval bytes,
		       uint64_t samples)
{
	struct sp_text_estimate text = sp_text_estimate(bytes, samples);
	char joined[2 * sizeof(text.first.text)];

	rows->has_few |= text.order == SP_TEXT_INTERVAL_FIRST;
	rows->has_bound |= text.order == SP_TEXT_BOUND;
	snprintf(joined, sizeof(joined), "%s%s%s", text.first.text,
		 *text.second.text ? " " : "", text.second.text);
	fprintf(rows->out, "  %*s %6s %9s  ", ESTIMATE_WIDTH, joined,
		sp_text_percent(bytes.value, rows->whole).text,
		sp_text_count(samples).text);
}

void sp_view_row_legend(const struct sp_view_rows *rows)
{
	sp_text_print_legend(rows->out, rows->has_few, rows->has_bound,
			     rows->confidence);
}

void sp_view_row_name(FILE *out, enum sp_granularity granularity,
		      const struct sp_aggregate_function *f)
{
	sp_text_print(out, f->name);
	if (granularity == SP_BY_LINE && f->file) {
		fputs("  ", out);
		sp_text_print(out, f->file);
		if (f->line)
			fprintf(out, ":%" PRIu32, f->line);
	}
	if (!*f->module)
		return;
	fputs("  (", out);
	sp_text_print(out, sp_text_base_name(f->module));
	if (granularity == SP_BY_ADDRESS)
		fprintf(out, "+0x%" PRIx64, f->offset);
	putc(')', out);
}

const char *sp_view_row_noun(enum sp_granularity granularity, uint64_t n)
{
	static const char *const nouns[][2] = {
		[SP_BY_FUNCTION] = {"function", "functions"},
		[SP_BY_FILE] = {"file", "files"},
		[SP_BY_LINE] = {"line", "lines"},
		[SP_BY_MODULE] = {"module", "modules"},
		[SP_BY_ADDRESS] = {"address", "addresses"},
	};

	return nouns[granularity][n != 1];
}

const char *sp_view_row_whole(enum sp_view view)
{
	switch (view) {
	case SP_VIEW_ALLOC:
		return "of what was allocated, no interval";
	case SP_VIEW_LIVE:
	case SP_VIEW_PEAK:
		return "of what was alive, no interval";
	case SP_VIEW_LEAKS:
		return "of what may have leaked, no interval";
	case SP_VIEW_TEMPORARY:
		return "of what was temporary, no interval";
	}
	return "";
}
