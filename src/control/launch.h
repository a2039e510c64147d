/* SPDX-License-Identifier: MIT */
#pragma once

#include <sys/types.h>

#include "base/error.h"

/* Starts a program under the library, forwards signals to it, and returns its
 * status. */

#define SP_LAUNCH_PATH_MAX 4200 /* bytes, with the final 0 */

/*
 * The path of the program argv[0] as exec would find it; of its interpreter if
 * it is a script; of the program that is its argument if it is the dynamic
 * loader.  0; or *err and -ENOENT, -EACCES: as of exec; -ENOEXEC: no
 * library can be preloaded into it, because it is linked statically, set-uid,
 * or of another architecture.
 */
int sp_launch_check(char *const *argv, char path[SP_LAUNCH_PATH_MAX],
		    struct sp_error *err);

/* Why the library would see no allocation of the program in that open file, as
 * a sentence (static); NULL: no reason is known. */
const char *sp_launch_why_unseen(int fd);

/* The path of libsampleprof.so relative to this program, installed or in the
 * build directory. 0, or -ENOENT and *err. */
int sp_launch_library(char path[SP_LAUNCH_PATH_MAX], struct sp_error *err);

/* The path of `name` in the directory of this program, whether it exists or
 * not. 0; -ENOENT, -ENAMETOOLONG and *err if that directory is unknown or the
 * path too long. */
int sp_launch_beside(const char *name, char path[SP_LAUNCH_PATH_MAX],
		     struct sp_error *err);

/*
 * Run argv with the present environment and wait for its end.  Signals to this
 * process are forwarded to it. 0 and *ret_status as of waitpid; negative errno
 * and *err if it could not be started.
 */
int sp_launch_run(char *const *argv, pid_t *ret_pid, int *ret_status,
		  struct sp_error *err);
