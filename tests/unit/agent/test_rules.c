/* SPDX-License-Identifier: MIT */
/*
 * The cache of rules is never wrong: growing, full, with objects that come,
 * written by four threads.
 */
#include <pthread.h>

#include "agent/unwind/modules.h"
#include "agent/unwind/rules.h"
#include "support/test.h"

#define FEW  400u
#define MANY 40000u

/* A rule that its address tells. */
static struct sp_cfi_rule rule_of(uintptr_t pc)
{
	struct sp_cfi_rule rule = {
		.kind = (enum sp_cfi_kind)(1 + pc / 16 % 7),
		.is_exact = pc / 32 % 2,
	};

	/* Any that fits. */
	sp_arch_unpack(pc * 2654435761u >> 8, &rule.cfa_bytes, &rule.bp_bytes,
		       &rule.pc_bytes);
	return rule;
}

static uintptr_t address(unsigned int i)
{
	return 0x7f0000001000ul + i * 16ul * 7;
}

/* Known and right, or not known; never wrong. */
static bool knows(uintptr_t pc)
{
	struct sp_cfi_rule expected = rule_of(pc), rule;

	if (!sp_rules_find(pc, &rule))
		return false;
	assert_int_equal(rule.kind, expected.kind);
	assert_int_equal(rule.cfa_bytes, expected.cfa_bytes);
	assert_int_equal(rule.bp_bytes, expected.bp_bytes);
	assert_int_equal(rule.pc_bytes, expected.pc_bytes);
	assert_int_equal(rule.is_exact, expected.is_exact);
	return true;
}

static void add(uintptr_t pc, bool is_permanent)
{
	struct sp_cfi_rule rule = rule_of(pc);

	sp_rules_add(pc, &rule, is_permanent);
}

TEST(empty)
{
	assert_false(knows(address(0)));
	assert_false(knows(0));
}

/* Few are all kept; of many, those that fit. */
TEST(grows)
{
	unsigned int known = 0;

	for (unsigned int i = 0; i < FEW; i++) {
		assert_false(knows(address(i)));
		add(address(i), true);
		assert_true(knows(address(i)));
	}
	for (unsigned int i = FEW; i < MANY; i++)
		add(address(i), true);
	for (unsigned int i = 0; i < MANY; i++)
		known += knows(address(i));
	/* 40,000 in 32,768 sets of two: a twentieth finds no room. */
	assert_true(known > MANY / 10 * 9);
	for (unsigned int i = MANY; i < 2 * MANY; i++)
		assert_false(knows(address(i)));
}

/* The last one counts. */
TEST(replaced)
{
	const uintptr_t pc = address(3 * MANY);
	struct sp_cfi_rule end = {.kind = SP_CFI_END}, rule;

	add(pc, true);
	assert_true(knows(pc));
	sp_rules_add(pc, &end, true);
	assert_true(sp_rules_find(pc, &rule));
	assert_int_equal(rule.kind, SP_CFI_END);
}

/* Rules of objects that can go are forgotten when another one is met. */
TEST(new_object)
{
	const uintptr_t lasting = address(4 * MANY), passing = lasting + 16;
	unsigned int before;

	sp_modules_init("/opt/program");
	before = sp_modules_count();
	assert_true(before > 0);
	add(lasting, true);
	add(passing, false);
	assert_true(knows(lasting) && knows(passing));
	sp_modules_init("/opt/program");
	assert_true(sp_modules_count() > before);
	assert_true(knows(lasting));
	assert_false(knows(passing));
	add(passing, false);
	assert_true(knows(passing));
}

static void *add_and_find(void *arg)
{
	const unsigned int first = *(const unsigned int *)arg;

	for (int round = 0; round < 20; round++) {
		for (unsigned int i = 0; i < 4000; i++) {
			add(address(first + i), true);
			knows(address(first + 5000 - i));
		}
	}
	return NULL;
}

/* Entries are written over each other all the time. */
TEST(threads)
{
	unsigned int first[4] = {5 * MANY, 5 * MANY + 1000, 5 * MANY,
				 5 * MANY + 2000};
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, add_and_find,
						&first[i]),
				 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (unsigned int i = 0; i < 8000; i++)
		knows(address(5 * MANY + i));
}

TEST_MAIN(NULL, NULL)
