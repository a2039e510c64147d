/* SPDX-License-Identifier: MIT */
/*
 * Verdicts on runs made by hand: each kind of limit at its edge, differences
 * too uncertain for a verdict, and which function is named.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/check.h"
#include "compare/format.h"
#include "support/close.h"
#include "support/gate_scene.h"
#include "support/test.h"
#include "support/text_checks.h"

TEST(exact_edges)
{
	struct scene *s = scene_new(1);

	s->new[0]->exact_alloc_bytes = 1030;
	s->new[0]->exact_alloc_objects = 9;
	assert_verdict(s, "alloc_bytes=+3%", SP_VERDICT_PASS);
	assert_verdict(s, "alloc_bytes=+2.999%", SP_VERDICT_REGRESSION);
	assert_verdict(s, "alloc_bytes=+30", SP_VERDICT_PASS);
	assert_verdict(s, "alloc_bytes=+29", SP_VERDICT_REGRESSION);
	assert_verdict(s, "alloc_bytes=+1%&30", SP_VERDICT_PASS);
	assert_verdict(s, "alloc_bytes=+3%&1", SP_VERDICT_PASS);
	assert_verdict(s, "alloc_bytes=+1%&29", SP_VERDICT_REGRESSION);
	assert_verdict(s, "alloc_bytes=1030", SP_VERDICT_PASS);
	assert_verdict(s, "alloc_bytes=1029", SP_VERDICT_REGRESSION);
	assert_verdict(s, "alloc_objects=+0%", SP_VERDICT_PASS);
	assert_verdict(s, "alloc_objects=+-10%", SP_VERDICT_PASS);
	assert_verdict(s, "alloc_objects=+-9%", SP_VERDICT_IMPROVED);
	assert_verdict(s, "alloc_objects=+-9%&1", SP_VERDICT_PASS);
}

/* Intervals: [90, 110] against limits below, within and above. */
TEST(estimated_edges)
{
	struct scene *s = scene_new(1);

	s->old[0]->bytes[SP_VIEW_PEAK] = (struct sp_interval){100, 100, 100};
	s->new[0]->bytes[SP_VIEW_PEAK] = (struct sp_interval){100, 90, 110};
	assert_verdict(s, "peak_bytes=110", SP_VERDICT_PASS);
	assert_verdict(s, "peak_bytes=109", SP_VERDICT_CANNOT_TELL);
	assert_verdict(s, "peak_bytes=90", SP_VERDICT_CANNOT_TELL);
	assert_verdict(s, "peak_bytes=89", SP_VERDICT_REGRESSION);
	assert_verdict(s, "peak_bytes=+11%", SP_VERDICT_PASS);
	assert_verdict(s, "peak_bytes=+9%", SP_VERDICT_CANNOT_TELL);
	assert_true(s->check->findings[0].period_needed > 0 &&
		    s->check->findings[0].period_needed < R);
	s->new[0]->bytes[SP_VIEW_PEAK] = (struct sp_interval){200, 190, 210};
	assert_verdict(s, "peak_bytes=+80%", SP_VERDICT_REGRESSION);
	assert_verdict(s, "peak_bytes=+80%&95", SP_VERDICT_CANNOT_TELL);
	assert_verdict(s, "peak_bytes=+80%&110", SP_VERDICT_PASS);
}

