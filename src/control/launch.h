/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* Starts a program under the library, and stands in for it: passes signals on
 * to it, and its status back. */

#define SP_LAUNCH_PATH_MAX 4200

/*
 * Where the program `name` is that exec would find, or its interpreter if it is
 * a script.  0; -ENOENT, -EACCES as exec; -ENOEXEC and *err if a library cannot
 * be preloaded into it: linked statically, set-uid, of another architecture.
 * *ret_note: a sentence about what will be missing (its own malloc), or NULL.
 */
int sp_launch_check(const char *name, char path[SP_LAUNCH_PATH_MAX],
		    const char **ret_note, struct sp_error *err);

/* libsampleprof.so, as it lies relative to this program: as installed, or in
 * the build.  0, or -ENOENT and *err. */
int sp_launch_library(char path[SP_LAUNCH_PATH_MAX], struct sp_error *err);

/* The program `name` in the directory of this one, whether it is there or not.
 * 0; -ENOENT, -ENAMETOOLONG and *err if that cannot be told. */
int sp_launch_beside(const char *name, char path[SP_LAUNCH_PATH_MAX],
		     struct sp_error *err);

/*
 * Run argv with the present environment and wait for its end.  Signals that
 * this process gets go to it.  0 and *ret_status as of waitpid; negative errno
 * and *err if it could not be started.
 */
int sp_launch_run(char *const *argv, pid_t *ret_pid, int *ret_status,
		  struct sp_error *err);
