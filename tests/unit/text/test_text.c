/* SPDX-License-Identifier: MIT */
/*
 * Numbers, intervals and untrusted names as text: every byte, every code point,
 * random bytes.
 */
#include <math.h>

#include "base/rng.h"
#include "text/figures.h"
#include "text/text.h"
#include "support/test.h"

#define KIB 1024.0
#define MIB (1024 * KIB)

TEST(bytes)
{
	static const struct {
		double bytes;
		const char *text;
	} cases[] = {
		{0, "0"},
		{1, "1 B"},
		{17.4, "17 B"},
		{1023.4, "1023 B"},
		{1023.5, "1.00 KiB"},
		{1024, "1.00 KiB"},
		/* a half, but for the noise of a product, goes to the even one
		 */
		{1.035 * KIB, "1.04 KiB"},
		{1.045 * KIB, "1.04 KiB"},
		{9.994 * KIB, "9.99 KiB"},
		{9.996 * KIB, "10.0 KiB"},
		{210.2 * MIB, "210.2 MiB"},
		{1023.94 * KIB, "1023.9 KiB"},
		{1023.96 * KIB, "1.00 MiB"},
		{3 * 1024 * MIB, "3.00 GiB"},
		{18446744073709551615.0, "16.0 EiB"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(sp_text_bytes(cases[i].bytes).text,
				    cases[i].text);
}

TEST(size)
{
	assert_string_equal(sp_text_size(0).text, "0 B");
	assert_string_equal(sp_text_size(1).text, "1 B");
	assert_string_equal(sp_text_size(512 << 10).text, "512 KiB");
	assert_string_equal(sp_text_size(1 << 20).text, "1 MiB");
	assert_string_equal(sp_text_size(1536).text, "1.50 KiB");
	assert_string_equal(sp_text_size(1u << 31).text, "2 GiB");
	assert_string_equal(sp_text_size(1ull << 63).text, "8 EiB");
	assert_string_equal(sp_text_size(UINT64_MAX).text, "16.0 EiB");
}

static const char *interval(double lo, double hi)
{
	static struct sp_text_cell cell;

	cell = sp_text_interval((struct sp_interval){hi, lo, hi});
	return cell.text;
}

TEST(interval)
{
	assert_string_equal(interval(192.7 * MIB, 230.1 * MIB),
			    "[192, 231] MiB");
	assert_string_equal(interval(0, 230 * MIB), "[0, 230] MiB");
	assert_string_equal(interval(0, 0), "exact");
	assert_string_equal(interval(7, 7), "exact");
	assert_string_equal(interval(13.09 * KIB, 2.841 * MIB),
			    "[13.0 KiB, 2.85 MiB]");
	assert_string_equal(interval(99.98 * KIB, 99.99 * KIB),
			    "[99.9, 100] KiB");
	assert_string_equal(interval(1023.4 * KIB, 1023.5 * KIB),
			    "[1023 KiB, 1.00 MiB]");
	assert_string_equal(interval(9.5, 10.5), "[9, 11] B");
	/* the noise of a sum is not rounded outwards */
	assert_string_equal(
		interval(144 * MIB * (1 - 1e-13), 148 * MIB * (1 + 1e-13)),
		"[144, 148] MiB");
	assert_string_equal(
		interval(144 * MIB * (1 - 1e-6), 148 * MIB * (1 + 1e-6)),
		"[143, 149] MiB");
}

/* The number at `text` in the unit after it or, if there is none, in `unit`;
 * bytes if that is NULL.  Returns the end of the digits. */
static const char *read_bytes(const char *text, const char *unit, double *ret)
{
	static const char prefixes[] = "BKMGTPE";
	const char *end = text + strspn(text, "0123456789.");

	if (*end == ' ')
		unit = end + 1;
	*ret = ldexp(atof(text),
		     unit ? 10 * (int)(strchr(prefixes, *unit) - prefixes) : 0);
	return end;
}

static const char *change(double lo, double hi, bool is_bytes)
{
	static struct sp_text_cell cell;

	cell = sp_figure_interval((struct sp_interval){hi, lo, hi}, is_bytes,
				  true);
	return cell.text;
}

/* Limits of a change are rounded outwards, as all limits are. */
TEST(change)
{
	assert_string_equal(change(-23.91 * MIB, -20.69 * MIB, true),
			    "[-24.0, -20.6] MiB");
	assert_string_equal(change(-1.001 * MIB, 1.001 * KIB, true),
			    "[-1.01 MiB, +1.01 KiB]");
	assert_string_equal(change(20.61 * MIB, 23.91 * MIB, true),
			    "[+20.6, +24.0] MiB");
	assert_string_equal(change(-1096.4, 1096.4, false), "[-1,097, +1,097]");
	assert_string_equal(change(1096.4, 1097 + 1e-9, false),
			    "[+1,096, +1,097]");
	assert_string_equal(change(5, 5, true), "exact");
}

/* Where nothing is known there is no figure, whichever way it is written: no
 * infinity, no number that only a machine would print, and no zero with a sign.
 */
TEST(unknown)
{
	static const double nothing[] = {INFINITY, -INFINITY, NAN};
	const struct sp_interval least = {35 * MIB, 33.71 * MIB, INFINITY};
	const struct sp_interval unknown = {35 * MIB, 0, INFINITY};

	for (size_t i = 0; i < 3; i++) {
		const double x = nothing[i];

		assert_string_equal(sp_text_bytes(x).text, "unknown");
		assert_string_equal(sp_text_bytes_beyond(x, true).text,
				    "unknown");
		assert_string_equal(sp_figure(x, true).text, "unknown");
		assert_string_equal(sp_figure(x, false).text, "unknown");
		assert_string_equal(sp_figure_change(x, true).text, "unknown");
		assert_string_equal(sp_figure_change(x, false).text, "unknown");
		assert_string_equal(sp_figure_percent(x, 1).text, "unknown");
		assert_string_equal(sp_figure_percent(1, x).text, "unknown");
	}
	assert_string_equal(change(-INFINITY, INFINITY, true), "unknown");
	assert_string_equal(change(-INFINITY, INFINITY, false), "unknown");
	assert_string_equal(sp_figure_share(NAN).text, "unknown");
	assert_string_equal(sp_figure_share(-1e-17).text, "0.00 %");
	assert_string_equal(sp_figure_share(-1e-4).text, "0.00 %");
	assert_string_equal(sp_figure_share(1e17).text, "> 999999 %");
	assert_string_equal(sp_figure_percent(1, 1e17).text, "> +999999 %");
	assert_string_equal(sp_figure_percent(1, 10000.99).text, "+999999 %");
	assert_string_equal(interval(33.71 * MIB, INFINITY),
			    "at least 33.7 MiB");
	assert_string_equal(interval(0, INFINITY), "unknown");
	assert_string_equal(sp_text_estimate_cell(least, 1).text,
			    "at least 33.7 MiB");
	assert_string_equal(sp_text_estimate_cell(unknown, 9).text,
			    "35.0 MiB limits unknown");
	assert_string_equal(sp_text_estimate_cell(unknown, 0).text, "unknown");
	assert_string_equal(
		sp_text_objects_cell((struct sp_interval){9, 7.9, INFINITY})
			.text,
		"at least 7");
	assert_string_equal(
		sp_text_objects_cell((struct sp_interval){9, 0, INFINITY}).text,
		"9 limits unknown");
	assert_int_equal(sp_text_to_count(NAN), 0);
	assert_int_equal(sp_text_to_count(-1), 0);
}

static double unit_interval(struct sp_rng *rng)
{
	return ldexp((double)(sp_rng_next(rng) >> 11), -53);
}

TEST(interval_contains_what_it_stands_for)
{
	struct sp_rng rng;

	sp_rng_init(&rng, 20, 0);
	for (int i = 0; i < 20000; i++) {
		double value = exp2(60 * unit_interval(&rng));
		double lo = value * (1 - unit_interval(&rng) / 100);
		double hi = value * (1 + unit_interval(&rng) / 100);
		/* One limit or the other is the point, never both. */
		struct sp_interval in = {value, i % 6 ? lo : value,
					 i % 6 != 3 ? hi : value};
		struct sp_text_cell text = sp_text_interval(in);
		struct sp_text_cell point_text = sp_text_bytes(value);
		const char *unit = strchr(text.text, ']') + 1;
		const char *at = text.text + 1;
		double point, got_lo, got_hi;

		read_bytes(point_text.text, NULL, &point);
		unit = *unit ? unit + 1 : NULL;
		at = read_bytes(at, unit, &got_lo);
		read_bytes(strchr(at, ',') + 2, unit, &got_hi);
		assert_true(got_lo <= in.lo && got_hi >= in.hi);
		assert_true(got_lo <= point && got_hi >= point);
		/* Not by being needlessly wide: three digits of 1..1023, or
		 * whole bytes. */
		assert_true(got_lo >= in.lo * (1 - 0.0101) - 1);
		assert_true(got_hi <= in.hi * (1 + 0.0101) + 1);
	}
}

static void estimate(double value, double hi, uint64_t samples,
		     enum sp_text_order order, const char *first,
		     const char *second)
{
	struct sp_interval bytes = {value, value / 2, hi};
	struct sp_text_estimate e = sp_text_estimate(bytes, samples);

	assert_int_equal(e.order, order);
	assert_string_equal(e.first.text, first);
	assert_string_equal(e.second.text, second);
}

TEST(estimate)
{
	estimate(KIB, 2 * KIB, 4, SP_TEXT_POINT_FIRST, "1.00 KiB",
		 "[512 B, 2.00 KiB]");
	estimate(KIB, 2 * KIB, 3, SP_TEXT_INTERVAL_FIRST, "[512 B, 2.00 KiB]",
		 "~1.00 KiB");
	estimate(KIB, 2 * KIB, 1, SP_TEXT_INTERVAL_FIRST, "[512 B, 2.00 KiB]",
		 "~1.00 KiB");
	estimate(0, 2.001 * KIB, 0, SP_TEXT_BOUND, "<= 2.01 KiB", "");
	/* No error: nothing can have been missed. */
	estimate(0, 0, 0, SP_TEXT_POINT_FIRST, "0", "exact");
	estimate(0, 0, 2, SP_TEXT_POINT_FIRST, "0", "exact");
}

static char *printed_estimate(double value, double hi, uint64_t samples,
			      double confidence)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	sp_text_print_estimate(out, (struct sp_interval){value, value / 2, hi},
			       samples, confidence);
	putc(';', out);
	sp_text_print_objects(out, (struct sp_interval){value, value / 2, hi});
	fprintf(out, ";%s",
		sp_text_estimate_cell(
			(struct sp_interval){value, value / 2, hi}, samples)
			.text);
	fclose(out);
	return text;
}

static void prints(double value, double hi, uint64_t samples, double confidence,
		   const char *want)
{
	FREED char *got = printed_estimate(value, hi, samples, confidence);

	assert_string_equal(got, want);
}

TEST(print_estimate)
{
	prints(2 * KIB, 3 * KIB, 9, 0.95,
	       "2.00 KiB (95 %: [1.00, 3.00] KiB);2,048 objects [1,024, "
	       "3,072];2.00 KiB [1.00, 3.00] KiB");
	prints(2 * KIB, 3 * KIB, 2, 0.999,
	       "[1.00, 3.00] KiB (99.9 %), ~2.00 KiB;2,048 objects [1,024, "
	       "3,072];[1.00, 3.00] KiB ~2.00 KiB");
	prints(0, 3 * KIB, 0, 0.99,
	       "at most 3.00 KiB with 99.5 %;0 objects [0, 3,072];<= 3.00 "
	       "KiB");
	/* Objects are rounded outwards, too. */
	prints(1, 2.1, 0, 0.9, "at most 3 B with 95 %;1 object [0, 3];<= 3 B");
	prints(0, 0, 0, 0.9, "0, exact;0 objects;0 exact");
}

TEST(level)
{
	static const struct {
		double confidence;
		const char *text;
	} cases[] = {
		{0.9, "90 %"},        {0.95, "95 %"},
		{0.99, "99 %"},       {0.999, "99.9 %"},
		{0.975, "97.5 %"},    {0.9995, "99.95 %"},
		{0.995, "99.5 %"},    {1 - 0.05 / 30, "99.83 %"},
		{0.99999, "99.99 %"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(sp_text_level(cases[i].confidence).text,
				    cases[i].text);
	assert_string_equal(sp_text_level(sp_text_one_sided(0.95)).text,
			    "97.5 %");
}

TEST(moment)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {
		{0, "0 s"},
		{7, "7 ns"},
		{999, "999 ns"},
		{1000, "1.000 us"},
		{9999, "9.999 us"},
		{12345, "12.35 us"},
		{812300, "812.3 us"},
		{812250, "812.2 us"},
		{1125, "1.125 us"},
		{11125, "11.12 us"},
		{999940, "999.9 us"},
		{999950, "1.000 ms"},
		{325000000, "325.0 ms"},
		{1234000000, "1.234 s"},
		{9999600000, "10.00 s"},
		{62500000000, "62.50 s"},
		{3600000000000, "3600 s"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(sp_text_moment(cases[i].ns).text,
				    cases[i].text);
}

/* No more is said of a time than what is known. */
TEST(moment_within)
{
	assert_string_equal(sp_text_moment_within(7794, 0).text, "7.794 us");
	assert_string_equal(sp_text_moment_within(7794, 1000000).text,
			    "< 1 ms");
	assert_string_equal(sp_text_moment_within(999999, 1000000).text,
			    "< 1 ms");
	assert_string_equal(sp_text_moment_within(1000000, 1000000).text,
			    "1 ms");
	assert_string_equal(sp_text_moment_within(28990000, 1000000).text,
			    "28 ms");
	assert_string_equal(sp_text_moment_within(3210000000, 1000000).text,
			    "3.2 s");
}

TEST(count)
{
	static const struct {
		uint64_t count;
		const char *text;
	} cases[] = {
		{0, "0"},
		{999, "999"},
		{1000, "1,000"},
		{12345, "12,345"},
		{999999, "999,999"},
		{5912331, "5,912,331"},
		{UINT64_MAX, "18,446,744,073,709,551,615"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(sp_text_count(cases[i].count).text,
				    cases[i].text);
}

TEST(percent)
{
	assert_string_equal(sp_text_percent(0, 10).text, "0%");
	assert_string_equal(sp_text_percent(10, 10).text, "100.0%");
	assert_string_equal(sp_text_percent(3.5, 10).text, "35.0%");
	assert_string_equal(sp_text_percent(0.0049, 10).text, "<0.1%");
	assert_string_equal(sp_text_percent(0.0051, 10).text, "0.1%");
	assert_string_equal(sp_text_percent(0, 0).text, "-");
	assert_string_equal(sp_text_percent(1, 0).text, "-");
}

TEST(duration)
{
	const uint64_t s = 1000000000;
	static const struct {
		uint64_t ns;
		const char *text;
	} below_a_minute[] = {
		{0, "0 us"},
		{999999, "999 us"},
		{1000000, "1 ms"},
		{999999999, "999 ms"},
		{1000000000, "1.0 s"},
		{3290000000, "3.2 s"},
		{59999999999, "59.9 s"},
	};

	for (size_t i = 0;
	     i < sizeof(below_a_minute) / sizeof(below_a_minute[0]); i++)
		assert_string_equal(sp_text_duration(below_a_minute[i].ns).text,
				    below_a_minute[i].text);
	assert_string_equal(sp_text_duration(60 * s).text, "1 min 00 s");
	assert_string_equal(sp_text_duration(245 * s).text, "4 min 05 s");
	assert_string_equal(sp_text_duration(3599 * s).text, "59 min 59 s");
	assert_string_equal(sp_text_duration(3600 * s).text, "1 h 00 min");
	assert_string_equal(sp_text_duration(86399 * s).text, "23 h 59 min");
	assert_string_equal(sp_text_duration(55 * 3600 * s).text, "2 d 07 h");
	assert_string_equal(sp_text_duration(UINT64_MAX).text, "213503 d 23 h");
}

TEST(time)
{
	assert_string_equal(sp_text_time(0).text, "1970-01-01 00:00:00 UTC");
	assert_string_equal(sp_text_time(1795254012999999999).text,
			    "2026-11-21 09:40:12 UTC");
	assert_string_equal(sp_text_time(UINT64_MAX).text,
			    "2554-07-21 23:34:33 UTC");
}

/* The naive encoder that decoding is compared with; n bytes and a NUL. */
static unsigned int encode(uint32_t code, char text[5])
{
	unsigned int n = code < 0x80      ? 1
			 : code < 0x800   ? 2
			 : code < 0x10000 ? 3
					  : 4;

	memset(text, 0, 5);
	for (unsigned int i = n; i-- > 1; code >>= 6)
		text[i] = (char)(0x80 | (code & 0x3f));
	text[0] = (char)(n == 1 ? code : (0xf00u >> n & 0xff) | code);
	return n;
}

static bool is_code(uint32_t code)
{
	return code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
}

TEST(decode_every_code)
{
	char text[5];

	for (uint32_t code = 1; code < 0x200000; code++) {
		unsigned int n = encode(code, text);
		uint32_t got = 0;

		assert_int_equal(sp_text_decode_utf8(text, &got),
				 is_code(code) ? n : 0);
		assert_int_equal(got, is_code(code) ? code : 0);
	}
}

/* Whatever is taken for a character is its one encoding. */
TEST(decode_random_bytes)
{
	struct sp_rng rng;
	unsigned int accepted = 0;

	sp_rng_init(&rng, 21, 0);
	for (int i = 0; i < 2000000; i++) {
		uint64_t bits = sp_rng_next(&rng) | 0x80;
		char text[5] = {0};
		char again[5];
		uint32_t code;
		unsigned int n;

		memcpy(text, &bits, 4);
		/* Random continuation bytes are too rare. */
		for (int k = 1; k < 4; k++)
			if (bits >> (32 + k) & 1)
				text[k] = (char)(0x80 | (text[k] & 0x3f));
		n = sp_text_decode_utf8(text, &code);
		if (!n)
			continue;
		accepted++;
		assert_true(is_code(code));
		assert_int_equal(encode(code, again), n);
		assert_memory_equal(text, again, n);
	}
	assert_true(accepted > 100000);
}

static char *written(void (*print)(FILE *, const char *), const char *text)
{
	static char buf[8192];
	FILE *out = fmemopen(buf, sizeof(buf), "w");

	buf[0] = '\0';
	print(out, text);
	fclose(out);
	return buf;
}

static void assert_prints(const char *text, const char *want)
{
	assert_string_equal(written(sp_text_print, text), want);
}

TEST(print_every_byte)
{
	for (unsigned int byte = 1; byte < 256; byte++) {
		char text[] = {'a', (char)byte, 'z', '\0'};
		char want[16];

		snprintf(want, sizeof(want), "a\\x%02xz", byte);
		assert_prints(text, byte < 0x20 || byte >= 0x7f ? want : text);
	}
}

TEST(print_sequences)
{
	assert_prints("", "");
	assert_prints("\x1b]52;c;eA==\x07", "\\x1b]52;c;eA==\\x07");
	assert_prints("line\r\nline", "line\\x0d\\x0aline");
	assert_prints("Gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\x98",
		      "Gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\x98");
	/* C1 as a byte, and as a character. */
	assert_prints("\x9b"
		      "31m",
		      "\\x9b31m");
	assert_prints("\xc2\x9b"
		      "31m",
		      "\\xc2\\x9b31m");
	/* Overlong, surrogate, beyond the last, cut short. */
	assert_prints("\xc0\xaf", "\\xc0\\xaf");
	assert_prints("\xe0\x80\xaf", "\\xe0\\x80\\xaf");
	assert_prints("\xed\xa0\x80", "\\xed\\xa0\\x80");
	assert_prints("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
	assert_prints("\xe2\x82", "\\xe2\\x82");
	assert_prints("\xe2\x82(\xc3\xa9", "\\xe2\\x82(\xc3\xa9");
}

TEST(print_ascii)
{
	sp_text_set_ascii(true);
	assert_prints("Gr\xc3\xbc\xc3\x9f \xe2\x82\xac!",
		      "Gr\\xc3\\xbc\\xc3\\x9f \\xe2\\x82\\xac!");
	assert_prints("plain ~", "plain ~");
	sp_text_set_ascii(false);
	assert_prints("\xc3\xbc", "\xc3\xbc");
}

TEST(print_unsafe_characters)
{
	static const uint32_t unsafe[] = {
		0x80,   0x9f,   0x61c,  0x200e, 0x200f, 0x2028, 0x2029, 0x202a,
		0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069,
	};
	static const uint32_t harmless[] = {
		0xa0,   0x61b,  0x61d,  0x200d, 0x2010,
		0x2027, 0x202f, 0x2065, 0x206a,
	};
	char text[5];

	for (size_t i = 0; i < sizeof(unsafe) / sizeof(unsafe[0]); i++) {
		encode(unsafe[i], text);
		assert_int_equal(strlen(written(sp_text_print, text)),
				 4 * strlen(text));
	}
	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
		encode(harmless[i], text);
		assert_prints(text, text);
	}
}

static void assert_shell(const char *text, const char *want)
{
	assert_string_equal(written(sp_text_print_shell, text), want);
}

TEST(print_shell)
{
	assert_shell("a/b-c_1.2.sprof", "a/b-c_1.2.sprof");
	assert_shell("", "''");
	assert_shell("my file", "'my file'");
	assert_shell("$(reboot);`x`", "'$(reboot);`x`'");
	assert_shell("back\\slash", "'back\\slash'");
	assert_shell("~", "'~'");
	assert_shell("it's", "$'it\\'s'");
	assert_shell("it's \\", "$'it\\'s \\\\'");
	assert_shell("a\nb\xff", "$'a\\x0ab\\xff'");
	assert_shell("\xe2\x80\xae", "$'\\xe2\\x80\\xae'");
}

TEST(print_shell_path)
{
	assert_string_equal(written(sp_text_print_shell_path, "-a b"),
			    "./'-a b'");
	assert_string_equal(written(sp_text_print_shell_path, "a-b"), "a-b");
	assert_string_equal(written(sp_text_print_shell_path, ""), "''");
}

TEST(base_name)
{
	assert_string_equal(sp_text_base_name("/usr/lib/libc.so.6"),
			    "libc.so.6");
	assert_string_equal(sp_text_base_name("app"), "app");
	assert_string_equal(sp_text_base_name("/odd/"), "/odd/");
	assert_string_equal(sp_text_base_name(""), "");
}

TEST_MAIN(NULL, NULL)
