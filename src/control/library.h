/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/proc.h"
#include "control/launch.h"
#include "control/tracee.h"

/*
 * Brings our library into another process.  The process gets a copy in a memory
 * file (memfd_create) where that is possible: so it need not have our file in
 * its mount namespace, nor its user the right to read it.
 */

/* The library as this program has it. */
struct sp_library {
	char path[SP_LAUNCH_PATH_MAX];
	void *bytes; /* the file, mapped; owned */
	size_t n;
	uint64_t function; /* offset of SP_ATTACH_FUNCTION */
	uint64_t entries;  /* and of SP_ATTACH_LIST; 0: it has none */
};

/* The file that the process is to load. */
struct sp_library_there {
	int fd;     /* memory file, in the process; -1: none */
	int folder; /* of a temporary file there, owned; -1: there is none */
	struct sp_proc_file file;
	uint64_t start; /* where it is mapped, once it is found */
	char path[SP_LAUNCH_PATH_MAX]; /* for dlopen, as the process sees it */
};

/* Find and map the library.  0; or a negative errno (-ENOENT: it is not
 * installed, -ENOEXEC: another version) and *err.  Free it in any case; zero
 * it before. */
int sp_library_read(struct sp_library *library, struct sp_error *err);
void sp_library_free(struct sp_library *library);

/*
 * Give the library to the process of the borrowed thread `t`, and fill *ret:
 * a memory file; else, without /proc there, a file in its /tmp; else our own
 * path.  `scratch`: address of 32 bytes or more in the process, which are
 * overwritten.  The process is to close ret->fd, if there is one, once the
 * library is loaded.  0; or a negative errno and *err (-EBADF: the process has
 * put another file in the place of the memory file).  Clean up in any case.
 */
int sp_library_hand_over(const struct sp_library *library, struct sp_tracee *t,
			 uint64_t scratch, struct sp_library_there *ret,
			 struct sp_error *err);

/* Delete the temporary file, if there is one, once the library is loaded. */
void sp_library_clean_up(struct sp_library_there *there);

/* The address of SP_ATTACH_FUNCTION in the process, in a mapping of the file
 * that was handed over.  0: that file is not loaded. */
uint64_t sp_library_find(const struct sp_library *library, pid_t pid,
			 struct sp_library_there *there);

/* The same in a mapping of another file, whose code is the library's: the
 * loader gives what it has by that name, such as what an attach that was given
 * up has loaded since the process was looked at.  0: there is none. */
uint64_t sp_library_find_late(const struct sp_library *library, pid_t pid);

/* A descriptor of our library's file, if the process has mapped the same build
 * of it at address `start`; `name` is the path of that mapping in
 * /proc/PID/maps.  To be closed.  -1: it is another file. */
int sp_library_open_same(pid_t pid, uint64_t start, const char *name);
