/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "control/kept.h"

/* Puts the names of functions into profiles of this machine, by the command
 * symbolize. */
struct names {
	char **command; /* with room for the profile behind it; NULL: none */
	size_t n;       /* words of it so far */
	char *program;
};

/* `kept` (NULL: none) has files for modules that are gone, and outlives it.
 * What the command writes goes nowhere.  False after a message. */
bool names_begin(struct names *names, struct sp_kept *kept);

/* False: the command cannot be started.  Without names for another reason the
 * profile is as it was.  Either is said on standard error. */
bool names_add(const struct names *names, char *path);

void names_end(struct names *names);
