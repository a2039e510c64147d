/* SPDX-License-Identifier: MIT */
#include "report/paths.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "report/label.h"
#include "symbols/demangle.h"
#include "symbols/plainname.h"
#include "text/text.h"

/* ---- paths ---- */

void sp_paths_done(struct sp_paths *paths)
{
	sp_intern_done(&paths->frames);
	sp_intern_done(&paths->paths);
	sp_labels_free(paths->labels, paths->n_labels);
	sp_see_through_free(paths->see_through);
	free(paths->roles);
	free(paths->functions);
}

int sp_paths_add(struct sp_paths *paths, const uint32_t *frames, size_t n,
		 uint32_t *ret_path)
{
	uint32_t *kept = malloc((n + 1) * sizeof(*kept));
	size_t n_kept = 0;
	int r;

	if (!kept)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (!n_kept || kept[n_kept - 1] != frames[i])
			kept[n_kept++] = frames[i];
	r = sp_intern_add(&paths->paths, kept, n_kept * sizeof(*kept),
			  ret_path);
	free(kept);
	return r;
}

struct sp_path sp_paths_at(const struct sp_paths *paths, uint32_t path)
{
	return (struct sp_path){SP_INTERN_AT(&paths->paths, path, uint32_t),
				paths->paths.entries[path].length /
					sizeof(uint32_t)};
}

const char *sp_paths_name(const struct sp_paths *paths, uint32_t frame)
{
	return sp_intern_bytes(&paths->frames, frame);
}

const char *sp_paths_function(const char *name, size_t *ret_bytes)
{
	const char *mark = strchr(name, '!');

	*ret_bytes = mark ? (size_t)(mark - name) : 0;
	return mark ? mark + 1 : name;
}

/* Room for what all frames are. */
static int grow_roles(struct sp_paths *paths)
{
	const size_t n = paths->frames.n_entries;
	unsigned char *grown;

	if (n <= paths->n_roles)
		return 0;
	grown = realloc(paths->roles, n);
	if (!grown)
		return -ENOMEM;
	memset(grown + paths->n_roles, 0, n - paths->n_roles);
	paths->roles = grown;
	paths->n_roles = n;
	return 0;
}

static int find_role(struct sp_paths *paths, uint32_t frame, enum sp_role *ret)
{
	const char *name = sp_paths_name(paths, frame), *function;
	enum sp_role role = SP_ROLE_ALLOCATOR;
	char *module;
	size_t bytes;

	if (paths->roles[frame]) {
		*ret = (enum sp_role)(paths->roles[frame] - 1);
		return 0;
	}
	function = sp_paths_function(name, &bytes);
	module = strndup(name, bytes);
	if (!module)
		return -ENOMEM;
	/* nobody knows whose they are */
	if (strcmp(name, SP_PATHS_OTHER_CALLERS) != 0)
		role = sp_see_through_role(paths->see_through, module,
					   function);
	free(module);
	paths->roles[frame] = (unsigned char)(1 + role);
	*ret = role;
	return 0;
}

bool sp_paths_same_module(const struct sp_paths *paths, uint32_t a, uint32_t b)
{
	const char *name_a = sp_paths_name(paths, a);
	const char *name_b = sp_paths_name(paths, b);
	size_t bytes_a, bytes_b;

	sp_paths_function(name_a, &bytes_a);
	sp_paths_function(name_b, &bytes_b);
	return bytes_a == bytes_b && memcmp(name_a, name_b, bytes_a) == 0;
}

struct of_path {
	const struct sp_paths *paths;
	struct sp_path path;
};

static bool is_same_module(const void *arg, size_t a, size_t b)
{
	const struct of_path *of = arg;

	return sp_paths_same_module(of->paths, of->path.frame[a],
				    of->path.frame[b]);
}

int sp_paths_find_flat(struct sp_paths *paths, uint32_t path, size_t *ret_depth)
{
	const struct of_path of = {paths, sp_paths_at(paths, path)};
	enum sp_role *roles;
	int r = 0;

	*ret_depth = 0;
	if (!paths->see_through)
		return 0;
	roles = malloc((of.path.n + 1) * sizeof(*roles));
	if (!roles || grow_roles(paths) < 0)
		r = -ENOMEM;
	for (size_t d = 0; !r && d < of.path.n; d++)
		r = find_role(paths, of.path.frame[d], &roles[d]);
	if (!r)
		*ret_depth =
			sp_find_flat(roles, of.path.n, is_same_module, &of);
	free(roles);
	return r;
}

uint32_t sp_paths_functions(const struct sp_paths *paths, uint32_t frame)
{
	return frame < paths->n_functions ? paths->functions[frame] : 0;
}

