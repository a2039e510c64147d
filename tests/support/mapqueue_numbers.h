/* SPDX-License-Identifier: MIT */
#pragma once

/* A queue of changes that are told apart by their numbers, and what was taken
 * from it. */
#include "agent/file/mapqueue.h"
#include "support/test.h"

#define TAKEN_MAX 100000u

static uint64_t taken[TAKEN_MAX];
static size_t n_taken;

static void note(const struct sp_mapchange *change)
{
	taken[n_taken++] = change->number;
}

static bool put(uint64_t number)
{
	const struct sp_mapchange change = {.number = number};

	return sp_mapqueue_put(&change);
}

static int empty_queue(void **state)
{
	(void)state;
	sp_mapqueue_give_left();
	sp_mapqueue_reset();
	n_taken = 0;
	return 0;
}

static void assert_in_order(uint64_t from, size_t n)
{
	assert_int_equal(n_taken, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(taken[i], from + i);
	n_taken = 0;
}
