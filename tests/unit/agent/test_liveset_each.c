/* SPDX-License-Identifier: MIT */
/* All addresses of the live set, in the middle of anything: those that stay are
 * there, once or twice, and none that is not in the set. */
#include "agent/file/liveset_each.h"
#include "base/rng.h"
#include "support/liveset_ops.h"
#include "support/test.h"

#define ADDRESSES 3000u

static bool is_in[ADDRESSES];
static unsigned int found[ADDRESSES], others;
static uint64_t moving; /* of this one nothing is known; or ADDRESSES */

static void count_one(void *arg, uint64_t address)
{
	const uint64_t i = (address - address_of(0)) / 48;

	(void)arg;
	if (address < address_of(0) || i >= ADDRESSES ||
	    address_of(i) != address)
		others++;
	else
		found[i]++;
}

static void check_all(void)
{
	void (*const step)(void) = liveset_check_step;

	liveset_check_step = NULL;
	memset(found, 0, sizeof(found));
	sp_liveset_each(count_one, NULL);
	assert_int_equal(others, 0);
	for (uint64_t i = 0; i < ADDRESSES; i++) {
		if (i == moving)
			continue;
		if (is_in[i])
			assert_in_range(found[i], 1, 2);
		else
			assert_int_equal(found[i], 0);
	}
	liveset_check_step = step;
}

/* Not at each step: all of it would take minutes. */
static void step_by_step(void)
{
	static unsigned int steps;

	if (++steps % 37 == 0)
		check_all();
}

static void change(uint64_t i)
{
	struct sp_live old;

	moving = i;
	if (is_in[i])
		assert_true(sp_liveset_take(pointer(address_of(i)), &old));
	else
		add(address_of(i), i + 1);
	is_in[i] = !is_in[i];
	moving = ADDRESSES;
}

TEST(none)
{
	liveset_check_clear();
	others = 0;
	sp_liveset_each(count_one, NULL);
	assert_int_equal(others, 0);
}

/* It grows from table to table, and shrinks. */
TEST_BETWEEN(in_the_middle, begin, end)
{
	struct sp_rng rng;

	moving = ADDRESSES;
	others = 0;
	sp_rng_init(&rng, 5, 0);
	liveset_check_step = step_by_step;
	for (uint64_t i = 0; i < ADDRESSES; i++) {
		change(i);
		if (i % 3 == 0)
			change(sp_rng_next(&rng) % (i + 1));
	}
	liveset_check_step = NULL;
	check_all();
	for (uint64_t i = 0; i < ADDRESSES; i++)
		if (is_in[i])
			change(i);
	check_all();
}

TEST_MAIN(NULL, NULL)
