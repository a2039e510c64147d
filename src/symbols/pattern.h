/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"

/*
 * One regular expression, compiled: the syntax of PCRE2, of which pprof's RE2
 * is a part for all that is practical.  Text is UTF-8; bytes that are not match
 * nothing.
 */
struct sp_pattern;

/* `option` begins the message of an error ("--focus").  0 and *ret, to be freed
 * by the caller; -EINVAL and *err, which says what is wrong and where; -ENOMEM
 * and *err. */
int sp_pattern_new(const char *option, const char *text,
		   struct sp_pattern **ret, struct sp_error *err);

/* 1: found in the text; 0: not; -EOVERFLOW and *err: the search takes more
 * steps than any sensible pattern. */
int sp_pattern_search(const struct sp_pattern *pattern, const char *text,
		      struct sp_error *err);

void sp_pattern_free(struct sp_pattern *pattern);
