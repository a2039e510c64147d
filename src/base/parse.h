/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Strict parsing of untrusted text: the whole string must be the value, no
 * sign, no white space, no overflow.  false leaves *ret untouched.  Errno and
 * the locale play no part.
 */

/* Decimal, or hexadecimal with 0x. */
bool sp_parse_u64(const char *text, uint64_t *ret);

/* Decimal bytes with an optional suffix K, M, G or T (powers of 1024; either
 * case; KiB is accepted, kB is not). */
bool sp_parse_size(const char *text, uint64_t *ret_bytes);

/* A length of time as nanoseconds: numbers with the units h, m, s, ms, us, ns,
 * each unit at most once and in that order: "90s", "1m30s", "500ms". */
bool sp_parse_duration(const char *text, uint64_t *ret_ns);

/* Events per second, 1 to SP_PARSE_RATE_MAX: "500/s", or "off", which is 0. */
#define SP_PARSE_RATE_MAX 1000000u
bool sp_parse_rate(const char *text, uint64_t *ret_per_s);

/* A decimal number with at most three digits after the point, in thousandths:
 * "99.9" is 99900. */
bool sp_parse_milli(const char *text, uint64_t *ret_thousandths);

/* A share of more than nothing, "5%" or "0.25%", with at most four digits after
 * the point, in millionths: 1 to SP_PARSE_FRACTION_ALL. */
#define SP_PARSE_FRACTION_ALL 1000000u
bool sp_parse_fraction(const char *text, uint64_t *ret_millionths);
