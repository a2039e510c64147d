/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/*
 * The tables of docs/fleet.md, which every engine makes in its own types.
 * Columns are in the order of their rows everywhere.
 */

#define SP_FLEET_APPLICATION_ID 0x53504654 /* "SPFT" */
#define SP_FLEET_VERSION        4

enum sp_fleet_type {
	SP_FLEET_U64,  /* a number of 64 bits */
	SP_FLEET_FLAG, /* 0 or 1, SP_FLEET_NAME_* or'ed in one column */
	SP_FLEET_REAL,
	SP_FLEET_TEXT,
	SP_FLEET_BYTES,
};

/* How a name became part of a stack, in is_inlined. */
#define SP_FLEET_NAME_INLINED 1u
#define SP_FLEET_NAME_CLONE   2u  /* of a copy that the compiler made */
#define SP_FLEET_NAME_LACKS   4u  /* inlined ones may be missing */
#define SP_FLEET_NAME_CALLS   8u  /* it calls an allocator's wrapper there */
#define SP_FLEET_FLAG_MAX     15u /* all of them */

struct sp_fleet_column {
	const char *name;
	enum sp_fleet_type type;
	bool may_be_null;
};

enum sp_fleet_table {
	SP_FLEET_PROCESSES, /* a row of it makes all others of its process
			     * count */
	SP_FLEET_FACTS,     /* first of those that belong to a process */
	SP_FLEET_LABELS,
	SP_FLEET_TOTALS,
	SP_FLEET_LOSSES,
	SP_FLEET_THREADS,
	SP_FLEET_SAMPLES,
	SP_FLEET_HOURS,
	SP_FLEET_RSS,
	SP_FLEET_STRETCHES,
	SP_FLEET_SNAPSHOTS, /* last of those */
	SP_FLEET_MODULES,
	SP_FLEET_STACKS,
	SP_FLEET_NAMES,
	SP_FLEET_TABLES
};

#define SP_FLEET_COLUMNS_MAX 40u

struct sp_fleet_schema {
	const char *name;
	const struct sp_fleet_column *columns;
	size_t n_columns;
	size_t n_key; /* the first so many columns are the key */
};

extern const struct sp_fleet_schema sp_fleet_schema[SP_FLEET_TABLES];

/* The first table that SQL asks, also within another question; NULL: none of
 * these. */
const struct sp_fleet_schema *sp_fleet_table_asked(const char *sql);

/* "a, b": a table may have more of them, or in another order, once somebody has
 * altered it. */
void sp_fleet_write_columns(FILE *out, const struct sp_fleet_schema *table);
