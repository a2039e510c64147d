/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "rss/ledger.h"

/* Processes that ask for their ledger (format/look.h), to put it into their
 * profile. */

/* Listen under that name.  The descriptor; or negative errno and *err. */
int sp_rss_look_open(const char *name, struct sp_error *err);

/* Serve the next process, or the process `pid` if it is not 0: anybody can
 * connect.  Waits at most timeout_ns, or until `stop` (a descriptor, or -1) is
 * readable; `mark` is the name of a snapshot. 0 and *ret; -ETIMEDOUT: none
 * came; other negative errno for the one that came; and *err. */
int sp_rss_look_serve(int fd, int stop, uint64_t pid, const char *mark,
		      uint64_t timeout_ns, struct sp_rss_ledger *ret,
		      struct sp_error *err);

/* The same for processes that want a look at what they have mapped, not a
 * ledger; and the next of them: a descriptor to answer it by any byte, or
 * negative errno. */
int sp_rss_look_open_for_files(const char *run, struct sp_error *err);
int sp_rss_look_meet(int fd, uint64_t *ret_pid);
