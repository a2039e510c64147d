/* SPDX-License-Identifier: MIT */
#include "compare/path_runs.h"

#include <errno.h>
#include <stdlib.h>

const struct sp_path_rows *sp_path_runs_rows(const struct sp_summary *run,
					     const struct sp_match_of *of)
{
	static const struct sp_path_rows none;
	const struct sp_path_rows *rows =
		of->is_whole ? sp_summary_whole(run, of->table, of->phase)
			     : sp_summary_rows(run, of->table, of->phase);

	return rows ? rows : &none;
}

int sp_path_runs_init(struct sp_path_runs *ret, const struct sp_side *side,
		      const struct sp_match_of *of, size_t n_paths)
{
	size_t *first = calloc(n_paths + 2, sizeof(*first));
	struct sp_path_run *at = NULL;

	*ret = (struct sp_path_runs){.n_paths = n_paths};
	for (size_t i = 0; first && i < side->n; i++) {
		const struct sp_path_rows *rows =
			sp_path_runs_rows(side->run[i], of);

		for (size_t k = 0; k < rows->n; k++)
			first[rows->at[k].path + 2]++;
	}
	for (size_t i = 2; first && i < n_paths + 2; i++)
		first[i] += first[i - 1];
	if (first)
		at = calloc(first[n_paths + 1] + 1, sizeof(*at));
	if (!at) {
		free(first);
		return -ENOMEM;
	}
	/* first[path + 1] goes from where it begins to where it ends */
	for (size_t i = 0; i < side->n; i++) {
		const struct sp_path_rows *rows =
			sp_path_runs_rows(side->run[i], of);

		for (size_t k = 0; k < rows->n; k++)
			at[first[rows->at[k].path + 1]++] =
				(struct sp_path_run){&rows->at[k].acc,
						     (uint32_t)i};
	}
	ret->first = first;
	ret->at = at;
	return 0;
}

void sp_path_runs_done(struct sp_path_runs *runs)
{
	free(runs->first);
	free(runs->at);
	*runs = (struct sp_path_runs){0};
}
