/* SPDX-License-Identifier: MIT */
#pragma once

#include "serve/server.h"

/* The command line of sampleprof serve. */
struct serve_options {
	const char *token_file; /* NULL: not said */
	struct sp_server_options server;
};
