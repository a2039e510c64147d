/* SPDX-License-Identifier: MIT */
#include "compare/limit.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/parse.h"

static const char *const names[SP_LIMIT_KINDS] = {
	[SP_LIMIT_ALLOC_BYTES] = "alloc_bytes",
	[SP_LIMIT_ALLOC_OBJECTS] = "alloc_objects",
	[SP_LIMIT_PEAK_BYTES] = "peak_bytes",
	[SP_LIMIT_LIVE_BYTES] = "live_bytes",
	[SP_LIMIT_TEMPORARY_BYTES] = "temporary_bytes",
	[SP_LIMIT_SITES] = "sites",
	[SP_LIMIT_SITE] = "site",
	[SP_LIMIT_MODULE] = "module",
	[SP_LIMIT_LEAK_RATE] = "leak_rate",
};

#define KNOWN                                                                  \
	"alloc_bytes, alloc_objects, peak_bytes, live_bytes, "                 \
	"temporary_bytes, leak_rate, leak_rate(REGEX), sites, site(REGEX), "   \
	"module(REGEX)"

bool sp_limit_is_exact(const struct sp_limit *limit)
{
	return limit->kind == SP_LIMIT_ALLOC_BYTES ||
	       limit->kind == SP_LIMIT_ALLOC_OBJECTS;
}

bool sp_limit_is_bytes(const struct sp_limit *limit)
{
	return limit->kind != SP_LIMIT_ALLOC_OBJECTS;
}

/* A copy of text[0..n) without white space around it; NULL: no memory. */
static char *trimmed_text(const char *text, size_t n)
{
	while (n && strchr(" \t\r\n", text[n - 1]))
		n--;
	while (n && strchr(" \t", *text)) {
		text++;
		n--;
	}
	return strndup(text, n);
}

/* ---- the bound ---- */

static bool parse_amount(const struct sp_limit *limit, const char *text,
			 double *ret)
{
	uint64_t amount = 0;

	if (!(sp_limit_is_bytes(limit) ? sp_parse_size : sp_parse_u64)(text,
								       &amount))
		return false;
	*ret = (double)amount;
	return true;
}

/* "3%" */
static bool parse_growth(char *text, double *ret)
{
	const size_t n = strlen(text);
	uint64_t thousandths;

	if (!n || text[n - 1] != '%')
		return false;
	text[n - 1] = '\0';
	if (!sp_parse_milli(text, &thousandths))
		return false;
	*ret = (double)thousandths / 100000;
	return true;
}

/* "3%", "64K", "3%&64K" */
static bool parse_allowance(struct sp_limit *limit, char *text)
{
	char *both = strchr(text, '&');

	if (both) {
		*both = '\0';
		return parse_growth(text, &limit->allowance.growth) &&
		       parse_amount(limit, both + 1, &limit->allowance.amount);
	}
	return strchr(text, '%')
		       ? parse_growth(text, &limit->allowance.growth)
		       : parse_amount(limit, text, &limit->allowance.amount);
}

static int parse_bound(struct sp_limit *limit, char *bound,
		       struct sp_error *err)
{
	limit->both_ways = strncmp(bound, "+-", 2) == 0;
	limit->is_cap = *bound != '+';
	if (limit->is_cap
		    ? !parse_amount(limit, bound, &limit->cap)
		    : !parse_allowance(limit, bound + 1 + limit->both_ways))
		return sp_error_set(
			err, -EINVAL, NULL,
			"the limit %.60s is not valid: give +3%%, +64K, "
			"+3%%&64K (both), +-3%% (either way), or 24M (at most)",
			limit->text);
	if (!limit->is_cap && limit->kind == SP_LIMIT_LEAK_RATE)
		return sp_error_set(
			err, -EINVAL, NULL,
			"the limit %.60s: leaks are not compared with a "
			"baseline; leak_rate=10K is at most 10 KiB a second",
			limit->text);
	if (limit->phase && (limit->kind == SP_LIMIT_PEAK_BYTES ||
			     limit->kind == SP_LIMIT_LEAK_RATE ||
			     limit->kind == SP_LIMIT_LIVE_BYTES ||
			     limit->kind == SP_LIMIT_TEMPORARY_BYTES))
		return sp_error_set(err, -EINVAL, NULL,
				    "the limit %.60s: only allocations have "
				    "phases: alloc_bytes, alloc_objects, "
				    "sites, site(REGEX), module(REGEX)",
				    limit->text);
	if (limit->both_ways && limit->allowance.growth >= 1)
		return sp_error_set(err, -EINVAL, NULL,
				    "the limit %.60s: nothing can shrink by "
				    "100 %%",
				    limit->text);
	if (limit->is_cap && limit->kind == SP_LIMIT_SITES)
		return sp_error_set(err, -EINVAL, NULL,
				    "the limit %.60s: sites are compared with "
				    "a baseline; a cap is for site(REGEX)",
				    limit->text);
	return 0;
}

/* ---- the name ---- */

