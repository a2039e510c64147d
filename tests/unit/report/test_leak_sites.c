/* SPDX-License-Identifier: MIT */
/* Functions with their verdicts, of a made run: which rows there are and in
 * which order, their rates, the call stack that keeps most; and the text. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "cli/leaks.h"
#include "report/leak_sites.h"
#include "support/report_fixture.h"
#include "support/test.h"
#include "text/lines.h"

#define RUN_NS 1000000000ull
#define STEP   1000000ull /* between two objects of a site */
#define SIZE   1000u
#define R      1u

enum { LEAKS, FILLS, STEADY, FEW, MAIN };

struct scene {
	struct fixture *fixture;
	struct sp_stack *leak, *other_leak, *fills, *steady, *few;
	struct sp_aggregate *aggregate;
	struct sp_leak_sites *sites;
};

static void add(struct scene *s, const struct sp_stack *stack, uint64_t born_ns,
		uint64_t life_ns)
{
	struct sp_sample *next = &s->fixture->next;

	next->born_ns = born_ns;
	next->freed_ns = life_ns == SP_NEVER || born_ns + life_ns >= RUN_NS
				 ? SP_NEVER
				 : born_ns + life_ns;
	fixture_samples(s->fixture, stack, 1, SIZE);
}

/* With the square root of the time, and nothing leaves it. */
static bool fills_at(uint64_t t)
{
	const double i = (double)(t / STEP);

	return floor(20 * sqrt(i + 1)) > floor(20 * sqrt(i));
}

static void make(struct scene *s)
{
	static const size_t leak[] = {LEAKS, MAIN}, fills[] = {FILLS, MAIN},
			    steady[] = {STEADY, MAIN}, few[] = {FEW, MAIN},
			    other[] = {LEAKS, FEW, MAIN};
	struct fixture *f = s->fixture = fixture_new(R);

	fixture_symbol(f, LEAKS, "loses", "l.c", 1);
	fixture_symbol(f, FILLS, "caches", "c.c", 2);
	fixture_symbol(f, STEADY, "churns", "s.c", 3);
	fixture_symbol(f, FEW, "rare", "f.c", 4);
	fixture_symbol(f, MAIN, "main", "m.c", 5);
	f->profile.duration_ns = RUN_NS;
	f->profile.has_frees = true;
	f->profile.exact_alloc_bytes = 0;
	s->leak = fixture_stack(f, leak, 2, 0, SIZE);
	s->fills = fixture_stack(f, fills, 2, 0, SIZE);
	s->steady = fixture_stack(f, steady, 2, 0, SIZE);
	s->few = fixture_stack(f, few, 2, 0, SIZE);
	s->other_leak = fixture_stack(f, other, 3, 0, SIZE);
	for (uint64_t t = 0; t < RUN_NS; t += STEP) {
		add(s, t / STEP % 4 ? s->leak : s->other_leak, t, SP_NEVER);
		if (fills_at(t))
			add(s, s->fills, t, SP_NEVER);
		add(s, s->steady, t, 200 * STEP);
		if (t % (250 * STEP) == 100 * STEP)
			add(s, s->few, t, SP_NEVER);
	}
	s->aggregate = fixture_aggregate(f);
	assert_non_null(s->aggregate);
	assert_int_equal(sp_leak_sites_new(s->aggregate, SP_NEVER, SP_NEVER,
					   &s->sites, NULL),
			 0);
}

static void drop(struct scene *s)
{
	sp_leak_sites_free(s->sites);
	fixture_free(s->fixture);
}

static void assert_site(const struct scene *s, size_t i, const char *name,
			enum sp_leak_verdict verdict)
{
	assert_string_equal(s->sites->sites[i].function->name, name);
	assert_int_equal(s->sites->sites[i].leak->verdict, verdict);
}

TEST(order)
{
	struct scene s;

	make(&s);
	/* A caller without a sample of its own is none: main. */
	assert_int_equal(s.sites->n_sites, 4);
	assert_site(&s, 0, "loses", SP_LEAK_LEAK);
	assert_site(&s, 1, "rare", SP_LEAK_UNDECIDED);
	assert_site(&s, 2, "caches", SP_LEAK_FILLING);
	assert_site(&s, 3, "churns", SP_LEAK_STEADY);
	assert_null(s.sites->all.function);
	assert_int_equal(s.sites->leaks->judging.n_leaks, 1);
	drop(&s);
}

