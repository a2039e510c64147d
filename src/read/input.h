/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "format/decode.h"
#include "read/loader.h"
#include "read/reader.h"
#include "read/sinks.h"

/* One of the files of a reading: opened, read as far as the others are, and
 * made a profile. */
struct sp_input {
	const char *path; /* borrowed */
	uint16_t part;    /* its number */
	enum sp_samples_of samples_of;
	/* By its header and its status. */
	uint64_t file_id;
	uint64_t start_unix_ns;
	uint64_t published_ns;
	struct sp_law_used law;
	bool has_frees;
	bool is_running;

	uint64_t start_ns; /* on the clock of all */
	/* When its next event is, or its end while others go on; UINT64_MAX:
	 * after all that is known.  As in struct sp_event. */
	uint64_t when;
	bool is_unordered;     /* its chunks are not in the order of time */
	bool is_over;          /* all events were passed */
	uint64_t stop_ns;      /* if so: its end */
	uint64_t period_bytes; /* if so: the largest */
	uint64_t shown;        /* of its progress */
	struct sp_input_file *file; /* NULL: not open */
};

/* What is open of it. */
struct sp_input_file {
	struct sp_loader loader;
	struct sp_reader reader;
	struct sp_decoded record;
	bool has_record; /* it was not taken yet */
	bool is_read;    /* there is no further record */
};

/* Open it, and see what its header says.  0 or negative errno and *err. */
int sp_input_open(struct sp_input *input, struct sp_error *err);

/* Begin its stream.  0 or -ENOMEM and *err. */
int sp_input_begin(struct sp_input *input, struct sp_sinks *sinks,
		   struct sp_error *err);

/*
 * Pass its events before `limit`, as far as they are known, and if none is read
 * a chunk further: `when` is no later than the next, or it is_over.  0, also if
 * it turned out to be in no order (is_unordered); negative errno and *err, or
 * what the plan's `tell` returned.
 */
int sp_input_advance(struct sp_input *input, uint64_t limit,
		     struct sp_error *err);

/* How much of it was read, of *ret_total bytes. */
uint64_t sp_input_progress(const struct sp_input *input, uint64_t *ret_total);

/* It is_over.  Its profile, which is the caller's then, and the largest id of a
 * sample.  As sp_input_advance(). */
int sp_input_finish(struct sp_input *input, struct sp_profile **ret_profile,
		    uint64_t *ret_last_id, struct sp_error *err);

/* What is open of it, if anything. */
void sp_input_close(struct sp_input *input);
