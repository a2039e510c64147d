/* SPDX-License-Identifier: MIT */
/* Records of mappings, shuffled and repeated in part, as segments of a file
 * have them, compared with an account of each address: which mapping it was of,
 * and when it was gone. */
#include "base/rng.h"
#include "read/mappings.h"
#include "support/test.h"

#define BYTES 64
#define CALLS 400
#define BASE  0x10000u

struct call {
	bool is_end;
	struct sp_record_map map; /* an end has no stack and no flags */
};

static struct sp_rng rng;
static struct call records[20000];
static size_t n_records;

/* Of each address: the mapping that it is of; 0: none. */
static uint64_t owner[BYTES];
/* When that was gone: 0: never of it; SP_NEVER: it still is. */
static uint64_t gone[CALLS + 1][BYTES];
static uint64_t told[CALLS + 1][BYTES];
static uint64_t flags_of[CALLS + 1];

static uint64_t below(uint64_t n)
{
	return sp_rng_next(&rng) % n;
}

static uint64_t time_of(uint64_t number)
{
	return 1000 + number / 2; /* some at the same moment */
}

static void add_record(const struct call *c)
{
	assert_true(n_records < sizeof(records) / sizeof(*records));
	records[n_records++] = *c;
}

static struct call make_call(uint64_t number, uint64_t start, uint64_t n)
{
	return (struct call){.map = {.number = number,
				     .flags = flags_of[number],
				     .time_ns = time_of(number),
				     .start = BASE + start,
				     .bytes = n,
				     .thread = number % 3,
				     .stack = number % 7}};
}

/* What is there now, once more, as a new segment has it. */
static void repeat_all(void)
{
	for (uint64_t i = 0, n; i < BYTES; i += n) {
		struct call c;

		for (n = 1; i + n < BYTES && owner[i + n] == owner[i];)
			n++;
		if (!owner[i])
			continue;
		c = make_call(owner[i], i, n);
		add_record(&c);
	}
}

static void make_random_call(uint64_t number)
{
	const uint64_t start = below(BYTES), n = 1 + below(BYTES - start);
	struct call c;

	flags_of[number] = below(3) ? 0 : SP_MAP_NO_ACCESS;
	c = make_call(number, start, n);
	c.is_end = below(5) < 2;
	for (uint64_t i = start; i < start + n; i++) {
		if (owner[i])
			gone[owner[i]][i] = time_of(number);
		owner[i] = c.is_end ? 0 : number;
		if (!c.is_end)
			gone[number][i] = SP_NEVER;
	}
	add_record(&c);
}

static void shuffle_records(void)
{
	for (size_t i = n_records; i > 1; i--) {
		const size_t k = below(i);
		const struct call c = records[k];

		records[k] = records[i - 1];
		records[i - 1] = c;
	}
}

static int take_part(void *arg, const struct sp_span *part, uint64_t gone_ns)
{
	(void)arg;
	assert_true(part->number && part->number <= CALLS);
	assert_int_equal(part->stack, part->number % 7 + 1);
	assert_int_equal(part->thread, part->number % 3 + 1);
	assert_int_equal(part->flags, flags_of[part->number]);
	assert_true(part->time_ns == time_of(part->number));
	for (uint64_t i = part->start - BASE; i < part->end - BASE; i++) {
		assert_true(!told[part->number][i]);
		told[part->number][i] = gone_ns;
	}
	return 0;
}

static void check_sums(const struct sp_mapped *m)
{
	uint64_t bytes = 0, reserved = 0;

	for (uint64_t i = 0; i < BYTES; i++)
		if (owner[i] && flags_of[owner[i]])
			reserved++;
		else
			bytes += owner[i] != 0;
	assert_true(m->is_known);
	assert_int_equal(m->bytes, bytes);
	assert_int_equal(m->reserved_bytes, reserved);
	assert_true(m->peak_bytes >= bytes && m->peak_bytes <= BYTES);
}

static void play_all(struct sp_mapped *ret)
{
	struct sp_mappings m = {.n = 0};

	for (size_t i = 0; i < n_records; i++) {
		const struct sp_record_map *r = &records[i].map;
		const struct sp_record_unmap end = {.number = r->number,
						    .time_ns = r->time_ns,
						    .start = r->start,
						    .bytes = r->bytes};

		assert_int_equal(
			records[i].is_end
				? sp_mappings_end(&m, &end)
				: sp_mappings_add(&m, r, (uint32_t)r->stack + 1,
						  (uint32_t)r->thread + 1),
			0);
	}
	memset(told, 0, sizeof(told));
	assert_int_equal(sp_mappings_play(&m, take_part, NULL, ret), 0);
}

/* With records before that call discarded, but for the repetitions there. */
static void check_from(uint64_t seed, uint64_t discarded)
{
	struct sp_mapped sums;

	sp_rng_init(&rng, seed, discarded);
	memset(owner, 0, sizeof(owner));
	memset(gone, 0, sizeof(gone));
	n_records = 0;
	for (uint64_t number = 1; number <= CALLS; number++) {
		if (number == discarded) {
			n_records = 0;
			memset(gone, 0, sizeof(gone));
			for (uint64_t i = 0; i < BYTES; i++)
				gone[owner[i]][i] = SP_NEVER;
			memset(gone[0], 0, sizeof(gone[0]));
		}
		if (number == discarded || !below(40))
			repeat_all();
		make_random_call(number);
	}
	shuffle_records();
	play_all(&sums);
	assert_memory_equal(told, gone, sizeof(told));
	check_sums(&sums);
}

TEST(random_calls)
{
	for (uint64_t seed = 1; seed <= 30; seed++) {
		check_from(seed, 0);
		check_from(seed, 1 + seed * CALLS / 31);
	}
}

/* A part that is gone before it began, by clocks of two threads, was there for
 * no time. */
TEST(times_the_other_way)
{
	struct sp_mappings m = {.n = 0};
	struct sp_mapped sums;
	struct sp_record_map map = {1, 0, 500, BASE, 8, 0, 0};
	struct sp_record_unmap end = {2, 400, BASE, 8, 0};

	flags_of[1] = 0;
	assert_int_equal(sp_mappings_end(&m, &end), 0);
	assert_int_equal(sp_mappings_add(&m, &map, 2, 2), 0);
	memset(told, 0, sizeof(told));
	assert_int_equal(sp_mappings_play(&m, NULL, NULL, &sums), 0);
	assert_int_equal(sums.bytes, 0);
	assert_int_equal(sums.made_bytes, 8);
	assert_int_equal(sums.made, 1);
	assert_int_equal(sums.peak_bytes, 8);
	assert_int_equal(sums.peak_ns, 500);
	assert_int_equal(sums.live, 0);
}

TEST(none)
{
	struct sp_mappings m = {.n = 0};
	struct sp_mapped sums;

	assert_int_equal(sp_mappings_play(&m, take_part, NULL, &sums), 0);
	assert_false(sums.is_known);
}

static int fail_part(void *arg, const struct sp_span *part, uint64_t gone_ns)
{
	(void)arg;
	(void)part;
	(void)gone_ns;
	return -7;
}

TEST(what_the_function_returns)
{
	struct sp_mappings m = {.n = 0};
	struct sp_mapped sums;
	struct sp_record_map map = {1, 0, 500, BASE, 8, 0, 0};

	assert_int_equal(sp_mappings_add(&m, &map, 2, 2), 0);
	assert_int_equal(sp_mappings_play(&m, fail_part, NULL, &sums), -7);
}

TEST_MAIN(NULL, NULL)
