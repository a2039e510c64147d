/* SPDX-License-Identifier: MIT */
#include "symbols/pattern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "symbols/home.h"

/* A name is short: a search that takes longer has a pattern with exponential
 * backtracking. */
#define MATCH_STEPS_MAX 1000000u

struct sp_pattern {
	const char *option;
	pcre2_code *code;
	pcre2_match_context *context;
	pcre2_match_data *match;
};

/* As in RE2: '$' is the end of the text, a line ends in '\n'. */
static int compile_pattern(struct sp_pattern *p, const char *text,
			   struct sp_error *err)
{
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	PCRE2_UCHAR why[128];
	PCRE2_SIZE offset = 0;
	int code = 0;

	if (!context)
		return sp_error_memory(err, NULL);
	pcre2_set_newline(context, PCRE2_NEWLINE_LF);
	p->code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
				PCRE2_UTF | PCRE2_MATCH_INVALID_UTF |
					PCRE2_DOLLAR_ENDONLY |
					PCRE2_NEVER_BACKSLASH_C,
				&code, &offset, context);
	pcre2_compile_context_free(context);
	if (p->code)
		return 0;
	pcre2_get_error_message(code, why, sizeof(why));
	return sp_error_set(err, -EINVAL, NULL,
			    "%s: %.100s after %zu character%s of %.80s",
			    p->option, (const char *)why, (size_t)offset,
			    offset == 1 ? "" : "s", text);
}

int sp_pattern_new(const char *option, const char *text,
		   struct sp_pattern **ret, struct sp_error *err)
{
	struct sp_pattern *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return sp_error_memory(err, NULL);
	p->option = option;
	r = compile_pattern(p, text, err);
	if (r < 0)
		goto failed;
	p->context = pcre2_match_context_create(NULL);
	p->match = pcre2_match_data_create(1, NULL);
	if (!p->context || !p->match) {
		r = sp_error_memory(err, NULL);
		goto failed;
	}
	pcre2_set_match_limit(p->context, MATCH_STEPS_MAX);
	*ret = p;
	return 0;
failed:
	sp_pattern_free(p);
	return r;
}

static int search_bytes(const struct sp_pattern *p, const char *text, size_t n,
			struct sp_error *err)
{
	int r = pcre2_match(p->code, (PCRE2_SPTR)text, n, 0, 0, p->match,
			    p->context);

	if (r >= 0)
		return 1;
	if (r == PCRE2_ERROR_NOMATCH)
		return 0;
	return sp_error_set(err, -EOVERFLOW, NULL,
			    "%s: the pattern takes too many steps to search "
			    "%.80s: make it simpler",
			    p->option, text);
}

int sp_pattern_search(const struct sp_pattern *p, const char *text,
		      struct sp_error *err)
{
	return search_bytes(p, text, strlen(text), err);
}

int sp_pattern_search_full(const struct sp_pattern *p, const char *full,
			   struct sp_error *err)
{
	const size_t n = sp_home_of(full).name_bytes;
	const int r = search_bytes(p, full, n, err);

	return r || !full[n] ? r : sp_pattern_search(p, full, err);
}

void sp_pattern_free(struct sp_pattern *p)
{
	if (!p)
		return;
	pcre2_code_free(p->code);
	pcre2_match_context_free(p->context);
	pcre2_match_data_free(p->match);
	free(p);
}
