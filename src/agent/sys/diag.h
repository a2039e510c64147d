/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "format/layout.h"

/*
 * Loss counters: what could not be recorded is counted here and published in
 * the file's status page.  The agent says nothing else to anybody after
 * start-up, but where there is to be no file, at the end.
 */

/* Context: any, also from a signal handler. */
void sp_diag_lose(enum sp_loss loss, uint64_t n);

/* Copy all counters; unused ones are zero. */
void sp_diag_read(uint64_t losses[SP_FORMAT_LOSSES]);

uint64_t sp_diag_lost(enum sp_loss loss);

/* What was lost of that kind is there now. */
void sp_diag_forget(enum sp_loss loss);

/* Forget everything: a forked child starts with no losses. */
void sp_diag_reset(void);

/*
 * One line "sampleprof: ..." on standard error, unless quiet.  At most 600
 * bytes; parts are concatenated up to the first NULL.  Context: cold.
 */
void sp_diag_set_quiet(int quiet);
void sp_diag_say(const char *part, ...) __attribute__((sentinel));

/*
 * One line with the counters of `kinds` (1 << enum sp_loss) that are not zero,
 * if any is.  Standard error has to be the file that it was when
 * sp_diag_remember_output() was called, by then the host may have put another
 * there, and has to take the line at once.  Context: cold; 1 KiB of stack.
 */
void sp_diag_remember_output(void);
void sp_diag_say_losses(uint64_t kinds);

/* The decimal digits of v in buf (at least 21 bytes); returns buf. */
const char *sp_diag_decimal(char *buf, uint64_t v);

/* What a positive errno of the creation of a file means, in words and with its
 * name; of others the name. */
const char *sp_diag_errno(int err);