TEST(sites)
{
	struct scene *s = scene_new(1);
	const struct sp_finding *f;

	for (int i = 0; i < 2; i++) {
		struct sp_summary *run = i ? s->new[0] : s->old[0];

		add(s, run, "same<main", 400);
		add(s, run, "grown<left<main", i ? 700 : 200);
		add(s, run, "grown<right<main", 200);
		add(s, run, "shrunk<main", i ? 100 : 300);
		add(s, run, "libz.so!inflate<main", i ? 90 : 60);
	}
	add(s, s->new[0], "appeared<main", 30);
	f = judge(s, "sites=+10%");
	assert_int_equal(f->verdict, SP_VERDICT_REGRESSION);
	assert_int_equal(f->n_tests, 5);
	assert_int_equal(f->n_rejected, 2);
	/* each with its paths, but not those that did not grow */
	assert_int_equal(f->n_culprits, 4);
	assert_string_equal(f->culprits[0].name, "grown");
	assert_string_equal(f->culprits[1].name, "grown < left < main");
	assert_string_equal(f->culprits[2].name, "appeared");
	assert_true(f->culprits[2].is_new);
	f = judge(s, "sites=+-10%");
	assert_int_equal(f->n_rejected, 3);
	assert_string_equal(f->culprits[4].name, "shrunk");
	assert_verdict(s, "sites=+50%&1M", SP_VERDICT_REGRESSION);
	assert_verdict(s, "sites=+50%&3M", SP_VERDICT_PASS);
	assert_verdict(s, "site(^grown|^same)=+10%", SP_VERDICT_REGRESSION);
	assert_verdict(s, "site(^same)=+30%", SP_VERDICT_PASS);
	assert_verdict(s, "site(left)=+30%", SP_VERDICT_REGRESSION);
	assert_verdict(s, "module(libz)=+10%", SP_VERDICT_CANNOT_TELL);
	assert_verdict(s, "module(libz)=+300%", SP_VERDICT_PASS);
}

/* What matches nothing is said to be so, with its line; not where samples are
 * missing. */
TEST(pattern_of_nothing)
{
	struct scene *s = scene_new(1);
	struct sp_pair pair = {{s->old, 1}, {s->new, 1}, &s->paths};
	struct sp_error err;

	/* without a sample nothing can match */
	assert_verdict(s, "site(f)=+1%", SP_VERDICT_CANNOT_TELL);
	add(s, s->new[0], "f<main", 100);
	add(s, s->new[0], "libz.so!inflate<main", 100);
	s->new[0]->why_doubtful = "lost";
	assert_verdict(s, "site(^parse_)=+1%", SP_VERDICT_CANNOT_TELL);
	s->new[0]->why_doubtful = NULL;
	/* that is a module */
	sp_limits_done(&s->limits);
	assert_int_equal(sp_limits_add(&s->limits, "site(libz)=+64K", &err), 0);
	s->limits.at[0].file = "heap.limits";
	s->limits.at[0].line = 6;
	sp_check_free(s->check);
	s->check = NULL;
	assert_int_equal(
		sp_check_new(&pair, &s->limits, false, &s->check, &err),
		-EINVAL);
	s->check = NULL;
	assert_string_equal(err.file, "heap.limits");
	assert_string_equal(err.message,
			    "line 6: the pattern of site(libz)=+64K matches "
			    "no function of either side");
	/* a call path that only one side has is enough */
	assert_verdict(s, "module(libz)=+64K", SP_VERDICT_REGRESSION);
}

/* What the limit asks for has to be seen: 10 %, not twice as much. */
TEST(sites_seen_to_be_within)
{
	struct scene *s = scene_new(1);
	const struct sp_finding *f;

	for (int i = 0; i < 2; i++) {
		struct sp_summary *run = i ? s->new[0] : s->old[0];

		add(s, run, "large<main", 4000);
		add(s, run, "small<main", 40);
	}
	f = judge(s, "sites=+10%");
	assert_int_equal(f->verdict, SP_VERDICT_CANNOT_TELL);
	assert_int_equal(f->n_undecided, 1);
	assert_close(f->undecided_share, 0.0099, 1e-3);
	/* 2.58 + 1.64 deviations of a ratio, as (E33) has it, in 40 samples */
	assert_between(R * 0.5 * 40 / 3922, f->period_needed,
		       R * 1.0 * 40 / 3922);
	/* 40 samples do not show 64 KiB, 16 of them; they do show 256 KiB */
	assert_verdict(s, "sites=+10%&64K", SP_VERDICT_CANNOT_TELL);
	assert_verdict(s, "sites=+10%&256K", SP_VERDICT_PASS);
	assert_verdict(s, "sites=+-10%&256K", SP_VERDICT_PASS);
	assert_verdict(s, "sites=+-10%&64K", SP_VERDICT_CANNOT_TELL);
	/* a function without a sample may have 5.3 periods */
	s = scene_new(1);
	add(s, s->old[0], "large<main", 100000);
	add(s, s->new[0], "large<main", 100000);
	assert_verdict(s, "sites=+10%&22K", SP_VERDICT_PASS);
	f = judge(s, "sites=+10%&21K");
	assert_int_equal(f->verdict, SP_VERDICT_CANNOT_TELL);
	assert_has(f->why, "a new function of 21.2 KiB can be without");
	assert_between(4000, f->period_needed, 4095);
}

