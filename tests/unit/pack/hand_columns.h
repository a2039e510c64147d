/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "format/record.h"
#include "pack/events.h"

/* Chunks of columns by hand, with checks that are right. */

#define HAND_FILE_ID 99
#define U32          ((uint64_t)UINT32_MAX)

/* Signed numbers as the columns have them. */
#define UP(n)   (2 * (uint64_t)(n))
#define DOWN(n) (2 * (uint64_t)(n)-1)

struct column {
	size_t n;
	uint64_t values[12];
	size_t repeat; /* so often the last of them once more */
};

/* A kind of chunks, and one that is right. */
struct form {
	uint32_t kind;
	enum sp_check_kind check;
	size_t header_bytes, lengths_at, n_columns;
	struct column columns[SP_EVENTS_COLUMNS];
};

#define VALUES(count, ...)                                                     \
	{                                                                      \
		.n = (count), .values = __VA_ARGS__                            \
	}
#define REPEATED(count, times, ...)                                            \
	{                                                                      \
		.n = (count), .repeat = (times), .values = __VA_ARGS__         \
	}

extern const struct form events_form, stacks_form, names_form;
extern const struct form *const forms[3];

/* What differs from the chunk that is right. */
struct change {
	const char *field; /* that is found; NULL: none, it is right, too */
	int column;        /* -1: none */
	struct column is;
	uint64_t first;
	int more;            /* events, stacks or places */
	uint32_t and;        /* is_last or the number of texts, if not 0 */
	uint32_t more_bytes; /* that its header says it has */
	size_t set;          /* a byte of the header that is 1 */
};

struct chunk {
	uint8_t *bytes; /* not a byte more than there is */
	size_t n;
};

#define COLUMN(c, count, ...)                                                  \
	.column = SP_COLUMN_##c, .is = VALUES(count, __VA_ARGS__)

extern const struct change right; /* none */

struct chunk build_chunk(const struct form *form, const struct change *change);

/* Of names behind stacks that are right. */
struct sp_unpacker *new_unpacker(uint32_t kind);

/* Read all of it: the field that is damaged, or NULL. */
const char *read_chunk(struct sp_unpacker *u, uint32_t kind,
		       const struct chunk *chunk);
const char *read_change(struct sp_unpacker *u, const struct form *form,
			const struct change *change);

/* After damage nothing of that kind can be read, but of others; and nothing is
 * complete. */
void is_broken(struct sp_unpacker *u, const struct form *form);

/* Every change finds its field. */
void try_changes(const struct form *form, const struct change *changes,
		 size_t n);

#define TRY(form, changes)                                                     \
	try_changes(&(form), changes, sizeof(changes) / sizeof((changes)[0]))
