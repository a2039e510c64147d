/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/spans.h"
#include "format/record.h"
#include "model/profile.h"

/*
 * MAP and UNMAP records of one file, in whichever order they come, and what of
 * each mapping was there how long.
 */
struct sp_mappings {
	struct sp_mapping_call *calls;
	size_t n, room;
};

/* `stack` is a position in the profile, `thread` too, or UINT32_MAX.  0 or
 * -ENOMEM. */
int sp_mappings_add(struct sp_mappings *mappings, const struct sp_record_map *r,
		    uint32_t stack, uint32_t thread);
int sp_mappings_end(struct sp_mappings *mappings,
		    const struct sp_record_unmap *r);

/* What was mapped by each call, before they are played. */
void sp_mappings_each_made(const struct sp_mappings *mappings,
			   void (*fn)(void *arg, const struct sp_span *made),
			   void *arg);

/* A part of a mapping that ended as one, at gone_ns, or did not: SP_NEVER.  0,
 * or a negative errno, which ends the play. */
typedef int sp_mapping_fn(void *arg, const struct sp_span *part,
			  uint64_t gone_ns);

/* All calls in their order: `fn`, which may be NULL, is told of each part once.
 * The calls are used up.  0 and *ret; -ENOMEM, or what fn returned. */
int sp_mappings_play(struct sp_mappings *mappings, sp_mapping_fn *fn, void *arg,
		     struct sp_mapped *ret);

void sp_mappings_done(struct sp_mappings *mappings);
