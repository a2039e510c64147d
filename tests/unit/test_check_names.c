/* SPDX-License-Identifier: MIT */
/* What is the same function on both sides: overloads, lambdas, other inlining,
 * other names. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "gate/check.h"
#include "support/gate_scene.h"
#include "support/text_checks.h"

/* Overloads are functions of their own, and read without parameters where that
 * is clear. */
static void test_overloads(void **state)
{
	struct scene *s = scene_new(1);
	const struct sp_finding *f;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct sp_summary *run = i ? s->new[0] : s->old[0];

		add(s, run, "ns::over(int)<main", i ? 8000 : 4000);
		add(s, run, "ns::over(double)<main", i ? 4000 : 8000);
		add(s, run, "libz.so!ns::one(int)<main", i ? 9000 : 4000);
	}
	f = judge(s, "sites=+5%");
	assert_int_equal(f->n_rejected, 2);
	assert_string_equal(f->culprits[0].name, "libz.so!ns::one");
	assert_string_equal(f->culprits[1].name, "libz.so!ns::one < main");
	assert_string_equal(f->culprits[2].name, "ns::over(int)");
	assert_verdict(s, "site(^ns::over$)=+5%", SP_VERDICT_PASS);
	assert_verdict(s, "site(over.int)=+5%", SP_VERDICT_REGRESSION);
	scene_free(s);
}

#define LAMBDA(n) "main::{lambda(int)#" #n "}::operator()(int) const<main"

/* One more lambda in front of others gives them other numbers. */
static void test_lambdas_with_other_numbers(void **state)
{
	(void)state;
	for (unsigned int grown = 0; grown < 2; grown++) {
		struct scene *s = scene_new(1);
		const struct sp_finding *f;

		add(s, s->old[0], LAMBDA(1), 4000);
		add(s, s->old[0], LAMBDA(2), 20000);
		add(s, s->new[0], LAMBDA(1), 100);
		add(s, s->new[0], LAMBDA(2), 4000);
		add(s, s->new[0], LAMBDA(3), grown ? 40000 : 20000);
		for (int i = 0; i < 2; i++) {
			struct sp_summary *run = i ? s->new[0] : s->old[0];

			/* numbers as before, and one that a few samples miss
			 */
			add(s, run, "f::$_0::operator()<main", 4000);
			add(s, run, "g::{lambda()#1}::operator()<main", 4000);
		}
		add(s, s->new[0], "g::{lambda()#2}::operator()<main", 5);
		f = judge(s, "sites=+10%&64K");
		assert_int_equal(s->check->comparable.n_notes, 1);
		assert_has(s->check->comparable.note[0],
			   "main::{lambda(int)#*}::operator()(int) const");
		assert_int_equal(f->verdict, grown ? SP_VERDICT_REGRESSION
						   : SP_VERDICT_PASS);
		if (grown)
			assert_string_equal(
				f->culprits[0].name,
				"main::{lambda(int)#*}::operator()");
		scene_free(s);
	}
}

/* A function that has no frame on one side, since it is inlined there: its
 * bytes are its caller's.  What is new in truth makes its caller grow, too. */
static void test_other_inlining(void **state)
{
	const struct sp_finding *f;

	(void)state;
	for (int is_back = 0; is_back < 2; is_back++) {
		struct scene *s = scene_new(1);
		struct sp_summary *plain = is_back ? s->new[0] : s->old[0];
		struct sp_summary *debug = is_back ? s->old[0] : s->new[0];

		add(s, plain, "work<main", 9000);
		add(s, debug, "inner<outer<work<main", 6000);
		add(s, debug, "outer<work<main", 3000);
		add(s, plain, "libz.so!inflate<main", 3000);
		add(s, debug, "libz.so!deep<libz.so!inflate<main", 3000);
		f = judge(s, "sites=+10%");
		assert_int_equal(f->verdict, SP_VERDICT_CANNOT_TELL);
		assert_has(f->why, "other inlining");
		assert_int_equal(f->n_moved, is_back ? 2 : 3);
		assert_int_equal(f->n_culprits, 0);
		/* two functions in truth, one of them new */
		add(s, s->new[0], "fresh<work<main", 2000);
		f = judge(s, "sites=+10%");
		assert_int_equal(f->verdict, SP_VERDICT_REGRESSION);
		scene_free(s);
	}
}

/* With few samples a function may be on one side by chance. */
static void test_too_few_to_be_renamed(void **state)
{
	(void)state;
	for (uint64_t n = 11; n <= 12; n++) {
		struct scene *s = scene_new(1);

		for (int i = 0; i < 2; i++)
			add(s, i ? s->new[0] : s->old[0], "leaf<main", 300);
		add(s, s->old[0], "leaf<stale<main", 30);
		add(s, s->new[0], "leaf<fresh<main", n);
		judge(s, "sites=+10%");
		assert_int_equal(s->check->n_renamed, n >= 12);
		scene_free(s);
	}
}

static void test_renamed(void **state)
{
	struct scene *s = scene_new(1);

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct sp_summary *run = i ? s->new[0] : s->old[0];

		add(s, run, i ? "leaf<fresh<main" : "leaf<stale<main", 300);
		add(s, run, i ? "fresh<main" : "stale<main", 300);
		add(s, run, "leaf<main", 300);
	}
	/* same place, other module: not the same function */
	add(s, s->old[0], "a.so!f<main", 50);
	add(s, s->new[0], "b.so!f<main", 50);
	/* the same name's other path does not fit */
	add(s, s->old[0], "gone<x<main", 5);
	add(s, s->old[0], "gone<y<main", 100);
	add(s, s->new[0], "come<x<main", 5);
	judge(s, "sites=+10%");
	for (size_t i = 1; i < s->check->n_renamed; i++)
		print_error("%s -> %s\n", s->check->renamed[i].old,
			    s->check->renamed[i].new);
	assert_int_equal(s->check->n_renamed, 1);
	assert_string_equal(s->check->renamed[0].old, "stale");
	assert_string_equal(s->check->renamed[0].new, "fresh");
	/* a.so!f and b.so!f are looked at, fresh did not change */
	assert_string_equal(s->check->findings[0].culprits[0].name, "b.so!f");
	assert_int_equal(s->check->findings[0].n_rejected, 1);
	scene_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_overloads),
		cmocka_unit_test(test_lambdas_with_other_numbers),
		cmocka_unit_test(test_other_inlining),
		cmocka_unit_test(test_renamed),
		cmocka_unit_test(test_too_few_to_be_renamed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
