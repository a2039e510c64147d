/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "model/profile.h"
#include "report/aggregate.h"
#include "report/load.h"

/* Limit of files on one side of a comparison. */
#define SP_EXPORT_BASE_MAX 1024u

struct sp_row;

/* A part of a profile, for a caller that sends it in parts: pprof, and otlp,
 * which is then compressed by gzip. */
struct sp_export_part {
	uint64_t start_unix_ns; /* instead of the process's */
	uint64_t duration_ns;
	/* Change the values of `rows`, one for each stack, and move those that
	 * are wanted to the front.  Returns how many; SIZE_MAX: no memory. */
	size_t (*choose)(void *arg, const struct sp_profile *profile,
			 struct sp_row *rows, size_t n);
	void *arg;
};

/* The options that only exports have. */
struct sp_export_options {
	bool of_objects;      /* --metric objects: weights count objects */
	bool pprof_error;     /* two more sample types: variance, samples */
	uint64_t max_samples; /* at most so many samples; 0: no limit */
	const struct sp_export_part *part; /* NULL: all of it */
	/* --base: what to compare with; several files are added up. */
	const char *base_files[SP_EXPORT_BASE_MAX];
	size_t n_base_files;
	/* The answer for these files, set by sp_export_write(); NULL without
	 * them. */
	const struct sp_aggregate *base;
};

/* The options that a format supports. */
enum sp_export_knows {
	SP_EXPORT_KNOWS_METRIC = 1,
	SP_EXPORT_KNOWS_PPROF = 2, /* --pprof-error, --max-samples, parts */
	SP_EXPORT_KNOWS_BASE = 4,  /* --base */
	/* No option: the format also shows call stacks that are not in the
	 * view. */
	SP_EXPORT_KNOWS_OTHERS = 8,
	SP_EXPORT_KNOWS_MAPPED = 16,   /* --view mapped, reserved */
	SP_EXPORT_KNOWS_RESIDENT = 32, /* --metric resident */
};

/*
 * Write the answer, which has the names of functions; the profile is
 * aggregate->analysis->profile.  0, or negative errno and *err, with nothing or
 * a part written.  Write errors stay in the stream.
 */
typedef int sp_export_fn(FILE *out, const struct sp_aggregate *aggregate,
			 const struct sp_export_options *options,
			 struct sp_error *err);

/* A format for other programs. */
struct sp_export_format {
	const char *name;
	const char *what;   /* for --help, at most 58 columns */
	bool is_binary;     /* not for a terminal */
	unsigned int knows; /* enum sp_export_knows */
	sp_export_fn *write;
	struct sp_load_needs needs; /* of the profile */
};

/*
 * Round a non-negative estimate to an integer without bias: it is rounded up
 * with a probability equal to its fraction, which the hash decides.  Rounding
 * to the nearest integer, or down, would bias the sum over many profiles.  At
 * most `max` >= 0.
 */
int64_t sp_export_round(double value, uint64_t hash, int64_t max);

/* The seed of such hashes.  It differs between profiles of the same program, so
 * that they round independently. */
uint64_t sp_export_seed(const struct sp_profile *profile);

/* ---- the formats, for the table ---- */

/*
 * A line "outermost;...;innermost WEIGHT" for each distinct stack of function
 * names in the view, most bytes first.  Weights are weighted estimates, of
 * bytes or objects, rounded by sp_export_round().  A ';' in a name is a ':'.
 */
sp_export_fn sp_export_collapsed_write;

/*
 * DHAT's JSON, version 2: for each call path, what was allocated, its lifetime,
 * and what was alive at the peak and at the end (docs/exports.md).  Without
 * frees it has only what was allocated.  -EINVAL: a view that it does not have.
 */
sp_export_fn sp_export_dhat_write;

/* Snapshots: one for each column of ms_print's graph, and the end. */
#define SP_EXPORT_MASSIF_POINTS 73

/*
 * Massif's text: live bytes over the run, with the tree of callers at the peak
 * and at the end (docs/exports.md).  Children add up to their parent, and the
 * tree to its snapshot.  -ENODATA: there are no frees.  -EINVAL: a view.
 */
sp_export_fn sp_export_massif_write;

/*
 * speedscope's file format, with one profile of allocated bytes and one of live
 * bytes, and one of the view if it is another.  The view's profile is shown
 * first.  Weights are those of the collapsed format.  A frame is a function,
 * whatever the line.
 */
sp_export_fn sp_export_speedscope_write;

/*
 * The text of gperftools' heap profiles, as jeprof, google-pprof and go tool
 * pprof read it: counts as sampled, with a row for each call stack and object
 * size, which these readers unbias themselves (docs/exports.md).  Without
 * frees both columns are what was allocated.
 *
 * -EINVAL: samples were drawn with several periods, of which the text can only
 * tell one.
 */
sp_export_fn sp_export_heap_v2_write;

/* Version of the lines below.  It rises if an old reader would misread them. */
#define SP_EXPORT_JSONL_VERSION 1

/*
 * JSON Lines: a header, the threads, the call stacks with their frames, then
 * one line for each sample of the view with its inclusion probability and
 * weights (docs/exports.md has every key).  Samples are in the order of their
 * ids, or for a folded profile in the order of sp_profile_walk().  Returns what
 * sp_profile_walk() returns.
 */
sp_export_fn sp_export_jsonl_write;

/*
 * pprof's profile.proto, compressed.  Sample types are Go's, in Go's order:
 * alloc_objects, alloc_space, inuse_objects, inuse_space; the last two are left
 * out if the profile has no frees.  The default type is the bytes of the view.
 * There is a sample for each call stack and object size; the size is the
 * numeric label "bytes".
 *
 * Values are weighted estimates, which add up over samples and profiles,
 * rounded by sp_export_round(); never negative, nor is any sum of them.  With
 * `pprof_error` two types follow: the variance of the bytes of the default
 * type, in KiB^2, and the number of samples behind it.  To keep to
 * `max_samples`, first the sizes of a stack are merged, then the stacks with
 * fewest bytes into "[other]".
 *
 * Names are sp_text_print()'s.  A module of which no function is known has none
 * in the file, so that a reader which has the module can look them up.
 */
sp_export_fn sp_export_pprof_write;

/*
 * OTLP's ProfilesData (export/otlp.h): a profile for each sample type of pprof,
 * with the same values, and a dictionary.  The resource has what is known of
 * the process, and its labels.  The profile with the bytes of the view has the
 * interval of its sum.  Names are sp_text_print()'s.
 */
sp_export_fn sp_export_otlp_write;
sp_export_fn sp_export_otlp_json_write;

/*
 * One file for a browser: src/export/html (src/README.md) with the profile in
 * it (docs/guide.md).  It needs no network, and nothing that the profile says
 * is markup.  With options->base it has that profile, too, and shows the
 * differences.  Call stacks with few bytes become SP_HTML_PATHS_OTHER beyond
 * the limits of export/html_cells.h and SP_EXPORT_HTML_FRAMES_MAX.
 *
 * -E2BIG: more sizes than a page can show.  -EINVAL: a view or a method that
 * the page does not have.
 */
sp_export_fn sp_export_html_write;

/* Frames in all call stacks of a page. */
#define SP_EXPORT_HTML_FRAMES_MAX 4000000u
