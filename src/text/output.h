/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

/*
 * A file that appears only once it is complete: what is written goes to a file
 * beside it, which takes its place in the end; where the file system can do it,
 * that file has no name before, and nothing is left of it if the process is
 * killed.  What is no regular file, such as /dev/null or a pipe, is written as
 * it is.
 */
struct sp_output {
	FILE *stream; /* to write to */
	const char *path;
	char *target;    /* what to replace: the path without links */
	char *temporary; /* name until then; NULL: none yet */
	bool in_place;
	int fd;
	int error; /* of the first write that failed; 0: none */
};

/* 0 and *ret_output; negative errno and *err.  Borrows `path`. */
int sp_output_open(const char *path, struct sp_output **ret_output,
		   struct sp_error *err);

/* The file is complete.  0, or negative errno and *err, with the file as it was
 * before.  Frees the output either way. */
int sp_output_commit(struct sp_output *output, struct sp_error *err);

/* Leave the file as it was, and free the output. */
void sp_output_abandon(struct sp_output *output);
