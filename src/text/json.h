/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "stats/estimator.h"

/*
 * A writer that knows where commas and line ends go.  Initialise it by
 * sp_json_begin(), or with `out` and is_first = true.  While `flat` is not 0,
 * all stays on one line, until the group of that depth is closed.  Write errors
 * stay in the stream.
 */
struct sp_json {
	FILE *out;
	unsigned int depth;
	unsigned int flat;
	bool is_first; /* in the present object or array */
};

/* A document that is an object, which is open then; and its end, with that of
 * the line. */
struct sp_json sp_json_begin(FILE *out);
void sp_json_end(struct sp_json *json);

/* Begin an object ('{') or array ('['); `key` is NULL in an array, here and
 * below. */
void sp_json_open(struct sp_json *json, const char *key, char bracket);
void sp_json_open_flat(struct sp_json *json, const char *key, char bracket);
void sp_json_close(struct sp_json *json, char bracket);

/* Untrusted text, or null for NULL.  '<', '>', '&' and every character that
 * sp_text_is_unsafe() are \uNNNN; a byte that is not UTF-8 becomes \ufffd. */
void sp_json_string(struct sp_json *json, const char *key, const char *text);

void sp_json_u64(struct sp_json *json, const char *key, uint64_t value);
void sp_json_bool(struct sp_json *json, const char *key, bool value);
void sp_json_null(struct sp_json *json, const char *key);

/* A number that is there, or null. */
void sp_json_u64_if(struct sp_json *json, const char *key, bool is_there,
		    uint64_t value);

/* The digits of sp_figure_digits(); null if it is not finite. */
void sp_json_double(struct sp_json *json, const char *key, double value);

/* The three keys of it, in an object that has others as well. */
void sp_json_limits(struct sp_json *json, struct sp_interval interval);

/* {"value": ..., "lo": ..., "hi": ...} on one line */
void sp_json_interval(struct sp_json *json, const char *key,
		      struct sp_interval interval);

/* Nanoseconds, or null for SP_NEVER. */
void sp_json_time(struct sp_json *json, const char *key, uint64_t ns);
