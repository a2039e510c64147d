/* SPDX-License-Identifier: MIT */
/* The limit on leaks: each function of each new run by itself.  A function that
 * fills or is steady is within any limit; so is one that cannot be more. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "compare/check.h"
#include "text/text.h"

SP_ORDER(compare_culprits, struct sp_culprit, SP_DOWN(new.value));

static bool is_same(const struct sp_culprit *c, const struct sp_leak_rate *rate)
{
	return strcmp(c->name, rate->name) == 0;
}

/* All runs of a side are about the same functions: show the fastest growth. */
static int add_culprit(struct sp_finding *f, const struct sp_leak_rate *rate)
{
	struct sp_culprit *c = f->culprits;
	char *name;

	while (c < f->culprits + f->n_culprits && !is_same(c, rate))
		c++;
	if (c == f->culprits + f->n_culprits) {
		name = strdup(rate->name);
		if (!name)
			return -ENOMEM;
		*c = (struct sp_culprit){.name = name,
					 .is_certain = true,
					 .is_comparable = true};
		f->n_culprits++;
	} else if (rate->per_s.value <= c->new.value) {
		return 0;
	}
	c->new = rate->per_s;
	c->change = rate->per_s;
	c->p = rate->p;
	return 0;
}

struct tally {
	uint64_t longest_ns; /* a run that decides all open functions */
	size_t n_unknown;    /* those for which that is not known */
	size_t n_matched;    /* those that the pattern means */
	size_t n_unnamed; /* those that it may mean, and that may leak more */
};

/* "app+0x1149": its name is not known. */
static bool is_unnamed(const struct sp_leak_rate *rate)
{
	const char *plus = strrchr(rate->name, '+');

	return plus && strncmp(plus, "+0x", 3) == 0;
}

static bool may_leak_more(const struct sp_leak_rate *rate, double cap)
{
	return (rate->verdict == SP_LEAK_LEAK ||
		rate->verdict == SP_LEAK_UNDECIDED) &&
	       rate->per_s.hi > cap;
}

static int judge_rate(struct sp_finding *f, const struct sp_leak_rate *rate,
		      struct tally *tally)
{
	const double cap = f->limit->cap;
	const bool is_leak = rate->verdict == SP_LEAK_LEAK;

	if (!may_leak_more(rate, cap))
		return 0;
	if (is_leak && rate->per_s.lo > cap)
		return add_culprit(f, rate);
	f->n_undecided++;
	tally->n_unknown += !is_leak && !rate->longer_ns;
	if (rate->longer_ns > tally->longest_ns)
		tally->longest_ns = rate->longer_ns;
	return 0;
}

static int judge_run(struct sp_finding *f, const struct sp_summary *run,
		     struct tally *tally, struct sp_error *err)
{
	const struct sp_pattern *pattern = f->limit->pattern;

	for (size_t i = 0; i < run->n_leak_rates; i++) {
		const struct sp_leak_rate *rate = &run->leak_rates[i];
		int r = pattern ? sp_pattern_search_full(pattern, rate->name,
							 err)
				: 1;

		if (r > 0) {
			tally->n_matched++;
			r = judge_rate(f, rate, tally);
		} else if (!r && is_unnamed(rate)) {
			tally->n_unnamed += may_leak_more(rate, f->limit->cap);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static void say_undecided(struct sp_finding *f, const struct tally *tally)
{
	if (tally->longest_ns && !tally->n_unknown)
		sp_check_cannot_tell(f,
				     "%zu function%s may leak more: runs that "
				     "are %s longer would decide",
				     f->n_undecided,
				     sp_text_plural(f->n_undecided),
				     sp_text_duration(tally->longest_ns).text);
	else
		sp_check_cannot_tell(f,
				     "%zu function%s may leak more: longer "
				     "runs, or a shorter period, tell more",
				     f->n_undecided,
				     sp_text_plural(f->n_undecided));
}

int sp_check_leaks(const struct sp_checker *c, struct sp_finding *f)
{
	const struct sp_side *new = &c->pair->new;
	struct tally tally = {.n_matched = 0};
	size_t room = 1;
	int r = 0;

	for (size_t i = 0; i < new->n; i++) {
		room += new->run[i]->n_leak_rates;
		if (new->run[i]->has_leaks)
			continue;
		sp_check_cannot_tell(f, "%s",
				     new->run[i]->why_no_leaks
					     ? new->run[i]->why_no_leaks
					     : "a baseline has no leak rates");
		return 0;
	}
	f->n_culprits = 0;
	f->culprits = calloc(room, sizeof(*f->culprits));
	if (!f->culprits)
		return -ENOMEM;
	for (size_t i = 0; r >= 0 && i < new->n; i++)
		r = judge_run(f, new->run[i], &tally, c->err);
	if (r < 0)
		return r;
	qsort(f->culprits, f->n_culprits, sizeof(*f->culprits),
	      compare_culprits);
	if (f->n_culprits) {
		f->verdict = SP_VERDICT_REGRESSION;
		f->has_figures = true;
		f->new = f->culprits[0].new;
		snprintf(f->why, sizeof(f->why),
			 "bytes a second: %zu function%s, see sampleprof leaks",
			 f->n_culprits, sp_text_plural(f->n_culprits));
	} else if (f->n_undecided) {
		say_undecided(f, &tally);
	} else if (tally.n_unnamed) {
		sp_check_cannot_tell(f, "functions without names may leak "
					"more");
	} else if (!tally.n_matched && f->limit->pattern) {
		snprintf(f->why, sizeof(f->why),
			 "no function that allocates matches the pattern");
	}
	return 0;
}
