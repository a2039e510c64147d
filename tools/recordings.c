/* SPDX-License-Identifier: MIT */
#include "tools/recordings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "control/files.h"
#include "model/whole.h"
#include "read/load.h"
#include "read/source.h"
#include "report/load.h"
#include "text/text.h"

int recordings_analyse(const char *path, struct sp_profile **ret_profile,
		       struct sp_analysis **ret_analysis, struct sp_error *err)
{
	static const struct sp_load_needs needs = {
		.no_code = true, .no_stacks = true, .while_written = true};
	struct sp_question question;
	int r;

	sp_question_init(&question);
	r = sp_load(&path, 1, &question, &needs, NULL, NULL, ret_profile, err);
	if (r < 0)
		return r;
	r = sp_analysis_new(*ret_profile, &question, SP_VIEW_ALLOC,
			    ret_analysis, err);
	if (r < 0)
		sp_profile_free(*ret_profile);
	return r;
}

static char *copy_text(const char *text)
{
	return text ? strdup(text) : NULL;
}

/* NULL: there are none, or no memory. */
static char *join_labels(const struct sp_profile *p)
{
	const char *key, *value;
	char *text = NULL;
	size_t size;
	FILE *out;

	if (!sp_profile_label(p, 0, &value))
		return NULL;
	out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	for (size_t i = 0; (key = sp_profile_label(p, i, &value)); i++)
		fprintf(out, "%s%s=%s", i ? ", " : "", key, value);
	fclose(out);
	return text;
}

/* What is behind the program in a command; NULL: nothing. */
static char *copy_arguments(const char *command)
{
	const char *blank =
		command && *command != '\'' ? strchr(command, ' ') : NULL;

	return blank && blank[1] ? strdup(blank + 1) : NULL;
}

static bool describe_recording(struct recording *to, const char *path,
			       const struct sp_profile *p)
{
	const char *title = sp_profile_info(p, "title.end");
	const char *parent = sp_profile_info(p, "parent");

	*to = (struct recording){
		.path = strdup(path),
		.program = strdup(sp_text_base_name(p->program)),
		.title = copy_text(title ? title : sp_profile_info(p, "title")),
		.labels = join_labels(p),
		.arguments = copy_arguments(p->command),
		.pid = p->pid,
		.start_unix_ns = p->start_unix_ns,
		.duration_ns = p->duration_ns,
		.alloc_bytes = p->exact_alloc_bytes,
		.is_exact = sp_profile_is_exact(p),
		.end = p->end,
		.end_kind = p->end_kind,
		.is_cut = p->is_cut,
		.unseen = sp_profile_unseen(p),
	};
	if (!parent || !sp_parse_u64(parent, &to->parent))
		to->parent = 0;
	return to->path && to->program;
}

static void take_live(struct recording *to, const struct sp_analysis *a)
{
	to->has_live = a->live != NULL;
	if (!a->live)
		return;
	to->live_bytes = sp_estimate_bytes(&a->how, &a->live->all);
	to->live_samples = a->live->all.all.samples;
	to->live_is_unknown = a->live->all.is_unknown;
}

static void free_recording(struct recording *r)
{
	free(r->path);
	free(r->program);
	free(r->title);
	free(r->labels);
	free(r->arguments);
}

static bool is_of_run(const struct sp_profile *profile, const char *run)
{
	const char *of = sp_profile_info(profile, "setting.run");

	return !run || (of && strcmp(of, run) == 0);
}

/* A file may have gone, or be half written. */
static bool add_recording(struct recordings *to, const char *path,
			  const char *run)
{
	static const struct sp_plan facts = {
		.no_code = true, .no_samples = true, .while_written = true};
	struct recording *next = &to->list[to->n];
	struct sp_analysis *analysis = NULL;
	struct sp_profile *profile;
	struct sp_error err;
	bool is_fine = true;
	const int r = run ? sp_profile_read(&path, 1, &facts, NULL, NULL,
					    &profile, &err)
			  : recordings_analyse(path, &profile, &analysis, &err);

	if (r < 0)
		return true;
	if (is_of_run(profile, run)) {
		is_fine = describe_recording(next, path, profile);
		to->n++;
	}
	if (analysis)
		take_live(next, analysis);
	sp_analysis_free(analysis);
	sp_profile_free(profile);
	return is_fine;
}

int recordings_find(const char *dir, uint64_t since_unix_ns, const char *run,
		    struct recordings *ret, struct sp_error *err)
{
	struct sp_files files;
	bool is_fine = true;
	int r = sp_files_list(dir, since_unix_ns, &files, err);

	sp_source_are_found();

	*ret = (struct recordings){.n = 0};
	if (r < 0)
		return r;
	ret->list = calloc(files.n + 1, sizeof(*ret->list));
	if (!ret->list) {
		sp_files_free(&files);
		return sp_error_memory(err, NULL);
	}
	for (size_t i = 0; is_fine && i < files.n; i++)
		is_fine = add_recording(ret, files.paths[i], run);
	sp_files_free(&files);
	if (is_fine)
		return 0;
	recordings_free(ret);
	return sp_error_memory(err, NULL);
}

void recordings_free(struct recordings *recordings)
{
	for (size_t i = 0; i < recordings->n; i++)
		free_recording(&recordings->list[i]);
	free(recordings->list);
	*recordings = (struct recordings){.n = 0};
}

/* Equal ones by name, so that the order does not depend on the directory's. */
int recordings_by_bytes(const void *a, const void *b)
{
	const struct recording *x = a, *y = b;

	if (x->alloc_bytes != y->alloc_bytes)
		return x->alloc_bytes < y->alloc_bytes ? 1 : -1;
	return strcmp(x->path, y->path);
}

int recordings_by_start(const void *a, const void *b)
{
	const struct recording *x = a, *y = b;

	if (x->start_unix_ns != y->start_unix_ns)
		return x->start_unix_ns < y->start_unix_ns ? -1 : 1;
	return strcmp(x->path, y->path);
}
