/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "rss/ledger.h"

/* Processes that want to be looked at (format/look.h): each gets its ledger,
 * for its profile. */

/* The descriptor that they come to, by that name; negative errno and *err. */
int sp_rss_look_open(const char *name, struct sp_error *err);

/* The next, waiting at most timeout_ns, or until `stop` (a descriptor, or -1)
 * can be read; `mark` is the name of a snapshot.  0 and *ret; -ETIMEDOUT: none
 * came; other errors are of the one that came; and *err. */
int sp_rss_look_serve(int fd, int stop, const char *mark, uint64_t timeout_ns,
		      struct sp_rss_ledger *ret, struct sp_error *err);
