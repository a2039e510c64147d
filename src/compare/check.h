/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "compare/caveats.h"
#include "compare/limit.h"
#include "compare/match.h"
#include "compare/moved.h"

/*
 * Limits held against two sides.  Code that prints a check decides nothing:
 * verdicts, intervals, explanations and sentences are all here.
 */
enum sp_verdict {
	SP_VERDICT_PASS,
	SP_VERDICT_CANNOT_TELL,
	SP_VERDICT_IMPROVED,   /* less than a limit "either way" allows */
	SP_VERDICT_REGRESSION, /* more than the limit allows */
};

/* "pass", "cannot tell", "improved", "regression" */
const char *sp_verdict_name(enum sp_verdict verdict);

/* A function or a call path that explains a finding. */
struct sp_culprit {
	char *name;      /* "f" or "f < caller < main"; untrusted text; owned */
	bool is_path;    /* of the function before it in the list, or of all */
	bool is_certain; /* it changed, as far as all that was looked at for
			  * this finding shows (E31) */
	/* Its names are known on both sides, and the change is not one that
	 * only moved there from callers or callees: sp_names, sp_moved. */
	bool is_comparable;
	bool is_new;  /* there were no samples of it in old */
	bool is_gone; /* there are none in new */
	struct sp_interval old;
	struct sp_interval new;
	struct sp_interval change;
	double p; /* of a function "beyond the limit", of a path "changed" */
};

/* What became of one limit. */
struct sp_finding {
	const struct sp_limit *limit;
	enum sp_verdict verdict;
	char why[256]; /* one clause for people; "" if nothing is to be said */
	bool has_figures;
	bool has_old;
	struct sp_interval old; /* the mean of the runs */
	struct sp_interval new;
	struct sp_interval change; /* new - old */
	/* The growth that such samples show with SP_CHECK_POWER, limit
	 * included; INFINITY: none; 0: exact. */
	double detectable;
	uint64_t period_needed; /* to decide; 0: not a question of samples */
	/* Functions of SP_LIMIT_SITES that could be found with the samples that
	 * they have (sp_match_test()). */
	size_t n_tests;
	size_t n_rejected; /* of them */
	/* Functions, of a pattern 1, that would be, but what they have callers
	 * or callees had on the other side (sp_moved). */
	size_t n_moved;
	double new_site_bytes; /* that it would have found, if all new */
	/* Functions that are neither found nor seen to be within the limit, and
	 * their share of the bytes of both sides. */
	size_t n_undecided;
	double undecided_share;
	struct sp_culprit *culprits;
	size_t n_culprits;
};

#define SP_CHECK_POWER 0.95
/* Functions of a finding, and paths of a function or a finding, that are
 * named. */
#define SP_CHECK_FUNCTIONS 10
#define SP_CHECK_PATHS     5

struct sp_renamed_text {
	char *old; /* untrusted text; owned */
	char *new;
};

struct sp_check {
	enum sp_verdict verdict; /* the worst */
	struct sp_caveats caveats;
	struct sp_renamed_text *renamed;
	size_t n_renamed;
	struct sp_finding *findings; /* one for each limit, in their order */
	size_t n_findings;
	double level; /* of the intervals; 1 - it is the false-discovery rate */
};

/*
 * Borrows the limits; the pair's old side gets the new side's names for
 * functions that were renamed.  `any_program`: also if the names of the
 * programs differ.  0 and *ret_check, to be freed; negative errno and
 * *err.
 */
int sp_check_new(struct sp_pair *pair, const struct sp_limits *limits,
		 bool any_program, struct sp_check **ret_check,
		 struct sp_error *err);

void sp_check_free(struct sp_check *check);

/* ---- for check.c alone: compare/check_sites.c, compare/explain.c ---- */

/* A check while it is made. */
struct sp_checker {
	struct sp_pair *pair;
	struct sp_check *check;
	bool any_program;
	struct sp_moved *moved; /* NULL without an old side */
	struct sp_error *err;
};

/* The verdict, and why: a clause. */
__attribute__((format(printf, 2, 3))) void sp_check_cannot_tell(
	struct sp_finding *finding, const char *format, ...);

/* The samples that a limit is about. */
struct sp_match_of sp_check_samples_of(const struct sp_limit *limit);

/* A finding of SP_LIMIT_LEAK_RATE; -ENOMEM or 0. */
int sp_check_leaks(const struct sp_checker *checker,
		   struct sp_finding *finding);

/* A finding of SP_LIMIT_SITES; -ENOMEM or 0. */
int sp_check_sites(const struct sp_checker *checker,
		   struct sp_finding *finding);

/* The paths whose change explains more, or less, of what the limit is about,
 * the largest first; -ENOMEM or 0. */
int sp_explain(const struct sp_checker *checker, const struct sp_match_of *of,
	       const struct sp_frame_set *only, bool is_down,
	       struct sp_finding *finding);

/* The functions that were rejected, the largest change first, each with its
 * paths; -ENOMEM or 0. */
int sp_explain_sites(const struct sp_checker *checker,
		     const struct sp_match_of *of,
		     const struct sp_match_row *rows, const double *p, size_t n,
		     double threshold, const struct sp_run_noise *noise,
		     struct sp_finding *finding);
