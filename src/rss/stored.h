/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "rss/ledger.h"

/* A ledger that was put into a profile: what sp_rss_print_json() wrote.
 * 0; -EBADMSG or -ENOMEM. */
int sp_rss_ledger_read(const struct sp_ledger *stored,
		       struct sp_rss_ledger *ret);

/* The ledgers of a finished profile, in words or as JSON: that which was asked
 * for, and what else there is.  0; negative errno and *err, which says what to
 * do where there is none. */
int sp_rss_print_stored(FILE *out, const struct sp_rss_options *options,
			struct sp_error *err);
