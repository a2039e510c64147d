/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What a program has mapped: ranges of addresses that do not overlap, in
 * ascending order.  The array is the caller's, with room for a fixed number.
 */
struct sp_span {
	uint64_t start, end; /* start < end */
	uint64_t number;     /* of the call that made it, in order */
	uint64_t time_ns;
	uint32_t stack;
	uint32_t thread;
	uint32_t segment; /* of the file, that has its record */
	uint32_t flags;
};

struct sp_spans {
	struct sp_span *at;
	size_t n;
	size_t room;
};

/* The position of the first that ends behind the address; n: there is none. */
size_t sp_spans_find(const struct sp_spans *spans, uint64_t address);

typedef void sp_span_fn(void *arg, const struct sp_span *piece);

/*
 * Take [start, end) out of those that were made by a call before `number`; what
 * they have beside it stays.  `fn` is told of each piece that was taken; it may
 * be NULL.  False: one fell in two, and there was no room for the upper one,
 * which is gone too (and not told of).
 */
bool sp_spans_cut(struct sp_spans *spans, uint64_t start, uint64_t end,
		  uint64_t number, sp_span_fn *fn, void *arg);

/* False: there is no room, or not all of its range is free. */
bool sp_spans_put(struct sp_spans *spans, const struct sp_span *span);
