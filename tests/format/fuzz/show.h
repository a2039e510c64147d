/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "model/profile.h"

/*
 * Pages and exports of a profile that nobody trusts: each is made, or there is
 * an error that says why not; text is safe for a terminal, JSON is JSON, and
 * pprof's and the page's formats hold.
 */

/*
 * A replay shows everything, a search a few pages that `choice` selects, as
 * they take longer than all else.  The only files that are opened are those of
 * the profile's modules and what is below /nonexistent.
 */
void fuzz_show(const struct sp_profile *profile, uint64_t choice);

/* A terminal would see lines of printable characters: aborts if not. */
void fuzz_check_text(const char *text, size_t n);

/* One object of JSON: aborts if not. */
void fuzz_check_json(const char *text, size_t n);
