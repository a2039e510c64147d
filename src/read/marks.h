/* SPDX-License-Identifier: MIT */
#pragma once

#include "format/record.h"
#include "model/profile.h"

/*
 * The MARK records of a file, collected as they come, and what they say: the
 * stretches and snapshots of a profile.
 */
struct sp_marks {
	struct sp_record_mark *marks; /* names: in `names` */
	size_t n;
	size_t room;
	struct sp_record_asked *asked;
	size_t n_asked;
	size_t asked_room;
	struct sp_blocks names;
};

/* 0 or -ENOMEM.  An empty set is all zero. */
int sp_marks_add(struct sp_marks *marks, const struct sp_record_mark *mark);
int sp_marks_add_asked(struct sp_marks *marks,
		       const struct sp_record_asked *asked);

/*
 * Set the profile's stretches, snapshots, unsampled and discarded totals and
 * period_bytes; its samples, infos, exact totals and end are known, and its
 * period is that of the header.  `window` is all zero if nothing was discarded,
 * else window_ns is its time.  Exact totals that are behind a
 * mark, since the process was killed after it, are raised.  Marks that
 * contradict an earlier one are left out: only a forged file has them.  0 or
 * -ENOMEM.
 */
int sp_marks_settle(struct sp_marks *marks, const struct sp_window *window,
		    struct sp_profile *profile);

void sp_marks_done(struct sp_marks *marks);
