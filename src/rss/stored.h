/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "rss/ledger.h"

/* Read a ledger that was stored in a profile, as sp_rss_print_json() writes it.
 * 0; -EBADMSG or -ENOMEM. */
int sp_rss_ledger_read(const struct sp_ledger *stored,
		       struct sp_rss_ledger *ret);

/* Print a ledger of a finished profile, as text or JSON: the one that was asked
 * for, and a list of the others. 0; negative errno and *err, which has a remedy
 * if there is none. */
int sp_rss_print_stored(FILE *out, const struct sp_rss_options *options,
			struct sp_error *err);
