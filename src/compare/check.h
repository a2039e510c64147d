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
 * Limits checked against two sides.  Verdicts, intervals, explanations and
 * sentences are all made here; the code that prints a check decides nothing.
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
	bool is_certain; /* its change is significant among all that were tested
			    for this finding (E31) */
	/* Its names are known on both sides (sp_names), and the change did not
	 * only move there from callers or callees (sp_moved). */
	bool is_comparable;
	bool is_new;  /* there were no samples of it in old */
	bool is_gone; /* there are none in new */
	struct sp_interval old;
	struct sp_interval new;
	struct sp_interval change;
	double p; /* of a function "beyond the limit", of a path "changed" */
};

/* The result for one limit. */
struct sp_finding {
	const struct sp_limit *limit;
	enum sp_verdict verdict;
	char why[256]; /* one clause for people, or "" */
	bool has_figures;
	bool has_old;
	struct sp_interval old; /* the mean of the runs */
	struct sp_interval new;
	struct sp_interval change; /* new - old */
	/* Totals may be up to so much more, which the verdict leaves out: what
	 * threads had not published when the process ended. */
	double old_missing, new_missing;
	/* The least growth, limit included, that is found with probability
	 * SP_CHECK_POWER; INFINITY: none; 0: the figures are exact. */
	double detectable;
	uint64_t period_needed; /* that would decide; 0: more samples would not
				   help */
	/* Functions of SP_LIMIT_SITES that have enough samples to be rejected
	 * (sp_match_test()). */
	size_t n_tests;
	size_t n_rejected; /* of them */
	/* Functions (for a pattern: 1) that would be rejected, but their bytes
	 * only moved from callers or callees (sp_moved). */
	size_t n_moved;
	double new_site_bytes; /* bytes of a new function that would have been
				  found */
	/* Functions that are neither beyond the limit nor within it with
	 * significance, and their share of the bytes of both sides. */
	size_t n_undecided;
	double undecided_share;
	struct sp_culprit *culprits;
	size_t n_culprits;
};

#define SP_CHECK_POWER 0.95
/* At most so many functions of a finding, and paths of a function or a finding,
 * are named. */
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
 * Borrows the limits.  Functions that were renamed get the new side's names in
 * the pair's old side.  `any_program`: also compare programs of different
 * names. 0 and *ret_check, to be freed; negative errno and *err.
 */
int sp_check_new(struct sp_pair *pair, const struct sp_limits *limits,
		 bool any_program, struct sp_check **ret_check,
		 struct sp_error *err);

void sp_check_free(struct sp_check *check);

/* ---- only for check.c, check_sites.c, check_leaks.c and explain.c ---- */

/* The state of making a check. */
struct sp_checker {
	struct sp_pair *pair;
	struct sp_check *check;
	bool any_program;
	struct sp_moved *moved; /* NULL without an old side */
	struct sp_error *err;
};

/* Set the verdict SP_VERDICT_CANNOT_TELL, with a clause that says why. */
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

/* Set the culprits: the paths that explain the growth (`is_down`: the decrease)
 * of the limit's figure, largest change first; -ENOMEM or 0. */
int sp_explain(const struct sp_checker *checker, const struct sp_match_of *of,
	       const struct sp_frame_set *only, bool is_down,
	       struct sp_finding *finding);

/* The noise between runs of a function, or module, of a limit by itself;
 * -ENOMEM or 0. */
int sp_check_noise(const struct sp_checker *checker,
		   const struct sp_match_of *of, struct sp_run_noise *ret);

/* The functions that were rejected, the largest change first, each with its
 * paths; -ENOMEM or 0. */
int sp_explain_sites(const struct sp_checker *checker,
		     const struct sp_match_of *of,
		     const struct sp_match_row *rows, const double *p, size_t n,
		     double threshold, const struct sp_run_noise *noise,
		     struct sp_finding *finding);
