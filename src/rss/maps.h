/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The mappings of a process with what is resident of each, as the kernel counts
 * it.  All amounts are bytes. */

struct sp_rss_map {
	uint64_t start, end; /* addresses */
	uint64_t inode;      /* 0: no file */
	uint64_t rss, swap;
	uint64_t anonymous; /* of rss: pages that are no file's any more */
	uint64_t huge;      /* of rss: in huge pages */
	const char *path;   /* or "[heap]"; "" if it has none */
	bool can_read, can_write, can_execute, is_shared;
	bool no_reserve; /* mapped as MAP_NORESERVE */
};

struct sp_rss_maps {
	uint64_t pid;
	struct sp_rss_map *list; /* by ascending addresses */
	size_t n;
	uint64_t rss, swap; /* sums */
	uint64_t shared;    /* pages of no file that a fork has shared */
	uint64_t hugetlb;   /* of hugetlbfs, which is in no sum */
	uint64_t vm_rss;    /* VmRSS of /proc/PID/status */
	uint64_t threads;
	char name[32]; /* the kernel's; untrusted text */
	char *texts;   /* what `path` points to */
};

/* 0, or negative errno and *err: no such process, not ours to read, without
 * memory of its own.  Free it in any case. */
int sp_rss_maps_read(uint64_t pid, struct sp_rss_maps *ret,
		     struct sp_error *err);
void sp_rss_maps_free(struct sp_rss_maps *maps);

/* The same from the text of /proc/PID/smaps alone, which is borrowed and
 * changed.  0 or -ENOMEM. */
int sp_rss_maps_parse(char *text, struct sp_rss_maps *ret);
