/* SPDX-License-Identifier: MIT */
#include "text/text.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

static const char *const unit_names[] = {"B",   "KiB", "MiB", "GiB",
					 "TiB", "PiB", "EiB"};

#define N_UNITS (sizeof(unit_names) / sizeof(unit_names[0]))

static enum sp_text_unit wanted_unit = SP_TEXT_UNIT_AUTO;
static bool wants_ascii;

bool sp_text_unit_parse(const char *name, enum sp_text_unit *ret)
{
	for (size_t i = 0; i <= SP_TEXT_UNIT_GIB; i++) {
		if (strcmp(name, i ? unit_names[i - 1] : "auto") != 0)
			continue;
		*ret = (enum sp_text_unit)i;
		return true;
	}
	return false;
}

void sp_text_set_unit(enum sp_text_unit unit)
{
	wanted_unit = unit;
}

void sp_text_set_ascii(bool is_ascii)
{
	wants_ascii = is_ascii;
}

bool sp_text_is_ascii(void)
{
	return wants_ascii;
}

/* Is the number too large for the unit, and is there a larger one? */
static bool goes_up(double scaled, size_t unit)
{
	return wanted_unit == SP_TEXT_UNIT_AUTO
		       ? scaled >= 1024 && unit + 1 < N_UNITS
		       : unit + 1 < (size_t)wanted_unit;
}

/* What the order of a sum does to its last digits is no difference: else a
 * limit that is a round number is rounded outwards to the next one, or not, as
 * it happens.  export/html/format.js does the same. */
#define NOISE 1e6

double sp_text_steady(double number)
{
	const double steady = nearbyint(number * NOISE) / NOISE;

	return fabs(number) < 1e9 ? steady : number;
}

/* Beyond it a number has an exponent; no size comes near. */
#define DIGITS_MAX 1e15

struct quantity {
	char digits[24];
	size_t unit;
};

/*
 * Digits and unit of a number of bytes.  `rounding` is nearbyint, floor or
 * ceil.  One decimal where `fine`, else three digits; the grid of the fine
 * digits contains the other one, which keeps a rounded point inside an interval
 * that was rounded outwards.
 */
static struct quantity split_bytes(double bytes, double (*rounding)(double),
				   bool fine)
{
	struct quantity q = {.unit = 0};
	double scaled = bytes;
	double grid;
	int decimals;

	while (goes_up(scaled, q.unit)) {
		scaled /= 1024;
		q.unit++;
	}
	/* Each pass uses one decimal less, in case rounding made a digit. */
	for (decimals = q.unit ? 2 : 0; decimals >= 0; decimals--) {
		double rounded;

		grid = pow(10, decimals);
		rounded = rounding(sp_text_steady(scaled * grid)) / grid;

		if (rounded < 10 ||
		    (decimals == 1 && (fine || rounded < 100)) ||
		    decimals == 0) {
			scaled = rounded;
			break;
		}
	}
	if (goes_up(scaled, q.unit)) {
		scaled /= 1024;
		q.unit++;
		decimals = 2;
	}
	grid = pow(10, floor(log10(fmax(scaled, 1))) - 2);
	if (scaled < DIGITS_MAX)
		snprintf(q.digits, sizeof(q.digits), "%.*f", decimals, scaled);
	else
		snprintf(q.digits, sizeof(q.digits), "%.3g",
			 rounding(scaled / grid) * grid);
	return q;
}

/* Instead of a figure that nobody knows: infinite, or none. */
static const struct sp_text_cell unknown = {"unknown"};

struct sp_text_cell sp_text_bytes(double bytes)
{
	struct sp_text_cell cell = {"0"};
	struct quantity q;

	if (!isfinite(bytes))
		return unknown;
	q = split_bytes(bytes, nearbyint, true);
	if (bytes > 0)
		snprintf(cell.text, sizeof(cell.text), "%s %s", q.digits,
			 unit_names[q.unit]);
	return cell;
}

struct sp_text_cell sp_text_bytes_beyond(double bytes, bool is_up)
{
	struct sp_text_cell cell = {"0"};
	struct quantity q;

	if (!isfinite(bytes))
		return unknown;
	q = split_bytes(bytes, is_up ? ceil : floor, true);
	if (bytes > 0)
		snprintf(cell.text, sizeof(cell.text), "%s %s", q.digits,
			 unit_names[q.unit]);
	return cell;
}

struct sp_text_cell sp_text_size(uint64_t bytes)
{
	struct sp_text_cell cell;
	uint64_t scaled = bytes;
	size_t unit = 0;

