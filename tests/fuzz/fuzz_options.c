/* SPDX-License-Identifier: MIT */
/*
 * Any command line: settings within their limits, or an error that says what is
 * wrong.  The input is one word a line, the name of the command first.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/target.h"
#include "report/options.h"

#define WORDS_MAX 64

static int split(const uint8_t *data, size_t size, char **words)
{
	int n = 0;

	while (size && n < WORDS_MAX) {
		const uint8_t *end = memchr(data, '\n', size);
		size_t line = end ? (size_t)(end - data) : size;

		words[n] = strndup((const char *)data, line);
		FUZZ_ASSERT(words[n++]);
		data += line + (end != NULL);
		size -= line + (end != NULL);
	}
	words[n] = NULL;
	return n;
}

static void check_moment(const struct sp_moment *m)
{
	FUZZ_ASSERT(m->kind != SP_MOMENT_SHARE || m->thousandths <= 100000);
}

static void check_question(const struct sp_question *q)
{
	check_moment(&q->at);
	check_moment(&q->from);
	check_moment(&q->to);
	check_moment(&q->tail);
	FUZZ_ASSERT(q->tail.kind != SP_MOMENT_END);
	FUZZ_ASSERT(q->view <= SP_VIEW_TEMPORARY);
	FUZZ_ASSERT(q->within_bytes == SP_NEVER || q->within_ns == SP_NEVER);
	FUZZ_ASSERT(q->min_size_bytes <= q->max_size_bytes);
	FUZZ_ASSERT(q->method < SP_METHOD_COUNT);
	FUZZ_ASSERT(q->confidence > 0 && q->confidence < 1);
}

static void check_options(const struct sp_options *o, bool is_export)
{
	if (o->help || o->version)
		return;
	check_question(&o->question);
	FUZZ_ASSERT(o->n_files >= 1);
	for (size_t i = 0; i < o->n_files; i++)
		FUZZ_ASSERT(o->files[i]);
	FUZZ_ASSERT(is_export == (o->format != NULL));
	FUZZ_ASSERT(!is_export || (o->output && o->output[0]));
	FUZZ_ASSERT(o->share >= 0 && o->share <= 1);
	FUZZ_ASSERT(!o->watch_ns || (o->watch_ns >= 100000000ull &&
				     o->watch_ns <= 86400000000000ull));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *words[WORDS_MAX + 1], *argv[WORDS_MAX + 1];
	const int argc = split(data, size, words);
	enum sp_page page = SP_PAGE_REPORT;
	struct sp_options options;
	struct sp_error err = {0};
	bool is_export;
	int r;

	if (!argc)
		return 0;
	memcpy(argv, words, sizeof(argv));
	is_export = strcmp(argv[0], "export") == 0;
	sp_page_parse(argv[0], &page);
	r = is_export ? sp_options_parse_export(argc, argv, &options, &err)
		      : sp_options_parse(page, argc, argv, &options, &err);
	FUZZ_ASSERT(r == 0 || r == -EINVAL);
	if (r == 0)
		check_options(&options, is_export);
	else
		FUZZ_ASSERT(err.message[0]);
	for (int i = 0; i < argc; i++)
		free(words[i]);
	return 0;
}
