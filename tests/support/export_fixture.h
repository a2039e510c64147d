/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

#include "export/export.h"
#include "support/report_fixture.h"

/* What sp_export_format.write() is. */
typedef int export_fn(FILE *out, const struct sp_aggregate *aggregate,
		      const struct sp_export_options *options,
		      struct sp_error *err);

/*
 * The answer to the fixture's question in that format, as *text, which is freed
 * first (or NULL) and is to be freed by the caller: a NUL stands behind its
 * *ret_n bytes.  `options` may be NULL.  Returns what the format does.
 */
int export_into(struct fixture *fixture, export_fn *write,
		const struct sp_export_options *options, char **text,
		size_t *ret_n, struct sp_error *err);

/* The same where it has to succeed; `ret_n` may be NULL. */
char *export_text(struct fixture *fixture, export_fn *write,
		  const struct sp_export_options *options, size_t *ret_n);

/* Symbols of a new fixture with period 1, in which estimates are exact, for
 * formats of names: two functions "main" of one file, an inlined one, and a
 * name with what ends a field, a line or a script. */
enum {
	NAMES_MAIN,
	NAMES_F,
	NAMES_INLINED, /* g, inlined into h */
	NAMES_HOSTILE,
	NAMES_MAIN_AGAIN,
};

struct fixture *export_fixture_of_names(const char *hostile_name,
					const char *hostile_file);
