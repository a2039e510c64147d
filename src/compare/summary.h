/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/profile.h"
#include "report/paths.h"
#include "report/question.h"
#include "stats/estimator.h"
#include "stats/leak.h"
#include "symbols/symbolizer.h"

/*
 * What a comparison keeps of one run: exact totals, estimates, and the sampled
 * bytes of each call path, by names (report/paths.h).  A baseline file is a
 * list of these.
 */

/*
 * The tables of a run: its views by call path, then one view by something else,
 * of which each row is a path of one frame with that name.
 */
#define SP_SUMMARY_VIEWS (SP_VIEW_TEMPORARY + 1)

enum sp_summary_table {
	SP_SUMMARY_BY_ENTRY = SP_SUMMARY_VIEWS, /* "malloc", "realloc", ... */
	SP_SUMMARY_BY_THREAD,                   /* its name */
	SP_SUMMARY_BY_SIZE, /* sp_view_sizes_row_name() of the object */
	SP_SUMMARY_TABLES,
};

/* What is taken from a profile. */
struct sp_summary_wish {
	unsigned int views; /* a bit (1u << SP_VIEW_...) for each */
	bool phases;        /* what was allocated in each phase, by path */
	/* The tables of SP_VIEW_... `tables_of` by something else, and the
	 * exact totals by size. */
	bool tables;
	enum sp_view tables_of;
	bool leaks; /* verdicts on its functions */
};

/* How fast a function grows, and what that is. */
struct sp_leak_rate {
	char *name; /* as people read it; untrusted text; owned */
	enum sp_leak_verdict verdict;
	struct sp_interval per_s; /* at the summary's level */
	double p;                 /* of "no leak" */
	uint64_t longer_ns;       /* as in struct sp_leak_site */
};

/* The part of a run that was asked for: born from then on, and before then, and
 * alive then; each is 0 if it was not given. */
struct sp_run_part {
	uint64_t from_ns, to_ns, at_ns;
};

/* The stretches of a run that the program gave one name. */
struct sp_phase_sum {
	char *name; /* untrusted text; owned */
	uint64_t exact_alloc_bytes;
	uint64_t exact_alloc_objects;
	uint64_t slack_bytes;     /* that may be a neighbour's, or missing */
	uint64_t unsampled_bytes; /* of them, while sampling was off */
	/* Samples that were born in it: no neighbour's, as each carries its
	 * time.  `has_rows` is false where they were not taken. */
	bool has_rows;
	struct sp_path_rows rows;
	struct sp_path_rows whole; /* as of the run */
};

/* A module whose names could not be read. */
struct sp_nameless {
	char *module; /* as in the names of frames: "" is the program */
	char *path;   /* untrusted text, all of it; owned */
	char *reason; /* a clause: "cannot be opened: ..." */
};

struct sp_summary {
	char *program; /* file name without its directory; untrusted text */
	char *path;    /* that it is from, as it was named; owned */
	/* The files that it was made of, by the number that copies share; none
	 * if a baseline does not tell. */
	uint64_t *recordings;
	uint64_t *seeds; /* of each of them; 0: not known; owned */
	size_t n_recordings;
	struct sp_run_part part;
	uint64_t period_bytes;
	struct sp_law_used law;
	uint64_t exact_alloc_bytes;
	uint64_t exact_alloc_objects;
	uint64_t missing_bytes_max; /* the totals are up to so much more */
	/* Of them, while sampling was off: no estimate speaks of it. */
	uint64_t unsampled_bytes;
	struct sp_phase_sum *phases; /* none if the program named none */
	size_t n_phases;
	/* Why the run is not known to its end, and estimates are of less than
	 * all; NULL: it is.  Then the exact totals are less than all, too, if
	 * they are the least alone (sp_profile_is_exact()). */
	const char *why_incomplete;
	bool is_least;
	const char *why_doubtful; /* why estimates may be too low; NULL */
	bool lacks_some;          /* of what was recorded: model/whole.h */
	struct sp_nameless *nameless;
	size_t n_nameless;
	bool has_frees; /* without, only SP_VIEW_ALLOC is there */
	/* Intervals at `level` of the bytes of each view but SP_VIEW_ALLOC and
	 * SP_VIEW_LEAKS. */
	double level;
	struct sp_interval bytes[SP_SUMMARY_VIEWS];
	struct sp_path_rows rows[SP_SUMMARY_TABLES];
	bool has_rows[SP_SUMMARY_TABLES];
	/* The views with all frames, once sp_summary_see_through() has taken
	 * some from `rows`. */
	bool has_whole;
	struct sp_path_rows whole[SP_SUMMARY_VIEWS];
	/* Of functions with samples, if that was wished for; else, or if they
	 * cannot be judged, why not: a clause. */
	struct sp_leak_rate *leak_rates;
	size_t n_leak_rates;
	bool has_leaks;
	const char *why_no_leaks; /* NULL: it is of a baseline */
	/* Exact, of SP_FORMAT_CLASSES size classes; NULL: not known; owned. */
	struct sp_class_total *classes;
};