	while (scaled >= 1024 && scaled % 1024 == 0) {
		scaled /= 1024;
		unit++;
	}
	if (scaled >= 1024)
		return sp_text_bytes((double)bytes);
	snprintf(cell.text, sizeof(cell.text), "%" PRIu64 " %s", scaled,
		 unit_names[unit]);
	return cell;
}

/* That much and perhaps more. */
static struct sp_text_cell at_least(struct sp_text_cell lo)
{
	struct sp_text_cell cell;

	snprintf(cell.text, sizeof(cell.text), "at least %.40s", lo.text);
	return cell;
}

/* Beside a figure of which nothing is certain. */
static const struct sp_text_cell no_limits = {"limits unknown"};

struct sp_text_cell sp_text_interval(struct sp_interval bytes)
{
	struct sp_text_cell cell;
	struct quantity lo, hi;

	if (!isfinite(bytes.hi))
		return bytes.lo > 0
			       ? at_least(sp_text_bytes_beyond(bytes.lo, false))
			       : unknown;
	lo = split_bytes(bytes.lo, floor, false);
	hi = split_bytes(bytes.hi, ceil, false);
	/* Every allocation was recorded, or nothing can have been missed. */
	if (bytes.lo >= bytes.hi)
		snprintf(cell.text, sizeof(cell.text), "exact");
	else if (!(bytes.lo > 0))
		snprintf(cell.text, sizeof(cell.text), "[0, %s] %s", hi.digits,
			 unit_names[hi.unit]);
	else if (lo.unit == hi.unit)
		snprintf(cell.text, sizeof(cell.text), "[%s, %s] %s", lo.digits,
			 hi.digits, unit_names[hi.unit]);
	else
		snprintf(cell.text, sizeof(cell.text), "[%s %s, %s %s]",
			 lo.digits, unit_names[lo.unit], hi.digits,
			 unit_names[hi.unit]);
	return cell;
}

struct sp_text_estimate sp_text_estimate(struct sp_interval bytes,
					 uint64_t samples)
{
	struct sp_text_estimate e = {
		.order = SP_TEXT_POINT_FIRST,
		.first = sp_text_bytes(bytes.value),
		.second = sp_text_interval(bytes),
	};
	struct quantity hi;

	if (!isfinite(bytes.hi)) {
		if (bytes.lo > 0 || !samples) {
			e.first = e.second;
			e.second.text[0] = '\0';
		} else {
			e.second = no_limits;
		}
		return e;
	}
	if (!(bytes.lo < bytes.hi) ||
	    (samples > SP_TEXT_FEW_SAMPLES && bytes.lo > 0))
		return e;
	if (!samples) {
		hi = split_bytes(bytes.hi, ceil, false);
		snprintf(e.first.text, sizeof(e.first.text), "<= %s %s",
			 hi.digits, unit_names[hi.unit]);
		e.second.text[0] = '\0';
		e.order = SP_TEXT_BOUND;
		return e;
	}
	e.first = e.second;
	snprintf(e.second.text, sizeof(e.second.text), "~%.40s",
		 sp_text_bytes(bytes.value).text);
	e.order = SP_TEXT_INTERVAL_FIRST;
	return e;
}

struct sp_text_cell sp_text_level(double confidence)
{
	struct sp_text_cell cell;
	/* What a binary fraction lacks of 99.9 is not the level's fault. */
	double percent = floor(confidence * 10000 + 1e-6) / 100;

	snprintf(cell.text, sizeof(cell.text), "%.4g %%", percent);
	return cell;
}

double sp_text_one_sided(double confidence)
{
	return 1 - (1 - confidence) / 2;
}

void sp_text_print_estimate(FILE *out, struct sp_interval bytes,
			    uint64_t samples, double confidence)
{
	struct sp_text_estimate e = sp_text_estimate(bytes, samples);

	switch (e.order) {
	case SP_TEXT_POINT_FIRST:
		if (!(bytes.hi > bytes.lo))
			fprintf(out, "%s, exact", e.first.text);
		else if (!*e.second.text)
			fputs(e.first.text, out);
		else
			fprintf(out, "%s (%s: %s)", e.first.text,
				sp_text_level(confidence).text, e.second.text);
		return;
	case SP_TEXT_INTERVAL_FIRST:
		fprintf(out, "%s (%s), %s", e.first.text,
			sp_text_level(confidence).text, e.second.text);
		return;
	case SP_TEXT_BOUND:
		if (!(bytes.hi > 0)) {
			fputs("0", out);
			return;
		}
		fprintf(out, "at most %s with %s", e.first.text + 3,
			sp_text_level(sp_text_one_sided(confidence)).text);
		return;
	}
}