/* Each object is known, and there are 1,000 in a second. */
TEST(rate)
{
	const struct sp_leak_site *loses;
	struct scene s;
	double mib;

	make(&s);
	loses = &s.sites->sites[0];
	assert_true(loses->per_s.value > 0.9e6 && loses->per_s.value < 1.1e6);
	assert_true(loses->per_s.lo <= loses->per_s.value &&
		    loses->per_s.value <= loses->per_s.hi);
	mib = s.sites->leaks->alloc_bytes / 1048576.0;
	assert_true(loses->per_mib.value * mib / s.sites->seconds >
			    0.999 * loses->per_s.value &&
		    loses->per_mib.value * mib / s.sites->seconds <
			    1.001 * loses->per_s.value);
	drop(&s);
}

/* Growth by the second is not told of a run of less than a millisecond. */
TEST(too_short_for_rates)
{
	struct sp_leak_sites *sites;
	struct sp_error err;
	struct scene s;

	make(&s);
	s.fixture->profile.duration_ns = 999999;
	assert_int_equal(sp_leak_sites_new(s.aggregate, SP_NEVER, SP_NEVER,
					   &sites, &err),
			 -ENODATA);
	assert_non_null(strstr(err.message, "too short for rates"));
	s.fixture->profile.duration_ns = 1000000;
	assert_int_equal(
		sp_leak_sites_new(s.aggregate, 0, 999999, &sites, &err), 0);
	sp_leak_sites_free(sites);
	drop(&s);
}

/* Three of four came by the shorter one. */
TEST(stack)
{
	const struct sp_leak_site *loses;
	struct scene s;

	make(&s);
	loses = &s.sites->sites[0];
	assert_non_null(loses->stack);
	assert_ptr_equal(loses->stack->stack, s.leak);
	assert_true(loses->stack_share > 0.7 && loses->stack_share < 0.8);
	drop(&s);
}

static void assert_in_order(const char *text, const char *const *words)
{
	for (; *words; words++) {
		text = strstr(text, *words);
		if (!text)
			fail_msg("not there, or not in this order: %s", *words);
		text += strlen(*words);
	}
}

TEST(text)
{
	static const struct sp_leaks_options options = {.top = 0};
	static const char *const words[] = {
		"sampleprof leaks: /bin/app",
		"judged ",
		"all ",
		"Leaks: they grow, and do not slow down",
		"bytes a second, with 95 %",
		"loses\n",
		"< main  (74.9% of its bytes)",
		"Undecided: they grow; whether they slow down cannot be told",
		"in steps",
		"rare\n",
		"Filling: they grow, and slow down",
		"caches\n",
		"Steady: 1 function",
		"notes:\n",
		"on average at most 5 % of the sites called leaks do not leak",
		NULL};
	struct scene s;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	make(&s);
	sp_lines_set_terminal(0);
	sp_leaks_write_text(out, s.aggregate, s.sites, &options);
	fclose(out);
	assert_in_order(text, words);
	assert_null(strstr(text, "No leak was found"));
	free(text);
	drop(&s);
}

/* What is written of one site that is undecided whether it grows. */
static void assert_undecided(double hi, uint64_t period, const char *headline,
			     const char *below)
{
	static const struct sp_leaks_options options = {.top = 0};
	struct sp_leak_site kept;
	struct sp_leak leak;
	struct scene s;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	make(&s);
	kept = s.sites->sites[0];
	leak = *kept.leak;
	leak.verdict = SP_LEAK_UNDECIDED;
	leak.grows = false;
	s.sites->sites[0].leak = &leak;
	s.sites->sites[0].per_s = (struct sp_interval){hi / 2, -1, hi};
	s.sites->sites[0].period_bytes = period;
	s.sites->n_sites = 1;
	s.sites->leaks->judging.n_leaks = 0;
	sp_lines_set_terminal(0);
	sp_leaks_write_text(out, s.aggregate, s.sites, &options);
	fclose(out);
	if (!strstr(text, headline) || !strstr(text, below))
		fail_msg("%s", text);
	free(text);
	s.sites->sites[0] = kept;
	s.sites->n_sites = 4;
	drop(&s);
}

/* "No leak was found" stands above nothing that may leak. */
TEST(undecided_whether_it_grows)
{
	assert_undecided(307200, 4096,
			 "\nNo leak is certain: 1 function has too few samples "
			 "(at most 300.0 KiB/s more).\n",
			 "  at most 300.0 KiB/s more: loses\n"
			 "  to tell, run longer or with --period 4K\n");
	assert_undecided(307200, 512, "(at most 300.0 KiB/s more)",
			 "  to tell, run longer or with --period 1 (every "
			 "allocation)\n");
	assert_undecided(0, 0, "\nNo leak was found.\n",
			 "  to tell, run longer: no period helps\n");
}

TEST_MAIN(NULL, NULL)
