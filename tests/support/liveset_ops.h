/* SPDX-License-Identifier: MIT */
#pragma once

/* Steps of the live set's tests. */
#include "support/liveset_check.h"
#include "support/test.h"

static inline uint64_t address_of(uint64_t i)
{
	return 0x7f5500000010 + 48 * i;
}

static inline const void *pointer(uint64_t address)
{
	return (const void *)(uintptr_t)address;
}

/* Of the process that the set is in. */
static uint32_t generation = 1;

static inline struct sp_live sample(uint64_t id)
{
	return (struct sp_live){.id = id,
				.clock_bytes = id * 4096,
				.thread = (uint32_t)(id % 97 + 1),
				.generation = generation};
}

static inline void assert_sample(const struct sp_live *live, uint64_t id)
{
	struct sp_live expected = sample(id);

	assert_memory_equal(live, &expected, sizeof(expected));
}

static inline enum sp_liveset_result insert(uint64_t address, uint64_t id,
					    struct sp_live *ret_old)
{
	struct sp_live live = sample(id);

	return sp_liveset_insert(pointer(address), &live, ret_old);
}

static inline void add(uint64_t address, uint64_t id)
{
	struct sp_live old;

	assert_int_equal(insert(address, id, &old), SP_LIVESET_ADDED);
}

static inline void assert_taken(uint64_t address, uint64_t id)
{
	struct sp_live live;

	assert_true(sp_filter_may_have(pointer(address)));
	assert_true(sp_liveset_may_have(pointer(address)));
	assert_true(sp_liveset_take(pointer(address), &live));
	assert_sample(&live, id);
}

static inline void assert_absent(uint64_t address)
{
	struct sp_live live;

	assert_false(sp_liveset_take(pointer(address), &live));
}

/* Nothing is wrong inside, and `live` addresses are there. */
static inline struct liveset_check assert_sound(uint64_t live)
{
	struct liveset_check c;

	liveset_check(&c);
	assert_int_equal(c.addresses, live);
	assert_int_equal(c.live, live);
	assert_int_equal(c.busy, 0);
	assert_int_equal(c.duplicates, 0);
	assert_int_equal(c.misplaced, 0);
	assert_int_equal(c.in_transit, 0);
	assert_int_equal(c.wrong, 0);
	/* A child finds that out by and by. */
	if (generation == 1)
		assert_int_equal(c.unknown, 0);
	return c;
}

static inline int begin(void **test_state)
{
	(void)test_state;
	liveset_check_clear();
	return sp_liveset_init() ? 0 : -1;
}

static inline int end(void **test_state)
{
	(void)test_state;
	liveset_check_clear();
	return 0;
}
