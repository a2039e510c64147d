/* SPDX-License-Identifier: MIT */
#ifndef SP_READ_SAMPLES_H
#define SP_READ_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/profile.h"

/*
 * The samples of a file and their frees, brought together.  Records of
 * different chunks come in any order, a free also before its sample; memory is
 * proportional to the number of records, whatever ids they have.
 */
struct sp_samples_free {
	uint64_t id; /* of the sample */
	uint64_t time_ns;
	uint64_t age_bytes; /* SP_UNKNOWN if it is not known */
	uint32_t thread;    /* as freed_by of struct sp_sample */
	bool missed;
};

/* Zero-initialise. */
struct sp_samples {
	struct sp_sample *samples;
	size_t n_samples, samples_room;
	struct sp_samples_free *frees; /* in the order of the file */
	size_t n_frees, frees_room;
};

/* Add a sample; what is to be said of its end comes later.  0 or -ENOMEM. */
int sp_samples_add(struct sp_samples *samples, const struct sp_sample *sample);

/* Add the end of a sample.  0 or -ENOMEM. */
int sp_samples_add_free(struct sp_samples *samples,
			const struct sp_samples_free *event);

/*
 * All samples with what became of them, by ascending ids, of which each comes
 * once: *ret_samples, for the caller to free, and *ret_n.  *ret_unmatched is
 * how many frees were of no sample, or not the only one of theirs.
 */
void sp_samples_join(struct sp_samples *samples, struct sp_sample **ret_samples,
		     size_t *ret_n, uint64_t *ret_unmatched);

void sp_samples_done(struct sp_samples *samples);

#endif
