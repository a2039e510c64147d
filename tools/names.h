/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/kept.h"

/* A profile is its user's, and may name files that never answer: so much is
 * waited at the end of a command, for all of its profiles. */
#define NAMES_WITHIN_NS 600000000000u

/* Puts the names of functions into profiles of this machine, by the command
 * symbolize. */
struct names {
	char **command; /* with room for the profile behind it; NULL: none */
	size_t n;       /* words of it so far */
	char *program;
	uint64_t until_ns; /* of the clock */
};

/* `kept` (NULL: none) has files for modules that are gone, and outlives it; all
 * profiles together take within_ns at most.  What the command writes goes
 * nowhere.  False after a message. */
bool names_begin(struct names *names, struct sp_kept *kept, uint64_t within_ns);

/* Is there a file among them for a program of that name, without directories?
 * Nobody can name its functions later. */
bool names_are_last(const struct names *names, const char *program);

/* False: the command cannot be started, or no time is left.  Without names for
 * another reason the profile is as it was.  All is said on standard error. */
bool names_add(const struct names *names, char *path);

void names_end(struct names *names);
