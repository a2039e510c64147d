/* SPDX-License-Identifier: MIT */
/* Totals by size class: which copy counts, what is torn, what is refused. */

#include "base/rng.h"
#include "read/reader.h"
#include "support/format_model.h"
#include "support/scratch.h"
#include "support/test.h"

#define CHUNK  65536u
#define PERIOD 4096u

static struct sp_reader reader;
static struct model_file file;

/* One chunk of records, then `n` of classes. */
static void begin_file(size_t n)
{
	model_file_init(&file, 2 + n, PERIOD);
	for (size_t i = 0; i < n; i++)
		model_file_put_classes(&file, 2 + i);
}

/* A copy with `bytes` in one class; sealed. */
static struct sp_class_page *put_page(size_t chunk, unsigned int pair,
				      uint64_t slot, uint64_t seq,
				      unsigned int class, uint64_t bytes)
{
	struct sp_class_page *page =
		model_file_class_page(&file, chunk, pair, (int)(seq & 1));

	memset(page, 0, sizeof(*page));
	page->seq = seq;
	page->slot = slot;
	page->classes[class] = (struct sp_class_total){bytes, 1};
	model_file_seal_classes(&file, page);
	return page;
}

/* Read all of the first `n` bytes of the file, all if 0. */
static void read_bytes(size_t n)
{
	struct sp_decoded d;
	struct sp_error err;
	int code;

	assert_int_equal(model_file_write(&file, scratch, n ? n : file.bytes.n),
			 0);
	assert_int_equal(sp_reader_open(&reader, scratch, &err), 0);
	while ((code = sp_reader_next(&reader, &d, &err)) > 0)
		;
	assert_int_equal(code, 0);
	sp_reader_close(&reader);
}

static void expect(unsigned int class, uint64_t bytes, uint64_t objects)
{
	assert_int_equal(reader.classes[class].bytes, bytes);
	assert_int_equal(reader.classes[class].objects, objects);
}

static void expect_damage(uint64_t records, const char *text)
{
	assert_int_equal(reader.damage.records, records);
	if (!strstr(reader.damage.text, text))
		fail_msg("\"%s\" instead of \"%s\"", reader.damage.text, text);
}

TEST(none)
{
	begin_file(1);
	model_file_header(&file)->flags =
		SP_HEADER_KNOWN_FLAGS & ~SP_HEADER_PACKED;
	model_file_seal(&file);
	read_bytes(0);
	assert_false(reader.has_classes);
	assert_string_equal(reader.damage.text, "");
	model_done(&file.bytes);
}

/* Of two whole copies the newer, whichever stands first. */
TEST(newer_copy)
{
	begin_file(1);
	put_page(2, 0, 0, 1, 3, 50);
	read_bytes(0);
	assert_true(reader.has_classes);
	expect(3, 50, 1);
	put_page(2, 0, 0, 2, 3, 60);
	read_bytes(0);
	expect(3, 60, 1);
	put_page(2, 0, 0, 3, 3, 70);
	read_bytes(0);
	expect(3, 70, 1);
	assert_string_equal(reader.damage.text, "");
	model_done(&file.bytes);
}

/* A copy that was cut short: the one before it counts. */
TEST(torn)
{
	struct sp_class_page *newer, *older, good;

	begin_file(1);
	older = put_page(2, 1, 1, 4, 9, 160);
	newer = put_page(2, 1, 1, 5, 9, 320);
	good = *newer;

	/* The classes are of the next publication, the sums are not. */
	newer->classes[9].bytes++;
	read_bytes(0);
	expect(9, 160, 1);
	expect_damage(1, "offset 143360: class totals: one of two copies");
	*newer = good;
	newer->classes[251].objects++;
	read_bytes(0);
	expect(9, 160, 1);

	/* Neither fits its check, nor its place. */
	*newer = good;
	newer->alloc_bytes++;
	newer->classes[9].bytes++;
	read_bytes(0);
	expect(9, 160, 1);
	*newer = good;
	newer->seq = 6;
	model_file_seal_classes(&file, newer);
	read_bytes(0);
	expect(9, 160, 1);
	expect_damage(1, "the other one is used");

	older->check ^= 1;
	newer->check ^= 1;
	read_bytes(0);
	assert_false(reader.has_classes);
	expect(9, 0, 0);
	expect_damage(1, "unreadable; intervals are wider");
	model_done(&file.bytes);
}

/* A page that is whole, but of no slot that could stand there. */
TEST(wrong_slot)
{
	static const uint64_t slots[] = {3, 448, 455, UINT64_MAX,
					 UINT64_MAX - 1};

	begin_file(1);
	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		put_page(2, 0, slots[i], 1, 0, 10);
		read_bytes(0);
		assert_false(reader.has_classes);
		expect_damage(1, "class totals");
	}
	put_page(2, 0, 441, 1, 0, 10);
	read_bytes(0);
	expect(0, 10, 1);
	assert_string_equal(reader.damage.text, "");
	model_done(&file.bytes);
}

