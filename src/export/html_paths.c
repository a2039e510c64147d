/* SPDX-License-Identifier: MIT */
#include "export/html_paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "export/format.h"
#include "report/calls.h"

int sp_html_paths_function(struct sp_html_paths *paths, const char *name,
			   const char *module, uint32_t *ret_number)
{
	struct sp_html_function f;

	if (sp_intern_add(&paths->strings, name, strlen(name), &f.name) < 0 ||
	    sp_intern_add(&paths->strings, module, strlen(module), &f.module) <
		    0)
		return -ENOMEM;
	return sp_intern_add(&paths->functions, &f, sizeof(f), ret_number);
}

struct sp_html_function sp_html_paths_at(const struct sp_html_paths *paths,
					 uint32_t function)
{
	return *SP_INTERN_AT(&paths->functions, function,
			     struct sp_html_function);
}

static int push_function(struct sp_html_paths *paths, uint32_t function,
			 bool is_foreign)
{
	if (sp_array_reserve((void **)&paths->frames, &paths->frames_room,
			     paths->n_frames, sizeof(*paths->frames)) < 0)
		return -ENOMEM;
	paths->frames[paths->n_frames++] = 2 * function + is_foreign;
	return 0;
}

static int push_call(struct sp_html_paths *paths,
		     const struct sp_aggregate *aggregate,
		     const struct sp_calls *calls, size_t i)
{
	const struct sp_call *call = &calls->at[i];
	uint32_t number, at;

	if (sp_html_paths_function(
		    paths, sp_aggregate_name(aggregate, call->symbol),
		    sp_aggregate_module_path(aggregate, call->frame),
		    &number) < 0 ||
	    push_function(paths, number, sp_calls_foreign(calls, i)) < 0)
		return -ENOMEM;
	return call->symbol->is_fallback
		       ? sp_intern_add(&paths->unnamed, &number, sizeof(number),
				       &at)
		       : 0;
}

static int add_path(struct sp_html_paths *paths,
		    const struct sp_aggregate *aggregate,
		    const struct sp_stack *stack, struct sp_calls *calls)
{
	struct sp_html_path *path = &paths->paths[paths->n_paths++];
	int r = sp_calls_read(calls, aggregate, stack);

	path->at = paths->n_frames;
	for (size_t i = calls->n; !r && i-- > 0;)
		r = push_call(paths, aggregate, calls, i);
	path->n_frames = (uint32_t)calls->n;
	path->flat = path->n_frames - 1 - calls->flat;
	return r;
}

static int compare_paths(const void *a, const void *b, void *arg)
{
	const struct sp_html_paths *paths = arg;
	const struct sp_html_path *pa = &paths->paths[*(const uint32_t *)a];
	const struct sp_html_path *pb = &paths->paths[*(const uint32_t *)b];
	const uint32_t *fa = paths->frames + pa->at;
	const uint32_t *fb = paths->frames + pb->at;

	for (uint32_t i = 0; i < pa->n_frames && i < pb->n_frames; i++)
		if (fa[i] != fb[i])
			return fa[i] < fb[i] ? -1 : 1;
	if (pa->n_frames != pb->n_frames)
		return pa->n_frames < pb->n_frames ? -1 : 1;
	return (pa->flat > pb->flat) - (pa->flat < pb->flat);
}

/* Sort the paths, those alike becoming one; new_number[] is by old number. */
static int unite_paths(struct sp_html_paths *paths, uint32_t *new_number)
{
	const size_t n = paths->n_paths;
	struct sp_html_path *sorted = malloc((n + 1) * sizeof(*sorted));
	uint32_t *order = malloc((n + 1) * sizeof(*order));

	if (!sorted || !order) {
		free(sorted);
		free(order);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	qsort_r(order, n, sizeof(*order), compare_paths, paths);
	paths->n_paths = 0;
	for (size_t i = 0; i < n; i++) {
		if (!i || compare_paths(&order[i - 1], &order[i], paths))
			sorted[paths->n_paths++] = paths->paths[order[i]];
		new_number[order[i]] = (uint32_t)paths->n_paths - 1;
	}
	free(order);
	free(paths->paths);
	paths->paths = sorted;
	return 0;
}

static int collect_paths(struct sp_html_paths *paths,
			 const struct sp_aggregate *aggregate,
			 const bool *wanted)
{
	const struct sp_profile *p = aggregate->analysis->profile;
	uint32_t *united = malloc((p->n_stacks + 1) * sizeof(*united));
	struct sp_calls calls = {0};
	int r = united ? 0 : -ENOMEM;

	for (size_t i = 0; !r && i < p->n_stacks; i++) {
		paths->of_stack[i] = (uint32_t)paths->n_paths;
		if (wanted[i])
			r = add_path(paths, aggregate, &p->stacks[i], &calls);
	}
	if (!r)
		r = unite_paths(paths, united);
	for (size_t i = 0; !r && i < p->n_stacks; i++)
		paths->of_stack[i] =
			wanted[i] ? united[paths->of_stack[i]] : UINT32_MAX;
	free(united);
	sp_calls_done(&calls);
	return r;
}

int sp_html_paths_init(struct sp_html_paths *paths,
		       const struct sp_aggregate *aggregate,
		       const struct sp_selection *selection,
		       struct sp_error *err)
{
	const struct sp_profile *p = aggregate->analysis->profile;
	bool *wanted = sp_selection_stacks(selection, p);
	int r = -ENOMEM;

	*paths = (struct sp_html_paths){0};
	paths->paths = malloc((p->n_stacks + 1) * sizeof(*paths->paths));
	paths->of_stack = malloc((p->n_stacks + 1) * sizeof(*paths->of_stack));
	if (wanted && paths->paths && paths->of_stack)
		r = collect_paths(paths, aggregate, wanted);
	free(wanted);
	if (r < 0) {
		sp_html_paths_done(paths);
		sp_error_memory(err, p->path);
	}
	return r;
}

int sp_html_paths_fold(struct sp_html_paths *paths, const bool *keep,
		       uint32_t *path_of_path)
{
	uint32_t function;
	size_t at = paths->n_frames;

	if (sp_html_paths_function(paths, SP_HTML_PATHS_OTHER, "", &function) <
		    0 ||
	    push_function(paths, function, false) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < paths->n_paths; i++)
		if (!keep[i])
			paths->paths[i] = (struct sp_html_path){at, 1, 0};
	return unite_paths(paths, path_of_path);
}

void sp_html_paths_done(struct sp_html_paths *paths)
{
	sp_intern_done(&paths->strings);
	sp_intern_done(&paths->functions);
	sp_intern_done(&paths->unnamed);
	free(paths->frames);
	free(paths->paths);
	free(paths->of_stack);
	*paths = (struct sp_html_paths){0};
}
