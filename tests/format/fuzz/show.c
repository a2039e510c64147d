/* SPDX-License-Identifier: MIT */
#include "format/fuzz/show.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cli/advise.h"
#include "cli/options.h"
#include "cli/page.h"
#include "export/options.h"
#include "format/fuzz/target.h"
#include "support/pprof_walk.h"

void fuzz_check_text(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		FUZZ_ASSERT((uint8_t)text[i] >= ' ' ? text[i] != 0x7f
						    : text[i] == '\n');
}

void fuzz_check_json(const char *text, size_t n)
{
	json_error_t error;
	json_t *json = json_loadb(text, n, JSON_DECODE_INT_AS_REAL, &error);

	if (!json)
		fprintf(stderr, "%s\n%s\n", error.text, text);
	FUZZ_ASSERT(json_is_object(json));
	json_decref(json);
}

static void check_json_lines(const char *text, size_t n)
{
	const char *end = text + n;

	for (const char *line = text; line < end;) {
		const char *next = memchr(line, '\n', (size_t)(end - line));

		FUZZ_ASSERT(next);
		fuzz_check_json(line, (size_t)(next - line));
		line = next + 1;
	}
}

static void check_pprof(const char *data, size_t n)
{
	size_t n_bytes;
	uint8_t *bytes = pb_gunzip(data, n, &n_bytes);
	const char *problem;

	FUZZ_ASSERT(bytes);
	problem = pprof_problem(bytes, n_bytes);
	if (problem)
		fprintf(stderr, "%s\n", problem);
	FUZZ_ASSERT(!problem);
	free(bytes);
}

/* Bytes, which otlp_json shows as text. */
static void check_nothing(const char *data, size_t n)
{
	(void)data;
	(void)n;
}

/* Nothing that a profile says is markup: all pages have as much of it. */
static void check_html(const char *text, size_t n)
{
	static size_t of_first;
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += text[i] == '<';
	if (!of_first)
		of_first = count;
	FUZZ_ASSERT(count > 0 && count == of_first);
}

static const struct {
	const char *name;
	void (*check)(const char *text, size_t n);
} checks[] = {
	{"--json", fuzz_check_json}, {"json", fuzz_check_json},
	{"dhat", fuzz_check_json},   {"speedscope", fuzz_check_json},
	{"jsonl", check_json_lines}, {"pprof", check_pprof},
	{"html", check_html},        {"otlp_json", fuzz_check_json},
	{"otlp", check_nothing},
};

#define WORDS_MAX 4

/* A command, a format or the first option, and more options. */
struct shown {
	const char *words[WORDS_MAX];
};

static void check_output(const struct shown *shown, const char *text, size_t n)
{
	const size_t n_checks = sizeof(checks) / sizeof(checks[0]);

	for (size_t i = 0; i < n_checks * WORDS_MAX; i++) {
		const char *word = shown->words[i / n_checks];

		if (word && strcmp(word, checks[i % n_checks].name) == 0) {
			checks[i % n_checks].check(text, n);
			return;
		}
	}
	fuzz_check_text(text, n);
}

static void say_refusal(int r, char **argv, const struct sp_error *err)
{
	if (r < 0)
		fprintf(stderr, "%s: %s\n", argv[1], err->message);
	FUZZ_ASSERT(r == 0);
}

static int make_export(FILE *out, const struct sp_profile *p, int argc,
		       char **argv, struct sp_error *err)
{
	struct sp_export_request request;

	say_refusal(sp_export_options_parse(argc, argv, &request, err), argv,
		    err);
	return sp_export_write(out, p, &request, NULL, NULL, err);
}

static int make_page(FILE *out, const struct sp_profile *p, int argc,
		     char **argv, struct sp_error *err)
{
	struct sp_options options;

	say_refusal(sp_options_parse(argc, argv, &options, err), argv, err);
	return sp_page_print(out, p, &options, NULL, NULL, err);
}

/* Without the command's own name. */
static int make_advice(FILE *out, const struct sp_profile *p, int argc,
		       char **argv, struct sp_error *err)
{
	struct sp_advise_options options;
	bool can_tell;

	say_refusal(sp_advise_parse(argc - 1, argv + 1, &options, err), argv,
		    err);
	return sp_advise_print(out, p, &options, NULL, NULL, &can_tell, err);
}

