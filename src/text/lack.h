/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

#include "model/whole.h"
#include "text/json.h"
#include "text/text.h"

/* How a process ended and what its profile lacks, in the same words wherever
 * that is said. */

/* "ended cleanly", "was killed by signal 9", ...; end_kind: enum sp_end_kind,
 * or unknown. */
struct sp_text_cell sp_lack_end(enum sp_profile_end end, uint64_t end_kind);

/* The same of a profile whose processes ended alike.  Of a file that is cut
 * with what it knows of the end: "the file is cut short; the process was killed
 * by signal 9", or the first half; of several "ended by exit(); 1 of 3 files
 * is cut short". */
struct sp_lack_line {
	char text[160];
};
struct sp_lack_line sp_lack_end_of(const struct sp_profile *profile);

/* In a column: "clean", "sig9", "cut"; and for programs, always one of "clean",
 * "killed", "exec", "running", "detached", and "cut" in place of "clean". */
#define SP_LACK_WORD_COLUMNS 8
struct sp_text_cell sp_lack_word(enum sp_profile_end end, uint64_t end_kind,
				 bool is_cut);
const char *sp_lack_end_name(enum sp_profile_end end, bool is_cut);

/* A clause: "the file is cut short"; NULL: it is whole, but for what it has
 * discarded. */
const char *sp_lack_why(const struct sp_whole *whole);

/* The same with what it means for what was alive: "the file is cut short: what
 * was alive is known until 2.9 s", "1 of 3 processes is not known to the end
 * (...)".  Of one that lacks something. */
void sp_lack_print(FILE *out, const struct sp_whole *whole);

/* When what is alive was: "at 2.9 s"; at the end (SP_NEVER) "at the end",
 * "now", "at 2.9 s, after which it is not known". */
struct sp_text_cell sp_lack_when(const struct sp_profile *profile,
				 uint64_t at_ns);

/* All of it as "whole": {...}. */
void sp_lack_json(struct sp_json *json, const struct sp_whole *whole);

/* What may be alive beyond the samples, as a clause without a verb: "what was
 * alive before the attach"; NULL: nothing. */
const char *sp_lack_unseen(enum sp_unseen unseen);

/* The same for programs: "fork", "attach", "off"; NULL. */
const char *sp_lack_unseen_name(enum sp_unseen unseen);
