/* SPDX-License-Identifier: MIT */
/* A number, size, time or varint, compared with a plain reading. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/parse.h"
#include "format/fuzz/target.h"

#define UNTOUCHED 0x0123456789abcdefull

/* The number that `digits` are in `base`, up to 2^64; -1: none. */
static __int128 number_of(const char *text, size_t n, const char *digits)
{
	unsigned __int128 v = 0, base = strlen(digits);

	if (n == 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		const char *digit = memchr(digits, text[i], (size_t)base);

		if (!digit)
			return -1;
		v = v * base + (size_t)(digit - digits);
		if (v >> 64)
			return -1;
	}
	return (__int128)v;
}

static __int128 plain_u64(const char *text)
{
	char lower[64];
	size_t n = strlen(text);

	if (strncmp(text, "0x", 2) != 0 && strncmp(text, "0X", 2) != 0)
		return number_of(text, n, "0123456789");
	/* Leading zeros may be many, significant digits are 16. */
	for (text += 2, n -= 2; n > 1 && text[0] == '0'; n--)
		text++;
	if (n >= sizeof(lower))
		return -1;
	for (size_t i = 0; i < n; i++)
		lower[i] = text[i] >= 'A' && text[i] <= 'F'
				   ? (char)(text[i] + 'a' - 'A')
				   : text[i];
	return number_of(lower, n, "0123456789abcdef");
}

static __int128 plain_size(const char *text)
{
	static const char suffixes[] = "kKmMgGtT";
	size_t n = strlen(text);
	const char *suffix;
	__int128 v;

	if (n > 3 && strcmp(text + n - 2, "iB") == 0 &&
	    strchr(suffixes, text[n - 3]))
		n -= 2;
	suffix = n ? strchr(suffixes, text[n - 1]) : NULL;
	v = number_of(text, suffix ? n - 1 : n, "0123456789");
	if (v < 0 || !suffix)
		return v;
	v <<= 10 * ((suffix - suffixes) / 2 + 1);
	return v >> 64 ? -1 : v;
}

static __int128 plain_duration(const char *text)
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = {
		{"h", 3600000000000}, {"m", 60000000000}, {"s", 1000000000},
		{"ms", 1000000},      {"us", 1000},       {"ns", 1},
	};
	__int128 sum = 0, v;
	size_t digits, letters, u = 0;

	do {
		digits = strspn(text, "0123456789");
		letters = strspn(text + digits, "hmsun");
		v = number_of(text, digits, "0123456789");
		text += digits;
		/* From the unit after the last one on. */
		while (u < 6 && (strlen(units[u].unit) != letters ||
				 memcmp(text, units[u].unit, letters) != 0))
			u++;
		if (v < 0 || u == 6)
			return -1;
		sum += v * units[u++].ns;
		text += letters;
	} while (*text);
	return sum >> 64 ? -1 : sum;
}

/* As if it always had three digits after its point. */
static __int128 plain_milli(const char *text)
{
	size_t n = strlen(text), whole = strcspn(text, ".");
	size_t places = whole < n ? n - whole - 1 : 0;
	char *digits = malloc(n + 4);
	__int128 v = -1;

	FUZZ_ASSERT(digits);
	if (whole && (whole == n || places) && places <= 3) {
		memcpy(digits, text, whole);
		strcpy(digits + whole, text + whole + (whole < n));
		strcat(digits, "000" + places);
		v = number_of(digits, strlen(digits), "0123456789");
	}
	free(digits);
	return v;
}

static __int128 plain_rate(const char *text)
{
	size_t digits = strspn(text, "0123456789");
	__int128 v = number_of(text, digits, "0123456789");

	if (strcmp(text, "off") == 0)
		return 0;
	return strcmp(text + digits, "/s") == 0 && v > 0 && v <= 1000000 ? v
									 : -1;
}

static void check_number(const char *text, bool parse(const char *, uint64_t *),
			 __int128 want)
{
	uint64_t v = UNTOUCHED;

	FUZZ_ASSERT(parse(text, &v) == (want >= 0));
	FUZZ_ASSERT(v == (want >= 0 ? (uint64_t)want : UNTOUCHED));
}

/* Bytes that were taken as a varint are one, and the number can be stored
 * again in as many bytes or fewer. */
static void check_varint(const uint8_t *data, size_t size)
{
	struct sp_slice s = {data, data + size, false};
	uint64_t v = sp_slice_varint(&s);
	uint8_t again[SP_VARINT_MAX_BYTES];
	unsigned __int128 plain = 0;
	size_t n = (size_t)(s.at - data);

	FUZZ_ASSERT(n <= size && n <= SP_VARINT_MAX_BYTES);
	if (s.failed) {
		FUZZ_ASSERT(v == 0);
		return;
	}
	for (size_t i = 0; i < n; i++)
		plain |= (unsigned __int128)(data[i] & 0x7f) << 7 * i;
	FUZZ_ASSERT(plain == v);
	FUZZ_ASSERT(sp_varint_bytes(v) <= n);
	FUZZ_ASSERT(sp_varint_put(again, v) == again + sp_varint_bytes(v));
	FUZZ_ASSERT(sp_zigzag(sp_unzigzag(v)) == v);
	s = (struct sp_slice){again, again + sp_varint_bytes(v), false};
	FUZZ_ASSERT(sp_slice_varint(&s) == v && !s.failed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	FUZZ_ASSERT(text);
	memcpy(text, data, size);
	text[size] = '\0';
	check_number(text, sp_parse_u64, plain_u64(text));
	check_number(text, sp_parse_size, plain_size(text));
	check_number(text, sp_parse_duration, plain_duration(text));
	check_number(text, sp_parse_milli, plain_milli(text));
	check_number(text, sp_parse_rate, plain_rate(text));
	free(text);
	check_varint(data, size);
	return 0;
}
