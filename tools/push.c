/* SPDX-License-Identifier: MIT */
/* sampleprof push: what processes allocate, sent to a server. */
#include "serve/push.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/commands.h"
#include "tools/console.h"
#include "tools/push.h"

static bool is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int push_words(const struct push_options *o, const char *const *words,
		      size_t n)
{
	char dir[4096] = "", token[SP_CONSOLE_TOKEN_MAX];
	struct sp_push_options push = {.to = o->to,
				       .interval_ns = o->interval_ns};
	struct sp_error err;

	for (size_t i = 0; n > 1 && i < n; i++)
		if (is_directory(words[i]))
			return sp_console_fail_usage(
				"push takes one directory, or files", "push");
	if (!n || is_directory(words[0])) {
		if (n && snprintf(dir, sizeof(dir), "%s%s", words[0],
				  words[0][strlen(words[0]) - 1] == '/'
					  ? ""
					  : "/") >= (int)sizeof(dir))
			return sp_console_fail(
				"the name of the directory is too long");
		push.dir = dir;
	} else {
		push.files = words;
		push.n_files = n;
	}
	if (sp_console_read_token(o->token_file,
				  o->otlp ? NULL
					  : getenv("PYROSCOPE_AUTH_TOKEN"),
				  token, &err) < 0)
		return sp_console_fail_with(&err);
	push.to.token = *token ? token : NULL;
	return sp_push_run(&push, stderr, &err) < 0 ? sp_console_fail_with(&err)
						    : EXIT_FINE;
}

int run_push(int argc, char **argv)
{
	struct push_options options = {.interval_ns = SP_PUSH_INTERVAL_NS};
	const char *const *words;
	const char *wrong;
	char text[300];
	size_t n;
	int code;

	code = sp_console_parse(&push_line, "push", argc, argv, &options,
				&words, &n);
	if (code >= 0)
		return code;
	if (!options.pyroscope == !options.otlp)
		return sp_console_fail_usage(
			options.otlp ? "--otlp cannot be used with --pyroscope"
				     : "where to? --otlp URL or --pyroscope "
				       "URL names a server",
			"push");
	options.to.is_otlp = options.otlp;
	options.to.url = options.otlp ? options.otlp : options.pyroscope;
	wrong = sp_receiver_check(options.to.url);
	if (wrong) {
		/* The URL may have a password: it is not shown. */
		snprintf(text, sizeof(text), "--%s: the URL %s",
			 options.otlp ? "otlp" : "pyroscope", wrong);
		return sp_console_fail_usage(text, "push");
	}
	return push_words(&options, words, n);
}
