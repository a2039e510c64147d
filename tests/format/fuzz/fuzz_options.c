/* SPDX-License-Identifier: MIT */
/*
 * A command line: settings within their limits, or an error that says what is
 * wrong.
 *
 * The input is one word a line, the name of the command first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "export/options.h"
#include "format/fuzz/target.h"

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

static void check_files(const char *const *files, size_t n)
{
	FUZZ_ASSERT(n >= 1);
	for (size_t i = 0; i < n; i++)
		FUZZ_ASSERT(files[i]);
}

static int parse_report(int argc, char **argv, struct sp_error *err)
{
	struct sp_options o;
	int r = sp_options_parse(argc, argv, &o, err);

	if (r)
		return r;
	check_question(&o.question);
	check_files(o.files, o.n_files);
	FUZZ_ASSERT(o.share >= 0 && o.share <= 1);
	FUZZ_ASSERT(!o.watch_ns || (o.watch_ns >= 100000000ull &&
				    o.watch_ns <= 86400000000000ull));
	return r;
}

static int parse_export(int argc, char **argv, struct sp_error *err)
{
	struct sp_export_request o;
	int r = sp_export_options_parse(argc, argv, &o, err);

	if (r)
		return r;
	check_question(&o.question);
	check_files(o.files, o.n_files);
	FUZZ_ASSERT(o.format && o.output && o.output[0]);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char program[] = "report";
	char *words[WORDS_MAX + 1], *argv[WORDS_MAX + 2] = {program};
	const int n = split(data, size, words);
	struct sp_error err = {0};
	int r;

	if (!n)
		return 0;
	memcpy(argv + 1, words, sizeof(words));
	r = strcmp(argv[1], "export") == 0 ? parse_export(n, argv + 1, &err)
					   : parse_report(n + 1, argv, &err);
	FUZZ_ASSERT(r >= 0 || (r == -EINVAL && err.message[0]));
	for (int i = 0; i < n; i++)
		free(words[i]);
	return 0;
}
