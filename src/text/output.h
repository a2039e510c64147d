/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "base/place.h"

/*
 * A file that appears only once it is complete: what is written goes to a file
 * beside it, which takes its place in the end; where the file system can do it,
 * that file has no name before, and nothing is left of it if the process is
 * killed.  All of it happens in the directory that was found when it was opened
 * (base/place.h), so that nothing outside of it is ever replaced.  What is no
 * regular file, such as /dev/null or a pipe, is written as it is.
 */
struct sp_output {
	FILE *stream; /* to write to */
	const char *path;
	struct sp_place place;
	char temporary[NAME_MAX + 1]; /* name until then; "": none yet */
	bool in_place;
	int fd;
	int error; /* of the first write that failed; 0: none */
};

/*
 * The modes of a new file, of which the umask takes away more.  One of ours
 * that is replaced passes its mode on; only what it allows counts, if others
 * can write to its directory.
 */
#define SP_OUTPUT_PRIVATE 0600 /* profiles and exports, as the profile is */
#define SP_OUTPUT_TEXT    0666 /* baselines and results, for CI */

/* 0 and *ret_output; negative errno and *err.  Borrows `path`. */
int sp_output_open(const char *path, mode_t mode, struct sp_output **ret_output,
		   struct sp_error *err);

/* All that was written has left this process, which may be a child that leaves
 * the rest to its parent.  0, or negative errno and *err. */
int sp_output_flush(struct sp_output *output, struct sp_error *err);

/* The file is complete.  0, or negative errno and *err, with the file as it was
 * before.  Frees the output either way. */
int sp_output_commit(struct sp_output *output, struct sp_error *err);

/* Leave the file as it was, and free the output. */
void sp_output_abandon(struct sp_output *output);
