/* SPDX-License-Identifier: MIT */
/* Strict parsing: a table; and random text, compared with a naive parser. */
#include "base/parse.h"
#include "base/rng.h"
#include "support/test.h"

#define UNTOUCHED 0x1234567890abcdefull

typedef bool parse_fn(const char *text, uint64_t *ret);

static void accepts(parse_fn *parse, const char *text, uint64_t want)
{
	uint64_t v = UNTOUCHED;

	if (!parse(text, &v) || v != want)
		fail_msg("\"%s\" should be %llu", text,
			 (unsigned long long)want);
}

static void refuses(parse_fn *parse, const char *text)
{
	uint64_t v = UNTOUCHED;

	if (parse(text, &v) || v != UNTOUCHED)
		fail_msg("\"%s\" should be refused and touch nothing", text);
}

TEST(u64)
{
	static const char *const bad[] = {
		"",    " ",   "-1",  "+1",   " 1",
		"1 ",  "1\n", "0x",  "0x ",  "x1",
		"1x",  "0xg", "1.0", "1e3",  "18446744073709551616",
		"1K",  "a",   "--",  "0x0x", "0x10000000000000000",
		"1,0", "'1'", "٣",
	};

	accepts(sp_parse_u64, "0", 0);
	accepts(sp_parse_u64, "007", 7);
	accepts(sp_parse_u64, "18446744073709551615", UINT64_MAX);
	accepts(sp_parse_u64, "0x0", 0);
	accepts(sp_parse_u64, "0XfF", 255);
	accepts(sp_parse_u64, "0xffffffffffffffff", UINT64_MAX);
	accepts(sp_parse_u64, "0x00000000000000000001", 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refuses(sp_parse_u64, bad[i]);
}

TEST(size)
{
	static const char *const bad[] = {
		"",
		"K",
		"KiB",
		"-1K",
		"1 K",
		"1kB",
		"1KB",
		"1Ki",
		"1KiBs",
		"1KK",
		"1P",
		"1B",
		"1iB",
		"0x10",
		"1.5M",
		"1K ",
		"16777216T",
		"1e3",
		"18446744073709551616",
		"18014398509481984K",
	};

	accepts(sp_parse_size, "0", 0);
	accepts(sp_parse_size, "0T", 0);
	accepts(sp_parse_size, "512", 512);
	accepts(sp_parse_size, "512k", 512 << 10);
	accepts(sp_parse_size, "512KiB", 512 << 10);
	accepts(sp_parse_size, "3m", 3 << 20);
	accepts(sp_parse_size, "3MiB", 3 << 20);
	accepts(sp_parse_size, "7G", 7ull << 30);
	accepts(sp_parse_size, "7g", 7ull << 30);
	accepts(sp_parse_size, "1T", 1ull << 40);
	accepts(sp_parse_size, "1tiB", 1ull << 40);
	accepts(sp_parse_size, "16777215T", 16777215ull << 40);
	accepts(sp_parse_size, "18446744073709551615", UINT64_MAX);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refuses(sp_parse_size, bad[i]);
}

/* The grammar once more, by exhaustive comparison instead of scanning: every
 * allowed suffix is tried, the digits are added up in 128 bits. */
static bool model_size(const char *text, uint64_t *ret)
{
	static const char *const suffixes[] = {"",    "k",   "m",   "g",  "t",
					       "kiB", "miB", "giB", "tiB"};
	size_t n = strlen(text), digits = strspn(text, "0123456789");
	unsigned __int128 v = 0;

	if (!digits || digits > 25)
		return false;
	for (size_t i = 0; i < digits; i++)
		v = v * 10 + (unsigned int)(text[i] - '0');
	for (size_t i = 0; i < 9; i++) {
		const char *s = suffixes[i];
		const char *tail = text + digits;

		if (strlen(s) != n - digits)
			continue;
		if (s[0] &&
		    (s[0] != (tail[0] | 0x20) || strcmp(s + 1, tail + 1) != 0))
			continue;
		for (size_t k = 0; k < (i + 3) % 4 + 1 && i; k++)
			v *= 1024;
		*ret = (uint64_t)v;
		return v <= UINT64_MAX;
	}
	return false;
}

TEST(random_text)
{
	static const char alphabet[] = "0123456789999kKmMgGtTiB x-";
	struct sp_rng rng;
	unsigned int accepted = 0;

	sp_rng_init(&rng, 3, 1);
	for (int i = 0; i < 400000; i++) {
		char text[24];
		uint64_t got = UNTOUCHED, want = UNTOUCHED;
		size_t n = sp_rng_next(&rng) % 22;
		size_t head = n - (n ? sp_rng_next(&rng) % (n < 4 ? n : 4) : 0);

		for (size_t k = 0; k < n; k++)
			text[k] = k < head ? alphabet[sp_rng_next(&rng) % 13]
					   : alphabet[sp_rng_next(&rng) %
						      (sizeof(alphabet) - 1)];
		text[n] = '\0';
		if (model_size(text, &want)) {
			accepts(sp_parse_size, text, want);
			accepted++;
		} else {
			refuses(sp_parse_size, text);
		}
		/* Both parsers agree on plain decimal numbers. */
		if (strspn(text, "0123456789") == n) {
			assert_int_equal(sp_parse_u64(text, &got),
					 sp_parse_size(text, &want));
			assert_true(got == UNTOUCHED || got == want);
		}
	}
	assert_true(accepted > 50000);
}

TEST(duration)
{
	static const char *const bad[] = {
		"",    "s",     "5",    "-1s",   "1 s",  "1.5s",
		"1s ", "1m30",  "1s1m", "1s1s",  "1S",   "1min",
		"end", "1ms1s", "0x1s", "1us1h", "1e3s", "18446744073710s",
	};

	accepts(sp_parse_duration, "0s", 0);
	accepts(sp_parse_duration, "7ns", 7);
	accepts(sp_parse_duration, "7us", 7000);
	accepts(sp_parse_duration, "500ms", 500000000);
	accepts(sp_parse_duration, "2s", 2000000000);
	accepts(sp_parse_duration, "90s", 90000000000);
	accepts(sp_parse_duration, "1m", 60000000000);
	accepts(sp_parse_duration, "1m30s", 90000000000);
	accepts(sp_parse_duration, "1h", 3600000000000);
	accepts(sp_parse_duration, "1h2m3s4ms5us6ns", 3723004005006);
	accepts(sp_parse_duration, "1m5ms", 60005000000);
	accepts(sp_parse_duration, "18446744073709551615ns", UINT64_MAX);
	refuses(sp_parse_duration, "1us18446744073709551615ns");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refuses(sp_parse_duration, bad[i]);
}

/* What is printed with every unit that is not 0 is read as what it was. */
TEST(random_durations)
{
	static const uint64_t units[] = {3600000000000, 60000000000, 1000000000,
					 1000000,       1000,        1};
	static const char *const names[] = {"h", "m", "s", "ms", "us", "ns"};
	struct sp_rng rng;

	sp_rng_init(&rng, 3, 2);
	for (int i = 0; i < 20000; i++) {
		uint64_t ns = sp_rng_next(&rng) >> sp_rng_next(&rng) % 64;
		uint64_t rest = ns;
		char text[80] = "";

		for (size_t k = 0; k < 6; k++) {
			size_t n = strlen(text);

			if (rest / units[k] || (k == 5 && !ns))
				snprintf(text + n, sizeof(text) - n, "%llu%s",
					 (unsigned long long)(rest / units[k]),
					 names[k]);
			rest %= units[k];
		}
		accepts(sp_parse_duration, text, ns);
	}
}

TEST(milli)
{
	static const char *const bad[] = {
		"",      ".",    "1.",  ".5",   "-1",   "1.2345",
		"1.2.3", "1e3",  "1,5", "99.%", "1 ",   "18446744073709552",
		"0x10",  "1.-5", "nan", "inf",  "1.5x",
	};

	accepts(sp_parse_milli, "0", 0);
	accepts(sp_parse_milli, "99.9", 99900);
	accepts(sp_parse_milli, "99.99", 99990);
	accepts(sp_parse_milli, "0.001", 1);
	accepts(sp_parse_milli, "100", 100000);
	accepts(sp_parse_milli, "12.050", 12050);
	accepts(sp_parse_milli, "18446744073709551.615", UINT64_MAX);
	refuses(sp_parse_milli, "18446744073709551.616");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refuses(sp_parse_milli, bad[i]);
}

TEST(period)
{
	static const char *const bad[] = {
		"",          "500",    "/s",
		"0/s",       "-1/s",   "1.5/s",
		"1 /s",      "1/s ",   "1/S",
		"1/sec",     "1/m",    "OFF",
		"off/s",     "offset", "0x10/s",
		"1000001/s", "1k/s",   "18446744073709551617/s",
	};

	accepts(sp_parse_rate, "off", 0);
	accepts(sp_parse_rate, "1/s", 1);
	accepts(sp_parse_rate, "0500/s", 500);
	accepts(sp_parse_rate, "1000000/s", SP_PARSE_RATE_MAX);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refuses(sp_parse_rate, bad[i]);
}

TEST(fraction)
{
	static const char *const bad[] = {
		"",        "5",      "%",        "0%",
		"0.0000%", ".5%",    "5.",       "5.%",
		"-1%",     "100.1%", "0.00001%", "5%%",
		"5 %",     " 5%",    "1e1%",     "18446744073709551615%",
	};

	accepts(sp_parse_fraction, "100%", SP_PARSE_FRACTION_ALL);
	accepts(sp_parse_fraction, "5%", 50000);
	accepts(sp_parse_fraction, "0.0001%", 1);
	accepts(sp_parse_fraction, "099.9999%", 999999);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refuses(sp_parse_fraction, bad[i]);
}

TEST_MAIN(NULL, NULL)