struct sp_text_cell sp_text_estimate_cell(struct sp_interval bytes,
					  uint64_t samples)
{
	const struct sp_text_estimate e = sp_text_estimate(bytes, samples);
	struct sp_text_cell cell;

	snprintf(cell.text, sizeof(cell.text), "%.31s%s%.31s", e.first.text,
		 *e.second.text ? " " : "", e.second.text);
	return cell;
}

void sp_text_print_legend(FILE *out, bool has_few, bool has_bound,
			  double confidence)
{
	if (has_few)
		fprintf(out,
			"  ~ from %d samples or fewer, or perhaps nothing: the "
			"interval comes first\n",
			SP_TEXT_FEW_SAMPLES);
	if (has_bound)
		fprintf(out,
			"  <= no sample: at most that with %s, at most %.1f "
			"periods\n",
			sp_text_level(sp_text_one_sided(confidence)).text,
			-log((1 - confidence) / 2));
}

uint64_t sp_text_to_count(double count)
{
	return !(count > 0) ? 0 : count < 9.2e18 ? (uint64_t)count : INT64_MAX;
}

static struct sp_text_cell count_cell(double count, double (*rounding)(double))
{
	if (!isfinite(count))
		return unknown;
	return sp_text_count(sp_text_to_count(rounding(sp_text_steady(count))));
}

struct sp_text_cell sp_text_objects_cell(struct sp_interval objects)
{
	struct sp_text_cell cell;

	if (!isfinite(objects.hi) && objects.lo > 0)
		cell = at_least(count_cell(objects.lo, floor));
	else if (!isfinite(objects.hi))
		snprintf(cell.text, sizeof(cell.text), "%.26s %s",
			 count_cell(objects.value, nearbyint).text,
			 no_limits.text);
	else if (objects.lo < objects.hi)
		snprintf(cell.text, sizeof(cell.text), "%.26s [%.26s, %.26s]",
			 count_cell(objects.value, nearbyint).text,
			 count_cell(objects.lo, floor).text,
			 count_cell(objects.hi, ceil).text);
	else
		snprintf(cell.text, sizeof(cell.text), "%.26s exact",
			 count_cell(objects.value, nearbyint).text);
	return cell;
}

void sp_text_print_objects(FILE *out, struct sp_interval objects)
{
	const bool is_least = !isfinite(objects.hi) && objects.lo > 0;
	const double n = is_least ? floor(sp_text_steady(objects.lo))
				  : nearbyint(sp_text_steady(objects.value));

	fprintf(out, "%s%s object%s", is_least ? "at least " : "",
		count_cell(n, nearbyint).text,
		sp_text_plural(sp_text_to_count(n)));
	if (is_least)
		return;
	if (!isfinite(objects.hi))
		fprintf(out, ", %s", no_limits.text);
	else if (objects.lo < objects.hi)
		fprintf(out, " [%s, %s]", count_cell(objects.lo, floor).text,
			count_cell(objects.hi, ceil).text);
}

struct sp_text_cell sp_text_count(uint64_t count)
{
	struct sp_text_cell cell = {""};
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%" PRIu64, count);
	char *to = cell.text;

	for (int i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return cell;
}

/* Nobody reads more. */
#define PERCENT_MAX 999999.0

struct sp_text_cell sp_text_percent(double part, double whole)
{
	struct sp_text_cell cell = {"-"};
	double percent = whole > 0 ? sp_text_steady(100 * part / whole) : 0;

	if (!(whole > 0) || !isfinite(percent))
		return cell;
	if (!(part > 0))
		snprintf(cell.text, sizeof(cell.text), "0%%");
	else if (percent < 0.05)
		snprintf(cell.text, sizeof(cell.text), "<0.1%%");
	else if (percent > PERCENT_MAX)
		snprintf(cell.text, sizeof(cell.text), ">%.0f%%", PERCENT_MAX);
	else
		snprintf(cell.text, sizeof(cell.text), "%.1f%%", percent);
	return cell;
}

struct sp_text_cell sp_text_duration(uint64_t ns)
{
	struct sp_text_cell cell = {""};
	const uint64_t s = ns / 1000000000;
	const uint64_t minutes = s / 60;
	const uint64_t hours = minutes / 60;
	char *text = cell.text;
	const size_t size = sizeof(cell.text);

