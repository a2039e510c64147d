/* SPDX-License-Identifier: MIT */
#include "compare/summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- runs ---- */

const struct sp_phase_sum *sp_summary_phase(const struct sp_summary *summary,
					    const char *name)
{
	for (size_t i = 0; i < summary->n_phases; i++)
		if (strcmp(summary->phases[i].name, name) == 0)
			return &summary->phases[i];
	return NULL;
}

struct sp_phase_sum *sp_summary_add_phase(struct sp_summary *summary,
					  const char *name)
{
	struct sp_phase_sum *grown = realloc(
		summary->phases, (summary->n_phases + 1) * sizeof(*grown));

	if (!grown)
		return NULL;
	summary->phases = grown;
	grown += summary->n_phases;
	*grown = (struct sp_phase_sum){.name = strdup(name)};
	if (!grown->name)
		return NULL;
	summary->n_phases++;
	return grown;
}

double sp_summary_unsampled(const struct sp_summary *summary, const char *phase)
{
	const struct sp_phase_sum *sum =
		phase ? sp_summary_phase(summary, phase) : NULL;
	const uint64_t part = !phase ? summary->unsampled_bytes
			      : sum  ? sum->unsampled_bytes
				     : 0;
	const uint64_t whole = !phase ? summary->exact_alloc_bytes
			       : sum  ? sum->exact_alloc_bytes
				      : 0;

	/* where threads report late, a part may be ahead of the whole */
	return !part ? 0 : part < whole ? (double)part / (double)whole : 1;
}

const struct sp_path_rows *sp_summary_rows(const struct sp_summary *summary,
					   unsigned int table,
					   const char *phase)
{
	const struct sp_phase_sum *p;

	if (!phase)
		return &summary->rows[table];
	p = sp_summary_phase(summary, phase);
	return p ? &p->rows : NULL;
}

const struct sp_path_rows *sp_summary_whole(const struct sp_summary *summary,
					    enum sp_view view,
					    const char *phase)
{
	const struct sp_phase_sum *p;

	if (!summary->has_whole)
		return sp_summary_rows(summary, view, phase);
	if (!phase)
		return &summary->whole[view];
	p = sp_summary_phase(summary, phase);
	return p ? &p->whole : NULL;
}

/* The path from where its samples are flat. */
static int cut_path(struct sp_paths *paths, uint32_t *path)
{
	const struct sp_path p = sp_paths_at(paths, *path);
	size_t depth;
	int r = sp_paths_find_flat(paths, *path, &depth);

	return r < 0 || !depth ? r
			       : sp_paths_add(paths, p.frame + depth,
					      p.n - depth, path);
}

static int cut_rows(struct sp_paths *paths, struct sp_path_rows *rows,
		    struct sp_path_rows *whole)
{
	int r = 0;

	*whole = *rows;
	rows->at = calloc(whole->n + 1, sizeof(*rows->at));
	if (!rows->at) {
		rows->n = 0;
		return -ENOMEM;
	}
	if (whole->n)
		memcpy(rows->at, whole->at, whole->n * sizeof(*rows->at));
	for (size_t i = 0; !r && i < rows->n; i++)
		r = cut_path(paths, &rows->at[i].path);
	sp_path_rows_settle(rows);
	return r;
}

int sp_summary_see_through(struct sp_summary *summary, struct sp_paths *paths)
{
	int r = 0;

	summary->has_whole = true;
	for (unsigned int v = 0; !r && v < SP_SUMMARY_VIEWS; v++)
		r = cut_rows(paths, &summary->rows[v], &summary->whole[v]);
	for (size_t i = 0; !r && i < summary->n_phases; i++)
		r = cut_rows(paths, &summary->phases[i].rows,
			     &summary->phases[i].whole);
	return r;
}

bool sp_summary_shares_recording(const struct sp_summary *a,
				 const struct sp_summary *b)
{
	if (!a->recordings || !b->recordings)
		return false;
	for (size_t i = 0; i < a->n_recordings; i++)
		for (size_t k = 0; k < b->n_recordings; k++)
			if (a->recordings[i] == b->recordings[k])
				return true;
	return false;
}

bool sp_summary_shares_seed(const struct sp_summary *a,
			    const struct sp_summary *b)
{
	if (!a->seeds || !b->seeds)
		return false;
	for (size_t i = 0; i < a->n_recordings; i++)
		for (size_t k = 0; k < b->n_recordings; k++)
			if (a->seeds[i] && a->seeds[i] == b->seeds[k])
				return true;
	return false;
}

void sp_summary_free(struct sp_summary *summary)
{
	if (!summary)
		return;
	for (unsigned int t = 0; t < SP_SUMMARY_TABLES; t++)
		free(summary->rows[t].at);
	for (unsigned int v = 0; v < SP_SUMMARY_VIEWS; v++)
		free(summary->whole[v].at);
	for (size_t i = 0; i < summary->n_phases; i++) {
		free(summary->phases[i].name);
		free(summary->phases[i].rows.at);
		free(summary->phases[i].whole.at);
	}
	for (size_t i = 0; i < summary->n_nameless; i++) {
		free(summary->nameless[i].module);
		free(summary->nameless[i].path);
		free(summary->nameless[i].reason);
	}
	for (size_t i = 0; i < summary->n_leak_rates; i++)
		free(summary->leak_rates[i].name);
	free(summary->leak_rates);
	free(summary->nameless);
	free(summary->classes);
	free(summary->phases);
	free(summary->program);
	free(summary->path);
	free(summary->recordings);
	free(summary->seeds);
	free(summary);
}
