/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "model/profile.h"
#include "stats/estimator.h"

/*
 * How figures and untrusted names become text.  Nothing here depends on the
 * locale: the decimal point is '.', thousands are separated by ','.
 */

/* A formatted figure by value: use it as sp_text_bytes(n).text in one
 * expression. */
struct sp_text_cell {
	char text[96];
};

/* In which unit estimates of bytes are written. */
enum sp_text_unit {
	SP_TEXT_UNIT_AUTO, /* the largest that gives a number of at least 1 */
	SP_TEXT_UNIT_B,
	SP_TEXT_UNIT_KIB,
	SP_TEXT_UNIT_MIB,
	SP_TEXT_UNIT_GIB,
};

/* "auto", "B", "KiB", "MiB", "GiB"; false for anything else. */
bool sp_text_unit_parse(const char *name, enum sp_text_unit *ret);

/* For everything that is written from now on; AUTO at first. */
void sp_text_set_unit(enum sp_text_unit unit);

/* Are untrusted names written in ASCII alone from now on, as \xNN what is not?
 * For people whose locale is not UTF-8: there other bytes may be commands of
 * the terminal.  Not at first. */
void sp_text_set_ascii(bool is_ascii);
bool sp_text_is_ascii(void);

/* "0", "17 B", "1.04 KiB", "210.2 MiB": powers of 1024, to the nearest. */
struct sp_text_cell sp_text_bytes(double bytes);

/* The same, not to the nearest but up or down: a limit. */
struct sp_text_cell sp_text_bytes_beyond(double bytes, bool is_up);

/* A number to be rounded, without the noise of how it was added up. */
double sp_text_steady(double number);

#define SP_TEXT_FEW_SAMPLES 3

/*
 * A point estimate and its interval, in the order in which they are to be read:
 *
 *   SP_TEXT_POINT_FIRST     "526 MiB", "[495, 558] MiB"; of what has no
 *                           upper limit "at least 495 MiB", "", or
 *                           "526 MiB", "limits unknown"
 *   SP_TEXT_INTERVAL_FIRST  "[0.5, 4.4] MiB", "~1.5 MiB": few samples, or
 *                           an interval that begins at 0
 *   SP_TEXT_BOUND           "<= 1.85 MiB", "": no sample is a statement too
 */
enum sp_text_order {
	SP_TEXT_POINT_FIRST,
	SP_TEXT_INTERVAL_FIRST,
	SP_TEXT_BOUND,
};

struct sp_text_estimate {
	enum sp_text_order order;
	struct sp_text_cell first;
	struct sp_text_cell second;
};

struct sp_text_estimate sp_text_estimate(struct sp_interval bytes,
					 uint64_t samples);

/* The same in a sentence: "526 MiB (95 %: [495, 558] MiB)", "[0.5, 4.4] MiB
 * (95 %), ~1.5 MiB", "at most 1.85 MiB with 97.5 %". */
void sp_text_print_estimate(FILE *out, struct sp_interval bytes,
			    uint64_t samples, double confidence);

/* The same as in a table, where the level is said below it: "526 MiB [495,
 * 558] MiB", "[0.5, 4.4] MiB ~1.5 MiB", "<= 1.85 MiB". */
struct sp_text_cell sp_text_estimate_cell(struct sp_interval bytes,
					  uint64_t samples);

/* What the marks of estimates in a table mean: "~" of SP_TEXT_INTERVAL_FIRST,
 * "<=" of no sample; a line for each of the two that is there. */
void sp_text_print_legend(FILE *out, bool has_few, bool has_bound,
			  double confidence);

/* "1,200 [1,050, 1,380]", "1,200 exact": limits are rounded outwards. */
struct sp_text_cell sp_text_objects_cell(struct sp_interval objects);

/* "1,200 objects [1,050, 1,380]", likewise. */
void sp_text_print_objects(FILE *out, struct sp_interval objects);

/* A level as a percentage: "95 %", "99.9 %", "99.83 %", cut, not rounded up. */
struct sp_text_cell sp_text_level(double confidence);

/* The level of an upper limit alone: 97.5 % for an interval of 95 %. */
double sp_text_one_sided(double confidence);

/* A setting: "512 KiB" if that is all of it, else as sp_text_bytes(). */
struct sp_text_cell sp_text_size(uint64_t bytes);

/*
 * "[192, 231] MiB", "[13.0 KiB, 2.85 MiB]": three digits, rounded outwards, so
 * that the text always contains the interval and the point as sp_text_bytes()
 * writes it; "exact" if the limits meet.
 */
struct sp_text_cell sp_text_interval(struct sp_interval bytes);

/* A whole number that is not negative; beyond 2^63 nobody counts. */
uint64_t sp_text_to_count(double count);

/* "5,912,331" */
struct sp_text_cell sp_text_count(uint64_t count);

/* "35.0%", "<0.1%", "0%"; "-" if `whole` is not positive. */
struct sp_text_cell sp_text_percent(double part, double whole);

/* "40 us", "812 ms", "3.2 s", "4 min 05 s", "3 h 00 min", "2 d 07 h", rounded
 * down. */
struct sp_text_cell sp_text_duration(uint64_t ns);

/* A moment or a length of time with four digits: "812.3 us", "1.234 s",
 * "62.50 s". */
struct sp_text_cell sp_text_moment(uint64_t ns);

/* The same where it is known to within error_ns (0: exactly): no more digits
 * than that, "< 1 ms", "28 ms", "3.2 s". */
struct sp_text_cell sp_text_moment_within(uint64_t ns, uint64_t error_ns);

/* "2026-11-21 09:40:12 UTC" from nanoseconds since 1970. */
struct sp_text_cell sp_text_time(uint64_t unix_ns);

/*
 * Length in bytes (1..4) of the UTF-8 character at `text`, which ends in a NUL,
 * and its code point; 0 if no valid character starts there (an overlong form,
 * a surrogate, beyond U+10FFFF, cut short).  *ret_code untouched on 0.
 */
unsigned int sp_text_decode_utf8(const char *text, uint32_t *ret_code);

/* May not reach a terminal as it is: C0, DEL and C1 controls, characters that
 * turn the direction of writing, line and paragraph separators. */
bool sp_text_is_unsafe(uint32_t code);

/*
 * Write untrusted text: each byte of an unsafe character and each byte that is
 * not UTF-8 becomes \xNN.  The output is one line of valid UTF-8.  Write errors
 * stay in the stream, here and below.
 */
void sp_text_print(FILE *out, const char *text);

/* "" for 1, else "s". */
const char *sp_text_plural(uint64_t n);

/* Write untrusted text as one word of a shell command line; the shell gets the
 * same bytes back.  Needs $'...' of the shell if the text is unsafe. */
void sp_text_print_shell(FILE *out, const char *text);

/* The same of a path, which is not to be taken for an option. */
void sp_text_print_shell_path(FILE *out, const char *path);

/* The part of a path after the last '/'; the path itself if that is empty. */
const char *sp_text_base_name(const char *path);
