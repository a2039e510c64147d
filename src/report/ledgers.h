/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/profile.h"
#include "stats/estimator.h"

/*
 * The composition of a process's resident memory at moments of its run.  The
 * profile has it as facts ledger.TIME, each a text of `sampleprof rss --json`.
 * Untrusted.
 */
enum sp_ledger_why {
	SP_LEDGER_NOW, /* of a running process */
	SP_LEDGER_SNAPSHOT,
	SP_LEDGER_PEAK,
	SP_LEDGER_END,
};

#define SP_LEDGER_ROWS_MAX 32u
#define SP_LEDGER_TEXT_MAX 96u

struct sp_ledger_row {
	char name[SP_LEDGER_TEXT_MAX];
	char label[SP_LEDGER_TEXT_MAX]; /* for people */
	struct sp_interval bytes;       /* lo == hi: exact */
	uint64_t swap_bytes;
};

struct sp_ledger {
	const char *text; /* the whole of it, in the profile */
	enum sp_ledger_why why;
	uint64_t time_ns;
	char mark[SP_LEDGER_TEXT_MAX]; /* the name of a snapshot */
	uint64_t rss_bytes;
	double confidence;
	struct sp_ledger_row rows[SP_LEDGER_ROWS_MAX];
	size_t n_rows;
};

/* Is the fact a ledger, even an unreadable one?  Ledgers are long, and no
 * setting. */
bool sp_ledger_is_one(const struct sp_info *info);

/* One text of `sampleprof rss --json`, which is borrowed; its time is left as
 * it is.  False: it is none. */
bool sp_ledger_read(const char *text, struct sp_ledger *ret);

/* "end", "peak", "snapshot", "now" */
const char *sp_ledger_why_name(enum sp_ledger_why why);

/* In the order of time; of several with the same name only the last. */
struct sp_ledgers {
	struct sp_ledger *list;
	size_t n;
};

/* Unreadable ledgers are left out. 0, or -ENOMEM. Borrows the profile's text;
 * free *ret in any case. */
int sp_ledgers_read(const struct sp_profile *profile, struct sp_ledgers *ret);
void sp_ledgers_free(struct sp_ledgers *ledgers);

/*
 * The one that is asked for: "end", "peak", or the name of a snapshot; NULL:
 * the one at the end, or the last that there is.  NULL: there is none.
 */
const struct sp_ledger *sp_ledgers_find(const struct sp_ledgers *ledgers,
					const char *which);

/* How it is asked for. */
const char *sp_ledger_name(const struct sp_ledger *ledger);
