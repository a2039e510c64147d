/* SPDX-License-Identifier: MIT */
#pragma once

#include <assert.h>
#include <stdint.h>

#include "format/layout.h"

/*
 * A process that wants to be looked at (`sampleprof run --rss`, ctl snapshot
 * --rss) connects to a socket of the kernel's abstract names, sends what is
 * below, and waits, for a limited time, until it has an answer: the ledger of
 * its resident memory as text, which goes into its profile as it is.  No
 * answer: there is no ledger.  Both sides are of one version: `version`.
 */
#define SP_LOOK_VERSION 2u

/* The name of the socket, behind a zero byte: that, then what the two agreed
 * on, SAMPLEPROF_RUN or the name of the order. */
#define SP_LOOK_PREFIX "sampleprof-look-"
/* Behind SAMPLEPROF_RUN: whoever listens there wants files, and answers with a
 * byte that means nothing. */
#define SP_LOOK_FILES_SUFFIX "-files"

/* Of the answer. */
#define SP_LOOK_TEXT_MAX 16384u

enum sp_look_why {
	SP_LOOK_SNAPSHOT = 1,
	SP_LOOK_PEAK = 2,
	SP_LOOK_END = 3,
	/* Likewise, where nothing can be asked of the allocator: it may be in
	 * the middle of a call. */
	SP_LOOK_END_AT_ONCE = 4,
	/* At the end of what has them mapped. */
	SP_LOOK_FILES = 5,
};

struct sp_look {
	uint32_t version;
	uint32_t why; /* enum sp_look_why */
	uint64_t time_ns;
	/* The answer of SP_CONTROL_MEMORY, and where the size classes are. */
	uint64_t classes;
	struct sp_control_memory memory;
};

static_assert(sizeof(struct sp_look) == 24 + SP_FORMAT_MARK_NAME_MAX,
	      "no padding");
