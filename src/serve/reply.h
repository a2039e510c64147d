/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What the server answers: figures of a directory, and profiles in it.  Names
 * of functions are kept between requests.
 */
struct sp_replies;

struct sp_replies *sp_replies_new(const char *dir, uint64_t keep_ns,
				  bool no_classes); /* NULL without memory */
void sp_replies_free(struct sp_replies *s);

enum sp_reply_kind {
	SP_REPLY_INDEX,
	SP_REPLY_METRICS,
	SP_REPLY_OPEN_METRICS,
	SP_REPLY_PROFILE,
};

struct sp_reply_request {
	enum sp_reply_kind kind;
	const char *view;
	uint64_t pid;     /* 0: not said */
	uint64_t seconds; /* 0: the whole run */
	/* Of the process that was chosen. */
	char path[4200];
	uint64_t start_unix_ns;
	uint64_t from_ms;
	bool is_running;
};

/* A status, and a text to be freed; NULL: there was no memory. */
struct sp_reply {
	unsigned int status;
	const char *type;
	char *text;
	size_t bytes;
};

/* `format` makes lines of text; what is untrusted in them is cleaned. */
void __attribute__((format(printf, 3, 4)))
sp_reply_text(struct sp_reply *reply, unsigned int status, const char *format,
	      ...);

/* What needs the directory: for one thread at a time.  Of a profile it chooses
 * the process: true if it is to be written then, after request->seconds. */
bool sp_replies_read(struct sp_replies *s, struct sp_reply_request *request,
		     struct sp_reply *reply);

/* Write that profile: for one thread at a time, also beside the first. */
void sp_replies_write(struct sp_replies *s,
		      const struct sp_reply_request *request,
		      struct sp_reply *reply);

/* Read a large file for which it is time, if there is one: for a third thread.
 */
bool sp_replies_read_slow(struct sp_replies *s);
