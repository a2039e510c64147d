/* SPDX-License-Identifier: MIT */
/*
 * Limits and a baseline, held against itself: refused with a reason, or every
 * format of a check and a diff is safe text.
 *
 * The input is the limits, a line "---", the baseline.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/baseline.h"
#include "compare/check.h"
#include "compare/diff.h"
#include "format/fuzz/show.h"
#include "format/fuzz/target.h"
#include "compare/format.h"
#include "support/memfile.h"

#define SEPARATOR "---\n"

struct output {
	char *text;
	size_t n;
	FILE *stream;
};

static FILE *begin(struct output *o)
{
	o->stream = open_memstream(&o->text, &o->n);
	FUZZ_ASSERT(o->stream);
	return o->stream;
}

static void end(struct output *o, bool is_json)
{
	FUZZ_ASSERT(fclose(o->stream) == 0);
	if (is_json)
		fuzz_check_json(o->text, o->n);
	else
		fuzz_check_text(o->text, o->n);
	free(o->text);
}

/* As many amounts as limits, of the same names. */
static struct sp_amount *amounts_of(const struct sp_limits *limits)
{
	static struct sp_interval some = {1000.5, 10, 1e9};
	struct sp_amount *amounts = calloc(limits->n + 1, sizeof(*amounts));

	FUZZ_ASSERT(amounts);
	for (size_t i = 0; i < limits->n; i++)
		amounts[i] = (struct sp_amount){
			.name = limits->at[i].name,
			.is_bytes = sp_limit_is_bytes(&limits->at[i]),
			.value = some,
			.runs = &some,
		};
	return amounts;
}

static void show_check(const struct sp_check *check,
		       const struct sp_limits *limits,
		       const struct sp_pair *pair)
{
	static const char *const files[] = {"new.json"};
	const struct sp_result result = {
		.check = check,
		.limits = limits,
		.program = pair->new.run[0]->program,
		.n_old = pair->old.n,
		.n_new = 1,
		.period_bytes = pair->new.run[0]->period_bytes,
		.files = files,
		.amounts = amounts_of(limits),
		.n_amounts = limits->n,
	};

	for (const struct sp_check_format *f = sp_check_formats; f->name; f++) {
		struct output o;

		f->write(begin(&o), &result);
		end(&o, strcmp(f->name, "json") == 0);
	}
	free(result.amounts);
}

/* A table of each kind, but flat functions, which check looks at. */
static void add_tables(struct sp_diff *diff, const struct sp_pair *pair)
{
	static const struct {
		const char *key;
		enum sp_diff_rows rows;
	} tables[] = {{"cum", SP_DIFF_CUM},
		      {"paths", SP_DIFF_PATHS},
		      {"tree", SP_DIFF_TREE},
		      {"peek", SP_DIFF_EDGES}};
	const size_t n_frames = pair->paths->frames.n_entries;
	bool *wants = calloc(n_frames + 1, sizeof(*wants));

	FUZZ_ASSERT(wants);
	memset(wants, true, n_frames);
	for (size_t i = 0; i < 4; i++) {
		const struct sp_diff_plan plan = {
			.key = tables[i].key,
			.what = "row",
			.noun = "rows",
			.rows = tables[i].rows,
			.of = {.table = diff->view},
			.wants = wants,
			.share = i % 2 ? 0.01 : 0,
		};

		FUZZ_ASSERT(sp_diff_add(diff, pair, &plan) == 0);
	}
	free(wants);
}

static void show_diff(struct sp_pair *pair, enum sp_view view)
{
	struct sp_diff *diff;
	struct sp_error err;
	struct output o;

	FUZZ_ASSERT(sp_diff_new(pair, view, 0.95, true, &diff, &err) == 0);
	add_tables(diff, pair);
	sp_diff_text_write(begin(&o), diff);
	end(&o, false);
	sp_diff_json_write(begin(&o), diff);
	end(&o, true);
	sp_diff_csv_write(begin(&o), diff);
	end(&o, false);
	sp_diff_free(diff);
}

static bool has_view(const struct sp_side *side, enum sp_view view)
{
	for (size_t i = 0; i < side->n; i++)
		if (!side->run[i]->has_rows[view])
			return false;
	return true;
}

/* What was read can be written, by --update-baseline. */
static void write_baseline(const struct sp_side *side, struct sp_paths *paths)
{
	struct sp_error err;
	struct output o;

	FUZZ_ASSERT(sp_baseline_write(begin(&o), side, paths, &err) == 0);
	end(&o, true);
}

static void compare(struct sp_pair *pair, const struct sp_limits *limits)
{
	struct sp_error err = {0};
	struct sp_check *check;

	if (sp_check_new(pair, limits, true, &check, &err) == 0) {
		show_check(check, limits, pair);
		sp_check_free(check);
	} else {
		FUZZ_ASSERT(err.message[0]);
	}
	for (int v = 0; v < (int)SP_SUMMARY_VIEWS; v++)
		if (has_view(&pair->old, (enum sp_view)v) &&
		    has_view(&pair->new, (enum sp_view)v))
			show_diff(pair, (enum sp_view)v);
}

static void free_runs(const struct sp_side *side)
{
	for (size_t i = 0; i < side->n; i++)
		sp_summary_free(side->run[i]);
	free(side->run);
}

/* The last run against all of them. */
static void use_baseline(const char *path, const struct sp_limits *limits)
{
	struct sp_paths paths = {0};
	struct sp_side old, new;
	struct sp_error err = {0};

	if (sp_baseline_read(path, &paths, &old.run, &old.n, &err) == 0) {
		FUZZ_ASSERT(old.n >= 1);
		FUZZ_ASSERT(sp_baseline_read(path, &paths, &new.run, &new.n,
					     &err) == 0);
		compare(&(struct sp_pair){.old = old,
					  .new = {new.run + new.n - 1, 1},
					  .paths = &paths},
			limits);
		write_baseline(&new, &paths);
		free_runs(&new);
		free_runs(&old);
	} else {
		FUZZ_ASSERT(err.message[0]);
	}
	sp_paths_done(&paths);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *at =
		size ? memmem(data, size, SEPARATOR, strlen(SEPARATOR)) : NULL;
	size_t n = at ? (size_t)(at - data) : 0;
	struct sp_limits limits = {0};
	struct sp_error err = {0};
	struct memfile file;

	memfile_open(&file);
	memfile_write(&file, 0, data, n);
	if (sp_limits_read(&limits, file.path, &err) != 0)
		FUZZ_ASSERT(err.message[0]);
	memfile_resize(&file, 0);
	if (at)
		n += strlen(SEPARATOR);
	if (size > n)
		memfile_write(&file, 0, data + n, size - n);
	use_baseline(file.path, &limits);
	sp_limits_done(&limits);
	memfile_close(&file);
	return 0;
}
