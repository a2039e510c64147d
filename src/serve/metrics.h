/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

/*
 * The figures of the profiles in a directory for Prometheus: exact totals, also
 * by size class, estimates with limits, resident memory.  For one thread at a
 * time.
 */
struct sp_metrics;

/*
 * `dir` is as of sp_files_directory(), borrowed.  A process that has ended is
 * left out keep_ns after its end.  NULL without memory.
 */
struct sp_metrics *sp_metrics_new(const char *dir, uint64_t keep_ns);
void sp_metrics_free(struct sp_metrics *m);

/* A process whose profile is in the directory. */
struct sp_metrics_process {
	const char *path;
	const char *program; /* name without directories; untrusted text */
	uint64_t pid;
	uint64_t start_unix_ns;
	bool is_running;
};

/*
 * Read what is new in the directory at now_unix_ns.  Profiles of processes that
 * run are read anew if they have changed, others once.  Of a large one
 * only whose it is and the exact totals are read, which costs the same whatever
 * its length.  What cannot be read is left out.  0, or negative
 * errno and *err.
 */
int sp_metrics_read(struct sp_metrics *m, uint64_t now_unix_ns,
		    struct sp_error *err);

/*
 * All else of large ones; of those that run so often that it takes a tenth of a
 * processor: a file that it is time for, or NULL; read it, which takes no part
 * in `m`, so that another thread may use that meanwhile; and put into `m` what
 * it says, which frees it.
 */
struct sp_metrics_file *sp_metrics_begin_slow(const struct sp_metrics *m);
void sp_metrics_read_slow(struct sp_metrics_file *file);
void sp_metrics_end_slow(struct sp_metrics *m, struct sp_metrics_file *file);

/* The processes that were found, running and ended: the i-th, or false. */
bool sp_metrics_process(const struct sp_metrics *m, size_t i,
			struct sp_metrics_process *ret);

/* All of them as OpenMetrics 1.0.0, or else in Prometheus' text format 0.0.4,
 * with totals by size class or without; write errors stay in the stream. */
void sp_metrics_write(const struct sp_metrics *m, bool is_open,
		      bool has_classes, FILE *out);
