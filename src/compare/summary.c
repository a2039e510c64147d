/* SPDX-License-Identifier: MIT */
#include "compare/summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/label.h"
#include "symbols/demangle.h"
#include "text/text.h"

/* ---- paths ---- */

void sp_paths_done(struct sp_paths *paths)
{
	sp_intern_done(&paths->frames);
	sp_intern_done(&paths->paths);
	sp_labels_free(paths->labels, paths->n_labels);
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

size_t sp_paths_depth(const struct sp_paths *paths, uint32_t path)
{
	return paths->paths.entries[path].length / sizeof(uint32_t);
}

uint32_t sp_paths_frame(const struct sp_paths *paths, uint32_t path,
			size_t depth)
{
	uint32_t frame;

	/* the bytes are not aligned */
	memcpy(&frame,
	       sp_intern_bytes(&paths->paths, path) + depth * sizeof(frame),
	       sizeof(frame));
	return frame;
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
		r = sp_labels_new(names, n, &paths->labels);
	if (!r)
		paths->n_labels = n;
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
	char *label = strndup(function, sp_demangle_short(function));
	int r = label ? sp_pattern_search(pattern, label, err)
		      : sp_error_set(err, -ENOMEM, NULL, "not enough memory");

	free(label);
	return r ? r : sp_pattern_search(pattern, function, err);
}

char *sp_paths_text(const struct sp_paths *paths, uint32_t path)
{
	const size_t depth = sp_paths_depth(paths, path);
	size_t bytes = 1;
	char *text, *at;

	for (size_t i = 0; i < depth; i++)
		bytes += 3 + strlen(sp_paths_label(
				     paths, sp_paths_frame(paths, path, i)));
	text = malloc(bytes);
	if (!text)
		return NULL;
	at = text;
	*at = '\0';
	for (size_t i = 0; i < depth; i++)
		at = stpcpy(
			stpcpy(at, i ? " < " : ""),
			sp_paths_label(paths, sp_paths_frame(paths, path, i)));
	return text;
}

/* ---- names of frames ---- */

char *sp_summary_put_utf8(char *to, const char *text)
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

char *sp_summary_put_module(char *to, const struct sp_module *module)
{
	char *end = sp_summary_put_utf8(
		to, module && !module->is_main ? sp_text_base_name(module->path)
					       : "");

	/* the first '!' ends the module */
	for (char *c = to; c < end; c++)
		if (*c == '!')
			*c = '_';
	return end;
}

/* ---- rows ---- */

static int compare_rows(const void *a, const void *b)
{
	const struct sp_path_row *ra = a, *rb = b;

	return (ra->path > rb->path) - (ra->path < rb->path);
}

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

void sp_summary_free(struct sp_summary *summary)
{
	if (!summary)
		return;
	for (unsigned int t = 0; t < SP_SUMMARY_TABLES; t++)
		free(summary->rows[t].at);
	for (size_t i = 0; i < summary->n_phases; i++) {
		free(summary->phases[i].name);
		free(summary->phases[i].rows.at);
	}
	for (size_t i = 0; i < summary->n_nameless; i++) {
		free(summary->nameless[i].module);
		free(summary->nameless[i].path);
		free(summary->nameless[i].reason);
	}
	free(summary->nameless);
	free(summary->classes);
	free(summary->phases);
	free(summary->program);
	free(summary->path);
	free(summary->recordings);
	free(summary);
}
