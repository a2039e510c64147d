/* SPDX-License-Identifier: MIT */
#include "report/listing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bisect.h"
#include "symbols/pattern.h"

typedef const struct sp_aggregate_function row;

static int compare_pointers(const void *a, const void *b)
{
	row *const *x = a;
	row *const *y = b;

	return sp_aggregate_compare(*x, *y);
}

/* By identity and module alone. */
static int compare_function(row *a, row *b)
{
	int c = strcmp(a->identity, b->identity);

	return c ? c : strcmp(a->module, b->module);
}

static bool same_file(row *a, row *b)
{
	return !strcmp(a->file ? a->file : "", b->file ? b->file : "");
}

/* Position of the first line that does not come before the function's. */
static size_t first_line(const struct sp_listings *l, size_t n, row *function)
{
	size_t at;

	SP_LOWER_BOUND(at, n, compare_function(l->lines[at], function) < 0);
	return at;
}

/* One listing for each file of the function. */
static int add_function(struct sp_listings *l, size_t n, row *function,
			size_t *room)
{
	size_t i = first_line(l, n, function);

	while (i < n && !compare_function(l->lines[i], function)) {
		struct sp_listing *new;

		if (sp_array_reserve((void **)&l->listings, room, l->n_listings,
				     sizeof(*l->listings)) < 0)
			return -ENOMEM;
		new = &l->listings[l->n_listings++];
		*new = (struct sp_listing){.function = function,
					   .file = l->lines[i]->file,
					   .lines = &l->lines[i]};
		for (; i < n && !compare_function(l->lines[i], function) &&
		       same_file(l->lines[i], new->lines[0]);
		     i++)
			new->n_lines++;
	}
	return 0;
}

static int add_matching(struct sp_listings *l,
			const struct sp_aggregate *functions, size_t n_lines,
			const struct sp_pattern *pattern, struct sp_error *err)
{
	const char *path = functions->analysis->profile->path;
	size_t room = 0;

	for (size_t i = 0; i < functions->n_functions; i++) {
		row *f = &functions->functions[i];
		int r = sp_aggregate_matches(f, pattern, err);

		if (r < 0)
			return r;
		if (r && add_function(l, n_lines, f, &room) < 0)
			return sp_error_memory(err, path);
	}
	return 0;
}

int sp_listings_init(struct sp_listings *ret,
		     const struct sp_aggregate *functions,
		     const struct sp_aggregate *lines, const char *regex,
		     struct sp_error *err)
{
	const char *path = functions->analysis->profile->path;
	const size_t n = lines->n_functions;
	struct sp_pattern *pattern;
	int r;

	*ret = (struct sp_listings){.n_listings = 0};
	r = sp_pattern_new("REGEX", regex, &pattern, err);
	if (r < 0)
		return r;
	ret->lines = calloc(n + 1, sizeof(*ret->lines));
	if (ret->lines) {
		for (size_t i = 0; i < n; i++)
			ret->lines[i] = &lines->functions[i];
		qsort(ret->lines, n, sizeof(*ret->lines), compare_pointers);
		r = add_matching(ret, functions, n, pattern, err);
	} else {
		r = sp_error_memory(err, path);
	}
	sp_pattern_free(pattern);
	if (r >= 0 && !ret->n_listings)
		r = sp_error_set(err, -ENOENT, path,
				 functions->n_dropped
					 ? "no function of this view matches "
					   "%.80s, or it has less than "
					   "--nodefraction"
					 : "no function of this view matches "
					   "%.80s",
				 regex);
	return r;
}

void sp_listings_done(struct sp_listings *listings)
{
	free(listings->listings);
	free(listings->lines);
}