TEST(too_few_samples)
{
	struct scene *s = scene_new(1);

	assert_verdict(s, "sites=+10%", SP_VERDICT_CANNOT_TELL);
	add(s, s->old[0], "f<main", 20);
	add(s, s->new[0], "f<main", 20);
	assert_verdict(s, "sites=+10%", SP_VERDICT_CANNOT_TELL);
	assert_has(s->check->findings[0].why, "too few samples");
}

/* What threads had not published is no change, and no figure is exact. */
TEST(totals_that_may_be_more)
{
	struct scene *s = scene_new(1);
	char *text = NULL;
	size_t size;
	FILE *out;

	s->old[0]->missing_bytes_max = 100;
	s->new[0]->missing_bytes_max = 4000;
	assert_verdict(s, "alloc_bytes=+3%", SP_VERDICT_PASS);
	out = open_memstream(&text, &size);
	assert_non_null(out);
	sp_check_print_figures(out, &s->check->findings[0], 0.95);
	fclose(out);
	assert_has(text, "(counted: [-");
	assert_null(strstr(text, "exact"));
	free(text);
	s->new[0]->exact_alloc_bytes = 9999;
	assert_verdict(s, "alloc_bytes=+3%", SP_VERDICT_REGRESSION);
}

TEST(what_cannot_be_compared)
{
	struct scene *s = scene_new(1);

	s->new[0]->why_incomplete = "the process still runs";
	s->new[0]->is_least = true;
	assert_verdict(s, "alloc_bytes=+3%", SP_VERDICT_CANNOT_TELL);
	assert_verdict(s, "alloc_bytes=999", SP_VERDICT_REGRESSION);
	assert_has(s->check->caveats.note[0], "the process still runs");
	s->new[0]->why_incomplete = NULL;
	s->old[0]->why_incomplete = "the file is damaged";
	s->old[0]->is_least = true;
	s->new[0]->exact_alloc_bytes = 9999;
	assert_verdict(s, "alloc_bytes=+3%", SP_VERDICT_CANNOT_TELL);
	assert_verdict(s, "alloc_bytes=999", SP_VERDICT_REGRESSION);
	s->old[0]->why_incomplete = NULL;
	s->new[0]->why_doubtful = "lost";
	assert_verdict(s, "alloc_bytes=+3%", SP_VERDICT_REGRESSION);
	assert_verdict(s, "live_bytes=+3%", SP_VERDICT_CANNOT_TELL);
	s->new[0]->why_doubtful = NULL;
	s->new[0]->has_frees = false;
	assert_verdict(s, "live_bytes=24M", SP_VERDICT_CANNOT_TELL);
	assert_verdict(s, "alloc_bytes=+3%", SP_VERDICT_REGRESSION);
	strcpy(s->new[0]->program, "App");
	assert_verdict(s, "alloc_bytes=+3%", SP_VERDICT_CANNOT_TELL);
	assert_has(s->check->caveats.note[0], "different programs: app, App");
	assert_verdict(s, "alloc_bytes=999", SP_VERDICT_REGRESSION);
}

