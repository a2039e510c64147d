/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/profile.h"
#include "report/analysis.h"

/* Profiles in a directory, each with what tells it from the others. */

struct recording {
	char *path;
	char *program; /* name without directories; untrusted text */
	char *title;   /* what the process called itself, untrusted; or NULL */
	char *labels;  /* "service=checkout, env=prod", untrusted; or NULL */
	char *arguments; /* of the program, untrusted; or NULL */
	uint64_t pid;
	uint64_t parent; /* 0: not known */
	uint64_t start_unix_ns;
	uint64_t duration_ns;
	uint64_t alloc_bytes; /* exact, or at least */
	bool is_exact;
	enum sp_profile_end end;
	uint64_t end_kind; /* enum sp_end_kind, or unknown */
	bool is_cut;
	enum sp_unseen unseen; /* live objects may be in no sample */
	bool has_live, live_is_unknown;
	struct sp_interval live_bytes; /* at the end */
	uint64_t live_samples;
};

struct recordings {
	struct recording *list;
	size_t n;
};

/*
 * Those in `dir` (see sp_files_directory()) of processes that began at
 * since_unix_ns or later; of the run with that name, and without what is alive
 * (NULL: of any, with it).  What cannot be read is left out.  0, or negative
 * errno and *err.
 */
int recordings_find(const char *dir, uint64_t since_unix_ns, const char *run,
		    struct recordings *ret, struct sp_error *err);
void recordings_free(struct recordings *recordings);

/* For qsort: what allocated most, or began first, comes first. */
int recordings_by_bytes(const void *a, const void *b);
int recordings_by_start(const void *a, const void *b);

/* The figures of one profile; free the analysis, then the profile. */
int recordings_analyse(const char *path, struct sp_profile **ret_profile,
		       struct sp_analysis **ret_analysis, struct sp_error *err);
