/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "export/proto.h"
#include "report/aggregate.h"

/*
 * The code of an export in tables: strings, mappings, locations and functions,
 * as pprof and OTLP have them.  What is written first gives numbers to the
 * frames that it has; then the locations of these frames give numbers to
 * functions; then the functions, and the strings at the end.  Numbers count
 * from 1 in the order of the tables, which some readers insist on; those of
 * strings count from 0, and 0 is "".
 */
struct sp_code {
	const struct sp_aggregate *aggregate;
	const struct sp_profile *profile;
	struct sp_code_mapping *mappings; /* by module */
	struct sp_intern strings;
	struct sp_intern places;
	struct sp_intern functions;
	struct sp_proto inner, innermost; /* messages of a table */
	bool failed;                      /* not enough memory */
};

/* How a format writes the tables. */
struct sp_code_dialect {
	/* Fields of the tables in their message. */
	unsigned int mapping, location, function, string;
	/* Entries are as in profile.proto, with their numbers in the field 1.
	 * Else they have no numbers: a table begins with an empty entry, and
	 * all fields are one less. */
	bool has_ids;
	/* Add a build id, in hexadecimal digits, "" if there is none. */
	void (*put_build_id)(void *arg, struct sp_proto *mapping,
			     const char *build_id);
	void *arg;
};

/* -ENOMEM leaves nothing to be freed. */
int sp_code_init(struct sp_code *code, const struct sp_aggregate *aggregate);
void sp_code_done(struct sp_code *code);

/* The number of a string that is ours, and of one that is untrusted, which is
 * written as sp_text_print() does. */
uint32_t sp_code_string(struct sp_code *code, const char *text);
uint32_t sp_code_untrusted(struct sp_code *code, const char *text);

/* That text, to be freed; NULL without memory. */
char *sp_code_clean(struct sp_code *code, const char *untrusted);

/* The numbers of the locations of a stack, innermost first; of SP_ROWS_OTHER
 * and of an empty stack one that says so.  Returns how many. */
size_t sp_code_locations(struct sp_code *code, uint32_t stack,
			 uint64_t ids[SP_FORMAT_FRAMES_MAX]);

/* Add mappings, locations and functions to `out`; then all strings. */
void sp_code_write(struct sp_code *code, struct sp_proto *out,
		   const struct sp_code_dialect *dialect);
void sp_code_write_strings(const struct sp_code *code, struct sp_proto *out,
			   const struct sp_code_dialect *dialect);
