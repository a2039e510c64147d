/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Sampled objects of which not every byte is in a resident page, as text: what
 * a ledger keeps of the pages of a process, for when it has ended.
 */
struct sp_absent_object {
	uint64_t id; /* of the sample */
	uint64_t resident_bytes;
	double absent_bytes; /* that it stands for */
};

/*
 * "3 7:4096 1": by ascending ids, each with what it is more than the one before
 * and the bytes that are resident, if any.  Sorts the list.  Where that is too
 * long, those that stand for least are left out: *ret_left_out is what these
 * stand for.  The text is the caller's to free(); NULL: no memory.
 */
char *sp_absent_write(struct sp_absent_object *list, size_t n, size_t bytes_max,
		      double *ret_left_out);

/* 0 and *ret, to be freed by the caller, by ascending ids, without what they
 * stand for; -EBADMSG or -ENOMEM. */
int sp_absent_read(const char *text, struct sp_absent_object **ret,
		   size_t *ret_n);