	if (ns < 1000000)
		snprintf(text, size, "%" PRIu64 " us", ns / 1000);
	else if (!s)
		snprintf(text, size, "%" PRIu64 " ms", ns / 1000000);
	else if (!minutes)
		snprintf(text, size, "%" PRIu64 ".%" PRIu64 " s", s,
			 ns / 100000000 % 10);
	else if (!hours)
		snprintf(text, size, "%" PRIu64 " min %02" PRIu64 " s", minutes,
			 s % 60);
	else if (hours < 24)
		snprintf(text, size, "%" PRIu64 " h %02" PRIu64 " min", hours,
			 minutes % 60);
	else
		snprintf(text, size, "%" PRIu64 " d %02" PRIu64 " h",
			 hours / 24, hours % 24);
	return cell;
}

struct sp_text_cell sp_text_moment(uint64_t ns)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	struct sp_text_cell cell;
	double scaled = (double)ns;
	int decimals = 3;
	size_t unit = 0;

	for (; scaled >= 999.95 && unit < 3; unit++)
		scaled /= 1000;
	for (double bound = 9.9995; decimals && scaled >= bound; bound *= 10)
		decimals--;
	if (!unit)
		decimals = 0;
	snprintf(cell.text, sizeof(cell.text), "%.*f %s", decimals, scaled,
		 ns ? units[unit] : "s");
	return cell;
}

struct sp_text_cell sp_text_moment_within(uint64_t ns, uint64_t error_ns)
{
	struct sp_text_cell cell = {"< "};
	const size_t n = strlen(cell.text);

	if (!error_ns)
		return sp_text_moment(ns);
	if (ns >= error_ns)
		return sp_text_duration(ns);
	snprintf(cell.text + n, sizeof(cell.text) - n, "%.*s",
		 (int)(sizeof(cell.text) - n - 1),
		 sp_text_duration(error_ns).text);
	return cell;
}

struct sp_text_cell sp_text_time(uint64_t unix_ns)
{
	struct sp_text_cell cell;
	time_t s = (time_t)(unix_ns / 1000000000);
	struct tm tm;

	/* 64 bits of nanoseconds end in 2554: gmtime_r cannot fail. */
	gmtime_r(&s, &tm);
	strftime(cell.text, sizeof(cell.text), "%Y-%m-%d %H:%M:%S UTC", &tm);
	return cell;
}

unsigned int sp_text_decode_utf8(const char *text, uint32_t *ret_code)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *p = (const unsigned char *)text;
	unsigned int n;
	uint32_t code;

	if (p[0] < 0x80) {
		*ret_code = p[0];
		return 1;
	}
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	code = p[0] & (0xffu >> (n + 1));
	/* The NUL at the end is no continuation: nothing beyond it is read. */
	for (unsigned int i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (p[i] & 0x3f);
	}
	if (code < least[n] || code > 0x10ffff ||
	    (code >= 0xd800 && code <= 0xdfff))
		return 0;
	*ret_code = code;
	return n;
}

bool sp_text_is_unsafe(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code <= 0x9f) ||
	       code == 0x061c || code == 0x200e || code == 0x200f ||
	       (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2066 && code <= 0x2069);
}

/*
 * The character at `text`: how many bytes to take, and whether they may be
 * written as they are.
 */
static unsigned int next_char(const char *text, bool *ret_plain)
{
	uint32_t code = 0;
	unsigned int n = sp_text_decode_utf8(text, &code);

	*ret_plain =
		n && !sp_text_is_unsafe(code) && !(wants_ascii && code >= 0x80);
	return n ? n : 1;
}

static void print_char(FILE *out, const char *text, unsigned int n, bool plain)
{
	if (plain) {
		fwrite(text, 1, n, out);
		return;
	}
	for (unsigned int i = 0; i < n; i++)
		fprintf(out, "\\x%02x", (unsigned char)text[i]);
}

void sp_text_print(FILE *out, const char *text)
{
	while (*text) {
		bool plain;
		unsigned int n = next_char(text, &plain);

		print_char(out, text, n, plain);
		text += n;
	}
}

const char *sp_text_plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

void sp_text_print_shell_path(FILE *out, const char *path)
{
	if (*path == '-')
		fputs("./", out);
	sp_text_print_shell(out, path);
}

void sp_text_print_shell(FILE *out, const char *text)
{
	static const char safe[] = "abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789_-+=.,:@%/";
	bool all_plain = true;
	bool plain;

	if (*text && text[strspn(text, safe)] == '\0') {
		fputs(text, out);
		return;
	}
	for (const char *p = text; *p; p += next_char(p, &plain)) {
		next_char(p, &plain);
		all_plain = all_plain && plain && *p != '\'';
	}
	if (all_plain) {
		fprintf(out, "'%s'", text);
		return;
	}
	fputs("$'", out);
	while (*text) {
		unsigned int n = next_char(text, &plain);

		if (*text == '\'' || *text == '\\')
			putc('\\', out);
		print_char(out, text, n, plain);
		text += n;
	}
	putc('\'', out);
}

const char *sp_text_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}
