/* SPDX-License-Identifier: MIT */
/* sampleprof serve: profiles of a directory over HTTP. */
#include "tools/serve.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "control/launch.h"
#include "serve/address.h"
#include "tools/commands.h"
#include "tools/console.h"

static void say_ready(void *arg, unsigned int port)
{
	const char *listen = arg;
	const char *colon = strrchr(listen, ':');

	if (sp_address_is_unix(listen))
		fprintf(stderr, "%s: serving /metrics at %s; Ctrl-C ends it\n",
			sp_console_program(), listen);
	else
		fprintf(stderr,
			"%s: serving http://%.*s:%u/metrics; Ctrl-C ends it\n",
			sp_console_program(), (int)(colon - listen), listen,
			port);
}

int run_serve(int argc, char **argv)
{
	char dir[SP_LAUNCH_PATH_MAX], token[SP_CONSOLE_TOKEN_MAX];
	struct serve_options options = {
		.server = {.listen = SP_SERVER_LISTEN,
			   .keep_ns = SP_SERVER_KEEP_NS,
			   .connections = SP_SERVER_CONNECTIONS,
			   .dir = dir}};
	const char *const *words;
	struct sp_error err;
	size_t n;
	int code;

	code = sp_console_parse(&serve_line, "serve", argc, argv, &options,
				&words, &n);
	if (code >= 0)
		return code;
	if (n > 1)
		return sp_console_fail_usage("serve takes one directory",
					     "serve");
	if (!sp_address_check(options.server.listen))
		return sp_console_fail_usage(
			"--listen takes an address and a port, as numbers: "
			"127.0.0.1:9400 or [::1]:9400, or unix:PATH",
			"serve");
	if (sp_console_read_token(options.token_file, NULL, token, &err) < 0)
		return sp_console_fail_with(&err);
	options.server.token = *token ? token : NULL;
	if (n && access(words[0], R_OK | X_OK) != 0) {
		sp_error_set(&err, -errno, words[0], "cannot be read: %s",
			     strerror(errno));
		return sp_console_fail_with(&err);
	}
	if (n)
		snprintf(dir, sizeof(dir), "%s%s", words[0],
			 words[0][0] && words[0][strlen(words[0]) - 1] != '/'
				 ? "/"
				 : "");
	else
		dir[0] = '\0';
	if (sp_server_run(&options.server, say_ready,
			  (void *)(uintptr_t)options.server.listen, &err) < 0)
		return sp_console_fail_with(&err);
	return EXIT_FINE;
}
