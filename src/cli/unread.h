/* SPDX-License-Identifier: MIT */
#pragma once

#include "cli/apart.h"
#include "symbols/symbolizer.h"

/* What root could have read, and the user whose rights it has taken cannot:
 * told of the first file, in one sentence. */
struct sp_unread {
	const char *file;             /* the profile */
	const struct sp_rights *user; /* NULL: root's own, nothing is told */
	char note[576];               /* "": nothing */
};

/* The descriptor of this process that a path of /proc stands for; -1: none. */
int sp_unread_descriptor(const char *path);

/*
 * Of files that options name, with the rights of the user.  Descriptors that
 * were handed over by such a name cannot be read by any more, unless the user
 * could open that file: they give no more than its name would.
 */
void sp_unread_options(struct sp_unread *unread,
		       const struct sp_symbolizer_options *options);

/* To be the function of sp_symbolizer_problems(). */
void sp_unread_module(void *unread, const struct sp_module *module,
		      const char *text);
