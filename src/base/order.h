/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The order of elements, for qsort() and bsearch(): a function `name` of two
 * elements of `type`, x and y.  What tells them apart first stands first:
 *
 *	SP_ORDER(compare_rows, struct row, SP_UP(place) || SP_DOWN(bytes));
 *	SP_ORDER(compare_names, struct row, SP_BY(strcmp(x->name, y->name)));
 */
#define SP_ORDER(name, type, orders)                                           \
	static int name(const void *a, const void *b)                          \
	{                                                                      \
		const type *const x = a, *const y = b;                         \
		int order = 0;                                                 \
                                                                               \
		(void)(orders);                                                \
		return order;                                                  \
	}                                                                      \
	static int name(const void *a, const void *b)

/* By a member that is a number: small ones first, or large ones. */
#define SP_UP(member)   SP_BY((x->member > y->member) - (x->member < y->member))
#define SP_DOWN(member) SP_BY((x->member < y->member) - (x->member > y->member))
/* As strcmp() says it. */
#define SP_BY(compared) (order = (compared))