static int parse_pattern(struct sp_limit *limit, char *open,
			 struct sp_error *err)
{
	char *close = limit->name + strlen(limit->name) - 1;
	int r;

	if (*close != ')')
		return sp_error_set(err, -EINVAL, NULL,
				    "the limit %.60s: no ')' ends the pattern",
				    limit->text);
	*close = '\0';
	r = sp_pattern_new("the limit's pattern", open + 1, &limit->pattern,
			   err);
	*close = ')';
	return r;
}

static bool may_have_pattern(enum sp_limit_kind kind, bool has)
{
	const bool needs = kind == SP_LIMIT_SITE || kind == SP_LIMIT_MODULE;

	return has == needs || kind == SP_LIMIT_LEAK_RATE;
}

static int parse_name(struct sp_limit *limit, struct sp_error *err)
{
	char *open = strchr(limit->name, '(');
	char *end = open ? strrchr(limit->name, ')') : limit->name;
	char *at = end ? strchr(end, '@') : NULL;
	size_t n;

	if (at) {
		*at = '\0';
		limit->phase = at + 1;
	}
	n = open ? (size_t)(open - limit->name) : strlen(limit->name);
	for (int i = 0; i < SP_LIMIT_KINDS; i++) {
		if (strlen(names[i]) != n ||
		    strncmp(names[i], limit->name, n) != 0 ||
		    !may_have_pattern((enum sp_limit_kind)i, open != NULL))
			continue;
		limit->kind = (enum sp_limit_kind)i;
		return open ? parse_pattern(limit, open, err) : 0;
	}
	return sp_error_set(err, -EINVAL, NULL,
			    "the limit %.40s does not begin with one of " KNOWN,
			    limit->text);
}

static int parse_limit(struct sp_limit *limit, struct sp_error *err)
{
	char *equals = strrchr(limit->text, '=');
	char *bound;
	int r;

	if (!equals)
		return sp_error_set(err, -EINVAL, NULL,
				    "the limit %.60s has no '=': it is "
				    "NAME=BOUND, such as alloc_bytes=+3%%",
				    limit->text);
	limit->name = trimmed_text(limit->text, (size_t)(equals - limit->text));
	bound = trimmed_text(equals + 1, strlen(equals + 1));
	r = limit->name && bound ? parse_name(limit, err)
				 : sp_error_memory(err, NULL);
	if (!r)
		r = parse_bound(limit, bound, err);
	free(bound);
	return r;
}

static void limit_done(struct sp_limit *limit)
{
	sp_pattern_free(limit->pattern);
	free(limit->text);
	free(limit->name);
}

int sp_limits_add(struct sp_limits *limits, const char *text,
		  struct sp_error *err)
{
	struct sp_limit limit = {.text = trimmed_text(text, strlen(text))};
	void *array = limits->at;
	int r;

	if (!limit.text || sp_array_reserve(&array, &limits->room, limits->n,
					    sizeof(*limits->at)) < 0) {
		free(limit.text);
		return sp_error_memory(err, NULL);
	}
	limits->at = array;
	r = parse_limit(&limit, err);
	if (r < 0)
		limit_done(&limit);
	else
		limits->at[limits->n++] = limit;
	return r;
}

/* ---- files ---- */

/* Cut a comment off: a '#' can also be part of a pattern. */
static void cut_comment(char *line)
{
	for (char *c = line; *c; c++)
		if (*c == '#' && (c == line || c[-1] == ' ' || c[-1] == '\t')) {
			*c = '\0';
			return;
		}
}

static int read_line(struct sp_limits *limits, char *line, const char *path,
		     unsigned int number, struct sp_error *err)
{
	char message[sizeof(err->message)];
	int r;

	cut_comment(line);
	if (!line[strspn(line, " \t\r\n")])
		return 0;
	r = sp_limits_add(limits, line, err);
	if (r < 0) {
		snprintf(message, sizeof(message), "%s", err->message);
		return sp_error_set(err, r, path, "line %u: %.230s", number,
				    message);
	}
	limits->at[limits->n - 1].file = path;
	limits->at[limits->n - 1].line = number;
	return 0;
}

int sp_limits_read(struct sp_limits *limits, const char *path,
		   struct sp_error *err)
{
	FILE *file = fopen(path, "re");
	unsigned int number = 0;
	char *line = NULL;
	size_t room = 0;
	int r = 0;

	if (!file)
		return sp_error_set(err, -errno, path, "cannot read: %s",
				    strerror(errno));
	while (!r && getline(&line, &room, file) >= 0)
		r = read_line(limits, line, path, ++number, err);
	if (!r && ferror(file))
		r = sp_error_set(err, -EIO, path, "cannot read all of it");
	free(line);
	fclose(file);
	return r;
}

void sp_limits_done(struct sp_limits *limits)
{
	for (size_t i = 0; i < limits->n; i++)
		limit_done(&limits->at[i]);
	free(limits->at);
	*limits = (struct sp_limits){0};
}
