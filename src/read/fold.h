/* SPDX-License-Identifier: MIT */
#ifndef SP_READ_FOLD_H
#define SP_READ_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "model/profile.h"
#include "read/load.h"
#include "read/samples.h"
#include "stats/peak.h"

/*
 * Samples in the order of time, while a file is read: one that has ended is
 * only counted, with those that are alike in what is asked, so that memory is
 * proportional to distinct stacks and sizes and to what is alive, not to
 * records.
 *
 * Chunks are handed out in the order of time and each belongs to one thread, so
 * that no record of a chunk is much older than the first one of the chunk
 * before: what is older has its turn when a chunk begins.  Where that does not
 * hold, or a free does not find its sample, the file is out of order, and has
 * to be read in the other way.
 */
struct sp_fold;

/* `profile` has what the header says, and the duration_ns that it will have
 * where the plan has points; it outlives the fold, as `plan` does.  NULL
 * without memory. */
struct sp_fold *sp_fold_new(const struct sp_profile *profile,
			    const struct sp_fold_plan *plan);

/* A chunk begins, a sample (alive, as far as it says) or a free comes in the
 * order of the file.  0; -ENOMEM, -EILSEQ: out of order, or what the plan's
 * `tell` returned. */
int sp_fold_chunk(struct sp_fold *fold);
int sp_fold_sample(struct sp_fold *fold, const struct sp_sample *sample);
int sp_fold_free(struct sp_fold *fold, const struct sp_samples_free *event);

/* All of it goes to the profile: samples that are alive, groups, the peak. */
int sp_fold_finish(struct sp_fold *fold, struct sp_profile *profile);

void sp_fold_destroy(struct sp_fold *fold);

#endif