/* One seed on both sides: the samples are not independent. */
TEST(the_seed_of_the_other_side)
{
	static uint64_t seeds[] = {0, 7, 8};
	struct scene *s = scene_new(1);

	s->old[0]->seeds = &seeds[1];
	s->new[0]->seeds = &seeds[2];
	s->old[0]->n_recordings = s->new[0]->n_recordings = 1;
	assert_verdict(s, "alloc_bytes=999", SP_VERDICT_REGRESSION);
	assert_int_equal(s->check->caveats.n_notes, 0);
	s->new[0]->seeds = &seeds[1];
	assert_verdict(s, "alloc_bytes=999", SP_VERDICT_REGRESSION);
	assert_int_equal(s->check->caveats.n_notes, 1);
	assert_has(s->check->caveats.note[0], "old and new have the same seed");
	/* at period 1 none was used, and 0 is not known */
	s->new[0]->period_bytes = 1;
	assert_verdict(s, "alloc_bytes=999", SP_VERDICT_REGRESSION);
	assert_int_equal(s->check->caveats.n_notes, 1); /* the periods */
	assert_has_not(s->check->caveats.note[0], "seed");
	s->new[0]->period_bytes = R;
	s->old[0]->seeds = s->new[0]->seeds = &seeds[0];
	assert_verdict(s, "alloc_bytes=999", SP_VERDICT_REGRESSION);
	assert_int_equal(s->check->caveats.n_notes, 0);
	s->old[0]->seeds = s->new[0]->seeds = NULL;
}

/* A file that was full has lost samples, and none of the exact totals. */
TEST(only_what_is_a_limit_is_called_one)
{
	struct scene *s = scene_new(1);
	const struct sp_finding *f;

	s->new[0]->exact_alloc_bytes = 9999;
	s->old[0]->why_incomplete = "the file was full";
	s->old[0]->lacks_some = true;
	assert_verdict(s, "alloc_bytes=+3%", SP_VERDICT_REGRESSION);
	f = &s->check->findings[0];
	assert_true(f->new.hi == 9999 && isfinite(f->change.lo) &&
		    isfinite(f->change.hi));
	assert_has(s->check->caveats.note[0],
		   "the file was full: its estimates may be too low");
	assert_verdict(s, "live_bytes=+3%", SP_VERDICT_CANNOT_TELL);
	assert_true(isinf(s->check->findings[0].change.hi));
	s->old[0]->is_least = true;
	assert_verdict(s, "alloc_bytes=+3%", SP_VERDICT_CANNOT_TELL);
	assert_true(isinf(s->check->findings[0].change.hi));
	assert_has(s->check->caveats.note[0],
		   "the file was full: its totals are lower limits");
}

