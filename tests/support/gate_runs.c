/* SPDX-License-Identifier: MIT */
#include "support/gate_runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/baseline.h"

static void *need(void *p)
{
	if (!p) {
		fprintf(stderr, "not enough memory\n");
		exit(1);
	}
	return p;
}

struct sp_summary *gate_run_new(uint64_t period_bytes)
{
	struct sp_summary *run = need(calloc(1, sizeof(*run)));

	run->program = need(strdup("app"));
	run->path = need(strdup("old.sprof"));
	run->period_bytes = period_bytes;
	run->has_frees = true;
	run->level = SP_SUMMARY_LEVEL;
	for (unsigned int v = 0; v < SP_SUMMARY_VIEWS; v++)
		run->has_rows[v] = (SP_BASELINE_VIEWS & (1u << v)) != 0;
	return run;
}

static uint32_t add_path(struct sp_paths *paths, const char *text)
{
	char *copy = need(strdup(text)), *save = NULL, *word;
	uint32_t frames[64], path;
	size_t n = 0;

	for (word = strtok_r(copy, "<", &save); word && n < 64;
	     word = strtok_r(NULL, "<", &save))
		need(sp_intern_add(&paths->frames, word, strlen(word),
				   &frames[n++]) < 0
			     ? NULL
			     : paths);
	need(sp_paths_add(paths, frames, n, &path) < 0 ? NULL : paths);
	free(copy);
	return path;
}

static void add_row(struct sp_path_rows *rows, struct sp_paths *paths,
		    const char *path, const struct sp_acc *acc)
{
	if (!acc->samples)
		return;
	rows->at = need(realloc(rows->at, (rows->n + 1) * sizeof(*rows->at)));
	rows->at[rows->n++] = (struct sp_path_row){add_path(paths, path), *acc};
	sp_path_rows_settle(rows);
}

void gate_run_add(struct sp_summary *run, struct sp_paths *paths,
		  enum sp_view view, const char *path, const struct sp_acc *acc)
{
	add_row(&run->rows[view], paths, path, acc);
}

void gate_phase_add(struct sp_phase_sum *phase, struct sp_paths *paths,
		    const char *path, const struct sp_acc *acc)
{
	phase->has_rows = true;
	add_row(&phase->rows, paths, path, acc);
}

struct sp_acc gate_samples(uint64_t n, uint64_t size_bytes,
			   uint64_t period_bytes)
{
	static const struct sp_law_used law = {0};
	struct sp_acc acc;

	sp_acc_init(&acc, period_bytes);
	while (n--)
		sp_acc_add(&acc, &law, size_bytes, 0, period_bytes);
	return acc;
}
