/* SPDX-License-Identifier: MIT */
#ifndef SP_REPORT_EXPORT_JSON_H
#define SP_REPORT_EXPORT_JSON_H

#include <stdio.h>

#include "report/aggregate.h"

/*
 * Everything in the profile as one JSON object; keys may be added in later
 * versions.  Functions are in the present order of the aggregate.
 *
 * Exact numbers are integers, estimates are numbers with a fraction or an
 * exponent.  The seed is a string, because most JSON readers lose the low bits
 * of a 64-bit number.  In strings, '<', '>', '&' and every character that
 * sp_text_is_unsafe() are \uNNNN; a byte that is not UTF-8 becomes \ufffd.
 *
 * 0 or -ENOMEM and *err, with nothing written.  Write errors stay in the
 * stream.
 */
int sp_export_json_write(FILE *out, const struct sp_aggregate *aggregate,
			 struct sp_error *err);

#endif
