/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

#include "base/error.h"

/*
 * Requests to one server by HTTP, one at a time, with libcurl.  What a server
 * says is untrusted.  A silence of the time limit ends a request; so does
 * SIGINT or SIGTERM, where they are held back, after some seconds.
 */
struct sp_http;

struct sp_http_server {
	const char *name;     /* for messages */
	const char *url;      /* with no secret in it */
	const char *user;     /* NULL: none */
	const char *password; /* NULL: none; appears in no message */
	const char *ca_file;  /* NULL: those of the system */
	long timeout_s;
};

/* Strings are copied but for `name`.  0 and *ret, to be freed; -ENOMEM and
 * *err. */
int sp_http_new(const struct sp_http_server *server, struct sp_http **ret,
		struct sp_error *err);
void sp_http_free(struct sp_http *http);

/*
 * Begin a POST of `body`, which is packed by gzip and has to stay, to the
 * server's URL followed by `query` ("?a=b", escaped).  What was not read of an
 * answer before is forgotten.  0 when the server begins to answer with "200";
 * -ETIMEDOUT, -ECONNREFUSED, -EIO (another answer, which is in *err), -EPERM
 * (the server wants a user or password) and *err.
 */
int sp_http_post(struct sp_http *http, const char *query, const void *body,
		 size_t n, struct sp_error *err);

/* No request is on its way any more. */
void sp_http_stop(struct sp_http *http);

/* 0 if the answer is of that type; -EUCLEAN and *err, with what it says. */
int sp_http_expect(struct sp_http *http, const char *type,
		   struct sp_error *err);

/* The next bytes of the answer, all `n` of them.  1; 0 at its end, if no byte
 * was left; -EPIPE and *err if the answer is whole and ends amid them; -EIO and
 * others and *err if it was cut. */
int sp_http_read(struct sp_http *http, void *to, size_t n,
		 struct sp_error *err);

/* The rest of the answer as text for a message, until the next request. */
const char *sp_http_rest(struct sp_http *http);

/* Text for a query, escaped, to be freed with free(); NULL: no memory. */
char *sp_http_escape(const char *text);
