/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * A Pyroscope server, or what takes profiles as it does: POST URL/ingest, with
 * a pprof profile as a form.  What it answers is untrusted.
 */
struct sp_pyroscope;

#define SP_PYROSCOPE_CONNECT_S 10
#define SP_PYROSCOPE_ANSWER_S  60 /* of all of it */

/* "http://HOST:PORT" or "https://..." without user and password?  NULL: yes;
 * else what is wrong, to be read after "the URL ". */
const char *sp_pyroscope_check(const char *url);

/* `url` was checked.  `token` is sent to it ("Authorization: Bearer"), or NULL;
 * ~/.netrc may have a user and a password.  0; -ENOMEM and *err. */
int sp_pyroscope_new(const char *url, const char *token,
		     struct sp_pyroscope **ret, struct sp_error *err);
void sp_pyroscope_free(struct sp_pyroscope *to);

struct sp_pyroscope_profile {
	const char *name; /* "application{key=value,...}" */
	uint64_t from_unix_s, until_unix_s;
	const void *data; /* pprof, compressed */
	size_t bytes;
};

enum sp_pyroscope_answer {
	SP_PYROSCOPE_TAKEN,
	SP_PYROSCOPE_NOT_TAKEN, /* it said so, or does not have all of it */
	SP_PYROSCOPE_UNKNOWN,   /* it has all of it, and did not answer */
};

/* *err unless it was taken; -ECANCELED there if SIGINT or SIGTERM, which are
 * blocked, came meanwhile. */
enum sp_pyroscope_answer sp_pyroscope_send(
	struct sp_pyroscope *to, const struct sp_pyroscope_profile *profile,
	struct sp_error *err);
