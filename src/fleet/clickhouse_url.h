/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"

/* clickhouse://[USER@]HOST[:PORT]/DATABASE[?NAME=VALUE[&...]] */
struct sp_clickhouse_url {
	char server[512]; /* http://HOST:PORT/ */
	char user[128];   /* "": the server's default */
	char database[64];
	char cluster[64]; /* "": one server */
	char ca_file[1024];
	char *password; /* NULL: none; to be released */
	long timeout_s;
};

/* `rest` is what follows the scheme.  0; -EINVAL and others and *err; to be
 * released in every case. */
int sp_clickhouse_url_parse(const char *rest, struct sp_clickhouse_url *ret,
			    struct sp_error *err);
void sp_clickhouse_url_done(struct sp_clickhouse_url *url);
