/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * A server that takes profiles.  What it answers is untrusted.
 *
 * Pyroscope, or what takes profiles as it does: POST URL/ingest, with a pprof
 * profile as a form.  OTLP over HTTP, as collectors and others take it: POST
 * URL/v1development/profiles, with a compressed message.
 */
struct sp_receiver;

#define SP_RECEIVER_CONNECT_S   10
#define SP_RECEIVER_ANSWER_S    60 /* of all of it */
#define SP_RECEIVER_HEADERS_MAX 16u

struct sp_receiver_options {
	const char *url; /* that sp_receiver_check() takes */
	bool is_otlp;    /* else Pyroscope */
	/* Sent as "Authorization: Bearer", or NULL; ~/.netrc may have a user
	 * and a password. */
	const char *token;
	/* More headers, "NAME: VALUE", without line ends. */
	const char *headers[SP_RECEIVER_HEADERS_MAX];
	size_t n_headers;
	const char *ca_file; /* who signs its certificate; NULL: the system's */
};

/* "http://HOST:PORT" or "https://..." without user and password?  NULL: yes;
 * else what is wrong, to be read after "the URL ". */
const char *sp_receiver_check(const char *url);

/* `options` stays with the caller.  0; -ENOMEM and *err. */
int sp_receiver_new(const struct sp_receiver_options *options,
		    struct sp_receiver **ret, struct sp_error *err);
void sp_receiver_free(struct sp_receiver *to);

struct sp_receiver_profile {
	const char *name; /* "application{key=value,...}"; not for OTLP */
	uint64_t from_unix_s, until_unix_s;
	const void *data; /* pprof or OTLP, compressed */
	size_t bytes;
};

enum sp_receiver_answer {
	SP_RECEIVER_TAKEN,
	SP_RECEIVER_NOT_TAKEN, /* it said so, or does not have all of it */
	SP_RECEIVER_UNKNOWN,   /* it has all of it, and did not answer */
	SP_RECEIVER_DROPPED,   /* it has all of it, and did not keep all */
};

/* *err unless it was taken; -ECANCELED there if SIGINT or SIGTERM, which are
 * blocked, came meanwhile. */
enum sp_receiver_answer sp_receiver_send(
	struct sp_receiver *to, const struct sp_receiver_profile *profile,
	struct sp_error *err);

/* How long it asked to wait in its last answer, in seconds; 0: it did not. */
uint64_t sp_receiver_wait_s(const struct sp_receiver *to);
