/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/intern.h"

/* The function of samples without a stack. */
#define SP_LABEL_NO_STACK "[no stack]"

/*
 * Short readable labels for functions, from their full names
 * (symbols/demangle.h): as the source spells them (symbols/plainname.h) and
 * without parameters, "ns::push".  If two labels are equal, they get as many
 * parameters as distinguish them: "ns::push(int, ...)", "ns::push(long, ...)";
 * if that does not help, traits, or the full name.  Functions that differ only
 * in their homes (symbols/home.h) get as much of these as distinguishes them:
 * "make [in a.c]".  With `are_full` only
 * parameters are left out. 0 and *ret, one label for each name, to be released;
 * -ENOMEM.
 */
int sp_labels_new(const char *const *names, size_t n, bool are_full,
		  char ***ret);

void sp_labels_free(char **labels, size_t n);

/* Labels by full names.  Zero-initialise. */
struct sp_labels {
	struct sp_intern names;
	bool are_full; /* as in sp_labels_new() */
	char **labels; /* of the first n names */
	size_t n;
};

/* Add a name, before sp_labels_make(). 0 or -ENOMEM. */
int sp_labels_add(struct sp_labels *labels, const char *name);

/* Make the labels of all names; earlier labels are released. 0 or -ENOMEM. */
int sp_labels_make(struct sp_labels *labels);

/* NULL: the name was not added. */
const char *sp_labels_find(const struct sp_labels *labels, const char *name);

void sp_labels_done(struct sp_labels *labels);