int sp_paths_set_functions(struct sp_paths *paths, uint32_t frame, uint32_t n)
{
	const size_t room = (size_t)frame + 1 + frame / 2;
	uint32_t *grown;

	if (n <= 1 || n <= sp_paths_functions(paths, frame))
		return 0;
	if (frame >= paths->n_functions) {
		grown = realloc(paths->functions, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		memset(grown + paths->n_functions, 0,
		       (room - paths->n_functions) * sizeof(*grown));
		paths->functions = grown;
		paths->n_functions = room;
	}
	paths->functions[frame] = n;
	return 0;
}

/* "make [2 functions]" */
static int label_functions(const struct sp_paths *paths, uint32_t frame,
			   char **label)
{
	const uint32_t n = sp_paths_functions(paths, frame);
	char *longer;

	if (n <= 1)
		return 0;
	if (asprintf(&longer, "%s [%" PRIu32 " functions]", *label, n) < 0)
		return -ENOMEM;
	free(*label);
	*label = longer;
	return 0;
}

int sp_paths_set_labels(struct sp_paths *paths)
{
	const size_t n = paths->frames.n_entries;
	const char **names = calloc(n + 1, sizeof(*names));
	int r = names ? 0 : -ENOMEM;

	sp_labels_free(paths->labels, paths->n_labels);
	paths->labels = NULL;
	paths->n_labels = 0;
	for (uint32_t i = 0; !r && i < n; i++)
		names[i] = sp_paths_name(paths, i);
	if (!r)
		r = sp_labels_new(names, n, paths->has_full_names,
				  &paths->labels);
	if (!r)
		paths->n_labels = n;
	for (uint32_t i = 0; !r && i < n; i++)
		r = label_functions(paths, i, &paths->labels[i]);
	free(names);
	return r;
}

const char *sp_paths_label(const struct sp_paths *paths, uint32_t frame)
{
	return frame < paths->n_labels ? paths->labels[frame]
				       : sp_paths_name(paths, frame);
}

int sp_paths_matches(const struct sp_pattern *pattern, const char *function,
		     struct sp_error *err)
{
	char *plain = sp_plain_name(function, false);
	char *full = strndup(function, sp_demangle_short(function));
	int r = 0;

	if (!plain || !full)
		r = sp_error_memory(err, NULL);
	else
		plain[sp_demangle_short(plain)] = '\0';
	if (!r)
		r = sp_pattern_search(pattern, plain, err);
	if (!r)
		r = sp_pattern_search(pattern, full, err);
	free(plain);
	free(full);
	return r ? r : sp_pattern_search_full(pattern, function, err);
}

char *sp_paths_text(const struct sp_paths *paths, uint32_t path)
{
	const struct sp_path p = sp_paths_at(paths, path);
	size_t bytes = 1;
	char *text, *at;

	for (size_t i = 0; i < p.n; i++)
		bytes += 3 + strlen(sp_paths_label(paths, p.frame[i]));
	text = malloc(bytes);
	if (!text)
		return NULL;
	at = text;
	*at = '\0';
	for (size_t i = 0; i < p.n; i++)
		at = stpcpy(stpcpy(at, i ? " < " : ""),
			    sp_paths_label(paths, p.frame[i]));
	return text;
}

/* ---- names of frames ---- */

char *sp_paths_put_utf8(char *to, const char *text)
{
	while (*text) {
		uint32_t code;
		const unsigned int n = sp_text_decode_utf8(text, &code);

		to = n ? (char *)mempcpy(to, text, n)
		       : (char *)mempcpy(to, "\xef\xbf\xbd", 3);
		text += n ? n : 1;
	}
	return to;
}

char *sp_paths_put_module(char *to, const struct sp_module *module)
{
	char *end = sp_paths_put_utf8(
		to, module && !module->is_main ? sp_text_base_name(module->path)
					       : "");

	/* the first '!' ends the module */
	for (char *c = to; c < end; c++)
		if (*c == '!')
			*c = '_';
	return end;
}

/* ---- rows ---- */

SP_ORDER(compare_rows, struct sp_path_row, SP_UP(path));

void sp_path_rows_settle(struct sp_path_rows *rows)
{
	size_t n = 0;

	if (!rows->n)
		return;
	qsort(rows->at, rows->n, sizeof(*rows->at), compare_rows);
	for (size_t i = 1; i < rows->n; i++) {
		if (rows->at[n].path == rows->at[i].path)
			sp_acc_merge(&rows->at[n].acc, &rows->at[i].acc);
		else
			rows->at[++n] = rows->at[i];
	}
	rows->n = n + 1;
}
