/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"

/*
 * A compiled regular expression in the syntax of PCRE2, which in practice
 * includes pprof's RE2.  Text is UTF-8; bytes that are not valid UTF-8 match
 * nothing.
 */
struct sp_pattern;

/* `option` begins the message of an error ("--focus").  0 and *ret, to be freed
 * by the caller; -EINVAL and *err, which says what is wrong and where; -ENOMEM
 * and *err. */
int sp_pattern_new(const char *option, const char *text,
		   struct sp_pattern **ret, struct sp_error *err);

/* 1: found in the text; 0: not found; -EOVERFLOW and *err: the search took too
 * many steps. */
int sp_pattern_search(const struct sp_pattern *pattern, const char *text,
		      struct sp_error *err);

/* The same of a function's full name, with its home or without
 * (symbols/home.h). */
int sp_pattern_search_full(const struct sp_pattern *pattern, const char *full,
			   struct sp_error *err);

void sp_pattern_free(struct sp_pattern *pattern);
