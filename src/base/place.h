/* SPDX-License-Identifier: MIT */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * Where a file is written: a directory that is open, and a name in it.  Offline
 * code only.
 *
 * Other users may be able to write to that directory, or to one on the way.  So
 * a path is resolved once, part by part, and a symbolic link is followed only
 * if it is ours or root's.  From then on there is only the directory and the
 * name, and whatever gets that name meanwhile leads nowhere else.
 */
struct sp_place {
	int dir; /* opened as a path (O_PATH); -1: none */
	char name[NAME_MAX + 1];
	struct stat there; /* what had the name; st_mode 0: nothing */
	/* A file that somebody has open and gave us by a link of /proc, as
	 * /dev/stdout is one: `dir` is the file itself, without a name. */
	bool is_given;
};

/* 0; negative errno and *err, with `path` as its file.  Close it in any case.
 */
int sp_place_find(const char *path, struct sp_place *ret, struct sp_error *err);
void sp_place_close(struct sp_place *place);

/* Is it ours, or root's? */
bool sp_place_is_trusted(uid_t owner);

/* Can nobody else give a file a name in that directory? */
bool sp_place_is_closed(const struct sp_place *place);

/*
 * Open what has the name, or what was given, for writing where it is; O_CREAT
 * makes it.  Refused is what another user may have put there for us to write
 * to: a link, a file with a second name, a pipe or a file of that user.  But
 * another user's file in a directory of the same user is what was asked for,
 * and so is one that a group shares with its directory.  Waits for nobody but
 * the reader of a pipe of ours.  A descriptor, or negative errno and *err, with
 * `path` as its file.
 */
int sp_place_open(const struct sp_place *place, const char *path, int flags,
		  mode_t mode, struct sp_error *err);
