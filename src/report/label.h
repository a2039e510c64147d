/* SPDX-License-Identifier: MIT */
#ifndef SP_REPORT_LABEL_H
#define SP_REPORT_LABEL_H

#include <stddef.h>

/* The function of samples without a stack. */
#define SP_LABEL_NO_STACK "[no stack]"

/* A function's full name (symbols/demangle.h), and what tells it from others of
 * the same name besides: its module, or "". */
struct sp_label_of {
	const char *name;
	const char *module;
};

/*
 * How people read functions: without parameters, "ns::push".  Where another one
 * of the module reads the same, with as many parameters as tell them apart:
 * "ns::push(int, ...)", "ns::push(long, ...)".  0 and *ret, one label of each,
 * to be released; -ENOMEM.
 */
int sp_labels_new(const struct sp_label_of *functions, size_t n, char ***ret);

void sp_labels_free(char **labels, size_t n);

#endif