static void show(const struct sp_profile *p, const struct shown *shown)
{
	const char *what = shown->words[0];
	const bool is_advice = strcmp(what, "advise") == 0;
	const bool is_export = sp_export_find(what);
	char *argv[WORDS_MAX + 5] = {strdup("report")};
	struct sp_error err = {0};
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);
	int argc = 1, r;

	FUZZ_ASSERT(out);
	for (int i = 0; i < WORDS_MAX && shown->words[i]; i++)
		argv[argc++] = strdup(shown->words[i]);
	argv[argc++] = strdup(p->path);
	argv[argc++] = strdup("--debug-path=/nonexistent");
	if (is_export)
		argv[argc++] = strdup("-o-");
	r = is_export   ? make_export(out, p, argc, argv, &err)
	    : is_advice ? make_advice(out, p, argc, argv, &err)
			: make_page(out, p, argc, argv, &err);
	FUZZ_ASSERT(r == 0 || err.message[0]);
	FUZZ_ASSERT(r == 0 || r == -ENODATA || r == -ERANGE || r == -ENOENT ||
		    (is_export && r == -EINVAL));
	fclose(out);
	if (r == 0)
		check_output(shown, text, n);
	free(text);
	/* They may have changed places. */
	while (argc > 0)
		free(argv[--argc]);
}

static const struct shown all[] = {
	{{"advise", "--error=1%"}},
	{{"advise", "--top=1", "--json"}},
	{{"--sort=cum", "--top=0"}},
	{{"--stacks=0"}},
	{{"--view=live", "--stacks=0"}},
	{{"--view=peak", "--top=0"}},
	{{"--at=50%", "--top=0"}},
	{{"--view=leaks", "--top=0", "--nodefraction=0"}},
	{{"--within=1ms", "--top=0"}},
	{{"--from=10%", "--to=90%"}},
	{{"--size=16-1M", "--top=0"}},
	{{"--estimator=p3", "--top=0"}},
	{{"--simultaneous", "--top=0"}},
	{{"--csv", "--top=0"}},
	{{"--timeline", "--ascii"}},
	{{"--timeline", "--csv"}},
	{{"--sizes", "--ascii"}},
	{{"--sizes", "--csv"}},
	{{"--json", "--ascii"}},
	{{"--json", "--view=peak"}},
	{{"--phase=load"}},
	{{"--thread=main", "--top=0"}},
	{{"--thread=1", "--timeline"}},
	{{"--view=live", "--at=snap"}},
	{{"--by=thread"}},
	{{"--by=size"}},
	{{"--granularity=file", "--top=0"}},
	{{"--granularity=line", "--sort=name"}},
	{{"--granularity=address", "--unit=B"}},
	{{"--focus=a", "--hide=x", "--top=0"}},
	{{"--prune-from=a", "--show-from=0"}},
	{{"top", "--nodefraction=0"}},
	{{"tree", "--nodefraction=0"}},
	{{"peek", "."}},
	{{"list", "."}},
	{{"traces"}},
	{{"stats"}},
	{{"tree", "--json", "--view=peak"}},
	{{"tree", "--csv"}},
	{{"peek", ".", "--json"}},
	{{"peek", ".", "--csv"}},
	{{"list", ".", "--json"}},
	{{"list", ".", "--csv"}},
	{{"traces", "--json"}},
	{{"stats", "--json"}},
	{{"--by=thread", "--csv"}},
	{{"pprof", "--pprof-error"}},
	{{"pprof", "--max-samples=2"}},
	{{"pprof", "--view=peak"}},
	{{"otlp", "--pprof-error"}},
	{{"otlp_json", "--view=peak"}},
	{{"speedscope", "--view=peak"}},
	{{"collapsed", "--metric=objects"}},
	{{"dhat", "--view=alloc"}},
	{{"massif", "--view=alloc"}},
	{{"heap_v2", "--view=alloc"}},
	{{"jsonl", "--view=alloc"}},
	{{"csv", "--view=alloc"}},
	{{"json", "--within=1K"}},
	{{"html"}},
};

#ifdef SP_FUZZ_SEARCH
#define STRIDE 8u
#else
#define STRIDE 1u
#endif

void fuzz_show(const struct sp_profile *profile, uint64_t choice)
{
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if ((choice + i) % STRIDE == 0)
			show(profile, &all[i]);
}
