/* SPDX-License-Identifier: MIT */
#pragma once

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
 * "3 7:4096 1": by ascending ids, each as the difference to the one before,
 * with the bytes that are resident, if any.  Sorts the list.  If the text is
 * too long, the objects that stand for the fewest bytes are left out;
 * *ret_left_out is the sum of what these stand for.  The text is the caller's
 * to free(); NULL: no memory.
 */
char *sp_absent_write(struct sp_absent_object *list, size_t n, size_t bytes_max,
		      double *ret_left_out);

/* 0 and *ret, to be freed by the caller, by ascending ids, without what they
 * stand for; -EBADMSG or -ENOMEM. */
int sp_absent_read(const char *text, struct sp_absent_object **ret,
		   size_t *ret_n);