/* The level at which checks decide, and at which baselines are written. */
#define SP_SUMMARY_LEVEL 0.99

/*
 * Take what is wished for, with the frames that are seen through; views that
 * need frees are left out of a profile without them.  `question` says of what
 * (times, sizes, thread; its view is not used) and at which level.  0 and
 * *ret_summary, to be freed; negative errno and *err.
 */
int sp_summary_take(const struct sp_profile *profile,
		    const struct sp_symbolizer_options *symbols,
		    const struct sp_question *question,
		    const struct sp_summary_wish *wish, struct sp_paths *paths,
		    struct sp_summary **ret_summary, struct sp_error *err);

/* For summary_take.c: the leak rates of a profile; 0, or negative errno and
 * *err. */
int sp_summary_take_leaks(struct sp_summary *summary,
			  const struct sp_profile *profile,
			  const struct sp_symbolizer_options *symbols,
			  const struct sp_question *question,
			  struct sp_error *err);

/* For the same: what the symbolizer could not read; 0 or -ENOMEM. */
int sp_summary_take_nameless(struct sp_summary *summary,
			     const struct sp_symbolizer *symbolizer);

/* The phase of that name, or NULL; and a new one, all zero, or NULL without
 * memory. */
const struct sp_phase_sum *sp_summary_phase(const struct sp_summary *summary,
					    const char *name);
struct sp_phase_sum *sp_summary_add_phase(struct sp_summary *summary,
					  const char *name);

/* Is a recording of either one of the other, too? */
bool sp_summary_shares_recording(const struct sp_summary *a,
				 const struct sp_summary *b);

/* Was a recording of either made with the seed of one of the other? */
bool sp_summary_shares_seed(const struct sp_summary *a,
			    const struct sp_summary *b);

/* The share of what was allocated, in the phase of that name (NULL: the whole
 * run), that was not sampled; 0 without such a phase. */
double sp_summary_unsampled(const struct sp_summary *summary,
			    const char *phase);

/* The rows of a table, or of what was allocated in the phase of that name
 * (NULL: the whole run); NULL if the run has no such phase. */
const struct sp_path_rows *sp_summary_rows(const struct sp_summary *summary,
					   unsigned int table,
					   const char *phase);

/* The same with all frames, of a view. */
const struct sp_path_rows *sp_summary_whole(const struct sp_summary *summary,
					    enum sp_view view,
					    const char *phase);

/* Paths begin at the frame that their samples are flat for.  Once, of a run
 * that was read or taken: a baseline is written before.  0 or -ENOMEM. */
int sp_summary_see_through(struct sp_summary *summary, struct sp_paths *paths);

void sp_summary_free(struct sp_summary *summary);

/* The runs of one side, borrowed. */
struct sp_side {
	struct sp_summary **run;
	size_t n;
};

/* Both sides of a comparison; the paths are of both. */
struct sp_pair {
	struct sp_side old; /* n may be 0 where only `new` is asked about */
	struct sp_side new;
	struct sp_paths *paths;
};
