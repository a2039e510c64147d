/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "format/layout.h"
#include "report/analysis.h"

/* What metrics.c reads and metrics_write.c writes. */

/* A file as it was read. */
struct sp_metrics_entry {
	char *path;
	char *program;
	char *labels; /* as between braces, escaped; NULL: it is no profile */
	uint64_t pid;
	uint64_t start_unix_ns, stop_unix_ns;
	struct timespec changed;
	off_t bytes;
	ino_t inode;
	uint64_t content; /* of a running one: content_of() */
	/* Of a slow one: when it may be read again. */
	uint64_t next_ns;
	bool is_running;
	bool is_late;  /* slow, and has ended since it was read, if it was */
	bool is_there; /* at the last look */
	uint64_t alloc_bytes, alloc_objects;
	/* Of a large file at first nothing is known but its totals. */
	bool has_figures;
	bool is_whole;   /* model/whole.h */
	bool has_unseen; /* objects may be in no sample */
	bool has_classes, has_live, has_rss;
	struct sp_class_total classes[SP_FORMAT_CLASSES];
	struct sp_interval live_bytes, live_objects, peak_bytes;
	uint64_t rss_bytes;
};

struct sp_metrics {
	const char *dir;
	uint64_t keep_ns, now_unix_ns;
	struct sp_metrics_entry **processes;
	size_t n;
};
