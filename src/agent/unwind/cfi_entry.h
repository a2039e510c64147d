/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

/*
 * Readable memory that has unwind tables, or a copy of it.  Nothing outside of
 * it is read.  An address in the tables is `moved` beyond where it is here.
 */
struct sp_cfi_view {
	const uint8_t *low;
	const uint8_t *high;
	uintptr_t moved; /* 0: it is no copy */
};

/* What functions have in common (CIE). */
struct sp_cfi_cie {
	const uint8_t *at; /* in the view; NULL: none was read */
	struct sp_slice program;
	uint64_t code_align;
	int64_t data_align;
	uint8_t encoding; /* of functions' addresses */
	bool has_data;    /* an FDE has some, too */
	bool is_signal;   /* the frames are those of a signal */
};

/* A function (FDE). */
struct sp_cfi_fde {
	struct sp_slice program;
	uintptr_t begin;
	uint64_t bytes;
};

/* The bytes of the entry at `at`, behind its length.  False: it is not in the
 * view as a whole, or not of the usual kind. */
bool sp_cfi_entry_within(const struct sp_cfi_view *view, const uint8_t *at,
			 struct sp_slice *ret);

/* False: it is none, or one that is not known. */
bool sp_cfi_read_cie(const struct sp_cfi_view *view, const uint8_t *at,
		     struct sp_cfi_cie *ret);

/* The same; *cie is what was read last, and is the function's then. */
bool sp_cfi_read_fde(const struct sp_cfi_view *view, const uint8_t *at,
		     struct sp_cfi_cie *cie, struct sp_cfi_fde *ret);
