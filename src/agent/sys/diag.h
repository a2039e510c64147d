/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "format/layout.h"

/*
 * Loss counters: what could not be recorded is counted here and published in
 * the file's status page.  The agent says nothing else to anybody after
 * start-up.
 */

/* Context: any, also from a signal handler. */
void sp_diag_lose(enum sp_loss loss, uint64_t n);

/* Copy all counters; unused ones are zero. */
void sp_diag_read(uint64_t losses[SP_FORMAT_LOSSES]);

/* Forget everything: a forked child starts with no losses. */
void sp_diag_reset(void);

/*
 * One line "sampleprof: ..." on standard error, unless quiet.  At most 600
 * bytes; parts are concatenated up to the first NULL.  Context: cold.
 */
void sp_diag_set_quiet(int quiet);
void sp_diag_say(const char *part, ...) __attribute__((sentinel));

/* The decimal digits of v in buf (at least 21 bytes); returns buf. */
const char *sp_diag_decimal(char *buf, uint64_t v);

/* What a positive errno of the creation of a file means, in words and with its
 * name; of others the name. */
const char *sp_diag_errno(int err);
