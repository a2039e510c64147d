/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "base/labels.h"
#include "tools/sampling_options.h"

/* What `sampleprof run` was asked for.  NULL: not given, so the environment
 * decides. */
struct run_options {
	struct sampling_options sampling;
	const char *for_check; /* a file that says which period */
	char period[24];       /* what it says */
	const char *out;
	const char *follow;
	const char *fraction;
	char labels[SP_LABELS_BYTES_MAX + 1]; /* all of them; "": none */
	bool off;
	bool python;
	bool rss;
	bool rss_at_peak;
	bool no_symbols;
	bool quiet;
};

/* The period of --for-check.  EXIT_FINE, or the exit status after a message on
 * standard error. */
int run_options_read_period(struct run_options *o);

/* Set the environment variables of the program by the options, but for labels.
 * False: no memory. */
bool run_options_export(const struct run_options *o);

/* Set SAMPLEPROF_LABELS: those of the environment, then those of the options.
 * EXIT_FINE, or the exit status after a message on standard error. */
int run_options_export_labels(const struct run_options *o);