/* Of what was allocated while sampling was off no estimate speaks. */
TEST(sampling_was_off)
{
	struct scene *s = scene_new(1);

	for (int i = 0; i < 2; i++) {
		struct sp_summary *run = i ? s->new[0] : s->old[0];
		struct sp_phase_sum *load = sp_summary_add_phase(run, "load");

		add(s, run, "f<main", 4000);
		load->exact_alloc_bytes = 500;
		load->has_rows = true;
		gate_phase_add(load, &s->paths, "f<main",
			       &(struct sp_acc){.period_bytes = R});
		run->bytes[SP_VIEW_PEAK] = (struct sp_interval){100, 90, 110};
	}
	s->new[0]->unsampled_bytes = 370;
	assert_verdict(s, "sites=+30%&1M", SP_VERDICT_CANNOT_TELL);
	assert_string_equal(s->check->findings[0].why,
			    "new: no samples cover 37 % of what was "
			    "allocated");
	assert_has(s->check->caveats.note[0], "new: no samples cover 37 %");
	assert_verdict(s, "site(f)=+30%", SP_VERDICT_CANNOT_TELL);
	assert_verdict(s, "peak_bytes=+99%", SP_VERDICT_CANNOT_TELL);
	/* a cap that is exceeded is exceeded; what is counted is counted */
	assert_verdict(s, "peak_bytes=120", SP_VERDICT_CANNOT_TELL);
	assert_verdict(s, "peak_bytes=80", SP_VERDICT_REGRESSION);
	assert_verdict(s, "alloc_bytes=+3%", SP_VERDICT_PASS);
	/* in a phase, what was allocated in it */
	assert_verdict(s, "site(f)@load=+1%", SP_VERDICT_CANNOT_TELL);
	assert_has(s->check->findings[0].why, "nothing of it was sampled");
	s->new[0]->phases[0].unsampled_bytes = 500;
	assert_verdict(s, "site(f)@load=+1%", SP_VERDICT_CANNOT_TELL);
	assert_has(s->check->findings[0].why, "cover 100 %");
	s->new[0]->unsampled_bytes = 0;
	s->new[0]->phases[0].unsampled_bytes = 0;
	s->old[0]->unsampled_bytes = 1;
	assert_verdict(s, "site(f)=+30%", SP_VERDICT_CANNOT_TELL);
	assert_has(s->check->findings[0].why, "old: no samples cover");
	assert_verdict(s, "peak_bytes=120", SP_VERDICT_PASS);
}

/* Exact totals of three runs that differ by chance. */
TEST(noise_of_runs)
{
	struct scene *s = scene_new(3);

	s->old[1]->exact_alloc_bytes = 1010;
	s->old[2]->exact_alloc_bytes = 990;
	s->new[0]->exact_alloc_bytes = 1035;
	s->new[1]->exact_alloc_bytes = 1045;
	s->new[2]->exact_alloc_bytes = 1025;
	/* +35, t(4, 0.995) = 4.60 times 8.16: [-2.6, 72.6] */
	assert_verdict(s, "alloc_bytes=+0%", SP_VERDICT_CANNOT_TELL);
	assert_verdict(s, "alloc_bytes=+72", SP_VERDICT_CANNOT_TELL);
	assert_verdict(s, "alloc_bytes=+73", SP_VERDICT_PASS);
	assert_close(s->check->findings[0].change.hi, 72.593, 1e-3);
	/* a cap is for these runs as they are */
	assert_verdict(s, "alloc_bytes=1034", SP_VERDICT_REGRESSION);
	assert_verdict(s, "alloc_bytes=1035", SP_VERDICT_PASS);
	s->new[0]->exact_alloc_bytes = 1135;
	s->new[1]->exact_alloc_bytes = 1145;
	s->new[2]->exact_alloc_bytes = 1125;
	assert_verdict(s, "alloc_bytes=+0%", SP_VERDICT_REGRESSION);
}

/* Period 1: one object more in one function is seen. */
TEST(exact_sites)
{
	struct scene *s = scene_new(1);
	struct sp_acc one = gate_samples(1, 64, 1);
	struct sp_acc two = gate_samples(2, 64, 1);

	s->old[0]->period_bytes = 1;
	s->new[0]->period_bytes = 1;
	gate_run_add(s->old[0], &s->paths, SP_VIEW_ALLOC, "f<main", &one);
	gate_run_add(s->new[0], &s->paths, SP_VIEW_ALLOC, "f<main", &two);
	assert_verdict(s, "sites=+0%", SP_VERDICT_REGRESSION);
	assert_verdict(s, "sites=+0%&63", SP_VERDICT_REGRESSION);
	assert_verdict(s, "sites=+0%&64", SP_VERDICT_PASS);
	assert_verdict(s, "site(f)=+99%", SP_VERDICT_REGRESSION);
	assert_verdict(s, "site(f)=+100%", SP_VERDICT_PASS);
}