/* The same slot once more: the first is meant. */
TEST(repeated_slot)
{
	begin_file(2);
	put_page(2, 2, 9, 1, 0, 10);
	put_page(3, 2, 9, 1, 0, 500);
	put_page(3, 3, 10, 1, 0, 7);
	read_bytes(0);
	expect(0, 17, 2);
	model_done(&file.bytes);
}

/* Sums of many slots, beside a plain array; groups come in any order. */
TEST(sum)
{
	uint64_t bytes[SP_FORMAT_CLASSES] = {0};
	uint64_t objects[SP_FORMAT_CLASSES] = {0};
	struct sp_rng rng;

	sp_rng_init(&rng, 3, 1);
	begin_file(64);
	for (unsigned int slot = 0; slot < SP_FORMAT_SLOTS; slot++) {
		struct sp_class_page *page = put_page(
			2 + 63 - slot / 7, slot % 7, slot, 2 + slot % 2, 0, 0);

		for (unsigned int i = 0; i < SP_FORMAT_CLASSES; i++) {
			page->classes[i].bytes = sp_rng_next(&rng) >> 20;
			page->classes[i].objects = sp_rng_next(&rng) >> 30;
			bytes[i] += page->classes[i].bytes;
			objects[i] += page->classes[i].objects;
		}
		model_file_seal_classes(&file, page);
	}
	read_bytes(0);
	for (unsigned int i = 0; i < SP_FORMAT_CLASSES; i++)
		expect(i, bytes[i], objects[i]);
	assert_string_equal(reader.damage.text, "");
	model_done(&file.bytes);
}

/* Sums that only a forged file can have. */
TEST(overflow)
{
	struct sp_class_page *page;

	begin_file(1);
	put_page(2, 0, 0, 1, 5, UINT64_MAX);
	put_page(2, 1, 1, 1, 5, UINT64_MAX);
	read_bytes(0);
	expect(5, UINT64_MAX, 2);
	/* A sum that only fits modulo 2^64 does not fit. */
	page = put_page(2, 1, 1, 1, 5, UINT64_MAX);
	page->classes[6].bytes = 12;
	model_file_seal_classes(&file, page);
	assert_int_equal(page->alloc_bytes, 11);
	read_bytes(0);
	expect(5, UINT64_MAX, 1);
	expect(6, 0, 0);
	expect_damage(1, "class totals");
	model_done(&file.bytes);
}

/* The file ends within a page. */
TEST(cut)
{
	size_t end = 2 * CHUNK + 4096 + 8192 + 4096 + 4096;

	begin_file(1);
	put_page(2, 0, 0, 1, 1, 32);
	put_page(2, 1, 1, 1, 251, 1ull << 60);
	read_bytes(end);
	expect(1, 32, 1);
	expect(251, 1ull << 60, 1);
	expect_damage(1, "truncated");
	read_bytes(end - 4096 + 100);
	expect(1, 32, 1);
	expect(251, 0, 0);
	assert_int_equal(reader.damage.records, 2);
	model_done(&file.bytes);
}

/* Every size is in the class whose range has it. */
TEST(size_counts)
{
	uint64_t low = 1;

	for (unsigned int i = 0; i < SP_FORMAT_CLASSES; i++) {
		uint64_t high = sp_format_class_max(i);

		assert_true(high >= low);
		assert_int_equal(sp_format_class(low), i);
		assert_int_equal(sp_format_class(high), i);
		if (i < 64)
			assert_int_equal(high, 16 * (i + 1));
		else if (i < 251)
			assert_true(high - low + 1 == (low - 1) / 4 ||
				    high - low + 1 < (low - 1) / 4);
		low = high + 1;
	}
	assert_int_equal(low, 0);
	assert_int_equal(sp_format_class_max(63), 1024);
	assert_int_equal(sp_format_class_max(64), 1280);
	assert_int_equal(sp_format_class_max(67), 2048);
}

/* ceil(R ln 100), beside long double. */
TEST(always_bytes)
{
	assert_int_equal(sp_format_always_bytes(1), 5);
	assert_int_equal(sp_format_always_bytes(524288), 2414436);
	for (uint64_t r = 1; r <= SP_FORMAT_PERIOD_MAX; r = r * 3 + 1) {
		long double exact = (long double)r * 4.605170185988091368036L;
		long double got = (long double)sp_format_always_bytes(r);

		assert_true(got >= exact - 1 && got <= exact + 2);
	}
}

TEST_MAIN(scratch_make, scratch_remove)
