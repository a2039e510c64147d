/* SPDX-License-Identifier: MIT */
#ifndef SP_REPORT_LABEL_H
#define SP_REPORT_LABEL_H

#include <stddef.h>
#include <stdint.h>

#include "report/intern.h"

/* The function of samples without a stack. */
#define SP_LABEL_NO_STACK "[no stack]"

/*
 * How people read functions, from their full names (symbols/demangle.h):
 * without parameters, "ns::push".  Where another one reads the same, with as
 * many parameters as tell them apart: "ns::push(int, ...)", "ns::push(long,
 * ...)".  0 and *ret, one label of each, to be released; -ENOMEM.
 */
int sp_labels_new(const char *const *names, size_t n, char ***ret);

void sp_labels_free(char **labels, size_t n);

/* Labels by full names.  Zero-initialise. */
struct sp_labels {
	struct sp_intern names;
	char **labels; /* of the first n of them */
	size_t n;
};

/* One more name, until the labels are made: 0 or -ENOMEM. */
int sp_labels_add(struct sp_labels *labels, const char *name);

/* Give all names labels; those that there were are released.  0 or -ENOMEM. */
int sp_labels_make(struct sp_labels *labels);

/* NULL: the name was not added. */
const char *sp_labels_find(const struct sp_labels *labels, const char *name);

void sp_labels_done(struct sp_labels *labels);

#endif
