/* SPDX-License-Identifier: MIT */
#include "view/view_row.h"

#include <inttypes.h>
#include <string.h>

#include "text/lines.h"
#include "text/style.h"
#include "text/text.h"

#define ESTIMATE_WIDTH 27

void sp_view_row_head(const struct sp_view_rows *rows, const char *behind)
{
	sp_style_begin(rows->out, SP_STYLE_HEAD);
	fprintf(rows->out, "  %*s %6s%s%s", ESTIMATE_WIDTH, "bytes", "%",
		*behind ? "  " : "", behind);
	sp_style_begin(rows->out, SP_STYLE_PLAIN);
	putc('\n', rows->out);
}

void sp_view_row_print(struct sp_view_rows *rows, struct sp_interval bytes,
		       uint64_t samples)
{
	const struct sp_text_estimate text = sp_text_estimate(bytes, samples);

	rows->has_few |= text.order == SP_TEXT_INTERVAL_FIRST;
	rows->has_bound |= text.order == SP_TEXT_BOUND;
	fprintf(rows->out, "  %*s %6s  ", ESTIMATE_WIDTH,
		sp_text_estimate_cell(bytes, samples).text,
		sp_text_percent(bytes.value, rows->whole).text);
}

void sp_view_row_legend(const struct sp_view_rows *rows)
{
	sp_text_print_legend(rows->out, rows->has_few, rows->has_bound,
			     rows->confidence);
}

void sp_view_row_module(FILE *out, const char *name, const char *module)
{
	const char *base = sp_text_base_name(module);
	const size_t n = strlen(base);

	/* A name that is made of it, as libx.so+0x1234. */
	if (!*base || (strncmp(name, base, n) == 0 && name[n] == '+'))
		return;
	fputs("  (", out);
	sp_lines_print_name(out, base);
	putc(')', out);
}

void sp_view_row_name(FILE *out, enum sp_granularity granularity,
		      const struct sp_aggregate_function *f)
{
	sp_lines_print_name(out, f->name);
	if (granularity == SP_BY_LINE && f->file) {
		fputs("  ", out);
		sp_lines_print_name(out, f->file);
		if (f->line)
			fprintf(out, ":%" PRIu32, f->line);
	}
	/* A function of Python is in its file, which may be in its name:
	 * "py::pay [in shop.py]". */
	if (strcmp(f->module, SP_FORMAT_PYTHON) == 0 && f->file) {
		if (granularity == SP_BY_FUNCTION && !strstr(f->name, " [in "))
			sp_view_row_module(out, f->name, f->file);
	} else if (granularity != SP_BY_ADDRESS) {
		sp_view_row_module(out, f->name, f->module);
	} else if (*f->module) {
		fputs("  (", out);
		sp_lines_print_name(out, sp_text_base_name(f->module));
		fprintf(out, "+0x%" PRIx64 ")", f->offset);
	}
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
		return "of what was allocated";
	case SP_VIEW_LIVE:
	case SP_VIEW_PEAK:
		return "of what was alive";
	case SP_VIEW_LEAKS:
		return "of what may have leaked";
	case SP_VIEW_TEMPORARY:
		return "of what was temporary";
	}
	return "";
}