/* Exact, but for what may be a neighbour's. */
TEST(phases)
{
	struct scene *s = scene_new(1);
	struct sp_phase_sum *old, *new;

	assert_verdict(s, "alloc_bytes@load=+1%", SP_VERDICT_CANNOT_TELL);
	new = sp_summary_add_phase(s->new[0], "load");
	assert_non_null(new);
	new->exact_alloc_bytes = 1030;
	new->exact_alloc_objects = 9;
	assert_verdict(s, "alloc_bytes@load=1030", SP_VERDICT_PASS);
	assert_verdict(s, "alloc_bytes@load=1029", SP_VERDICT_REGRESSION);
	assert_verdict(s, "alloc_bytes@load=+1%", SP_VERDICT_CANNOT_TELL);
	assert_has(s->check->findings[0].why, "the baseline has no phase");
	old = sp_summary_add_phase(s->old[0], "load");
	assert_non_null(old);
	old->exact_alloc_bytes = 1000;
	old->exact_alloc_objects = 10;
	assert_verdict(s, "alloc_bytes@load=+3%", SP_VERDICT_PASS);
	assert_verdict(s, "alloc_bytes@load=+2%", SP_VERDICT_REGRESSION);
	assert_verdict(s, "alloc_objects@load=+-5%", SP_VERDICT_IMPROVED);
	new->slack_bytes = 20;
	assert_verdict(s, "alloc_bytes@load=+2%", SP_VERDICT_CANNOT_TELL);
	assert_verdict(s, "alloc_bytes@load=+5%", SP_VERDICT_PASS);
}

/* Functions of a phase are not those of the run, whatever that has. */
TEST(sites_by_phase)
{
	const struct sp_acc few = gate_samples(100, 64, R);
	const struct sp_acc many = gate_samples(300, 64, R);
	struct scene *s = scene_new(1);
	const struct sp_finding *f;

	add(s, s->old[0], "f<main", 1000);
	add(s, s->new[0], "f<main", 1000);
	gate_phase_add(sp_summary_add_phase(s->old[0], "load"), &s->paths,
		       "f<main", &few);
	assert_verdict(s, "sites@load=+10%", SP_VERDICT_CANNOT_TELL);
	assert_has(s->check->findings[0].why, "a new profile has no phase");
	sp_summary_add_phase(s->new[0], "load");
	assert_verdict(s, "sites@load=+10%", SP_VERDICT_CANNOT_TELL);
	assert_has(s->check->findings[0].why, "no call paths of that phase");
	gate_phase_add(&s->new[0]->phases[0], &s->paths, "f<main", &many);
	f = judge(s, "sites@load=+10%");
	assert_int_equal(f->verdict, SP_VERDICT_REGRESSION);
	assert_int_equal(f->n_culprits, 2);
	assert_string_equal(f->culprits[1].name, "f < main");
	assert_true(f->culprits[1].change.hi < 300 * R);
	assert_verdict(s, "site(f)@load=+10%", SP_VERDICT_REGRESSION);
	assert_verdict(s, "site(f)@load=+500%", SP_VERDICT_PASS);
	assert_verdict(s, "sites=+-50%", SP_VERDICT_PASS);
}

/* The largest of many call paths is not certain because it would be alone. */
TEST(paths_of_noise)
{
	struct scene *s = scene_new(1);
	const struct sp_finding *f;
	char path[32];

	for (int i = 0; i < 200; i++) {
		snprintf(path, sizeof(path), "f<g%d<main", i);
		add(s, s->old[0], path, i ? 20 : 10);
		/* p = 0.003 by itself; the limit is exceeded by all together */
		add(s, s->new[0], path, i ? 25 : 31);
	}
	f = judge(s, "site(^f$)=+5%");
	assert_int_equal(f->verdict, SP_VERDICT_REGRESSION);
	assert_string_equal(f->culprits[0].name, "f < g0 < main");
	assert_true(f->culprits[0].change.lo > 0);
	assert_false(f->culprits[0].is_certain);
}

TEST_MAIN(NULL, NULL)
