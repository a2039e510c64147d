#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""Each wrong implementation of a list fails the statistical test that is named
for it; a mutant that changes nothing is accepted. False alarm: 0; 9 s.

A mutant is one textual change of one source file.  The build applies each to
a copy, compiles it in place of the file, and `check` runs the result.

    mutants.py list                     NAME:PATH:PROGRAM lines
    mutants.py apply ROOT NAME DIR      ROOT/PATH, changed, as DIR/PATH
    mutants.py texts ROOT               1 if a text is not there once
    mutants.py check ROOT BIN [NAME...] the same, and run BIN/mutant_NAME: 1 if
                                        one is accepted
"""
import collections
import os
import subprocess
import sys

import mutants_of_one_file

Mutant = collections.namedtuple("Mutant", "name path text by new program")

SAMPLER = "src/agent/thread/sampler.c"
RNG = "src/base/rng.c"
# On the one that the tests run on.
ARCH = "src/agent/sys/arch_x86_64.h"
HARNESS = "tests/statistics/one_thread.c"
THREADS = "tests/statistics/many_threads.c"
THROTTLE = "src/agent/process/rate_limit.c"
RATE = "src/agent/process/period.c"
ESTIMATOR = "src/stats/estimator.c"
NAMED = "src/lab/other_estimators.c"
STRATA = "src/stats/strata.c"
ESTIMATE = "src/stats/estimate.c"
COMPARE = "src/stats/compare.c"
REACH = "src/stats/reach.c"
PEAK = "src/stats/peak.c"
SUMS = "src/stats/sums.c"
ADJUST = "src/stats/adjust.c"
BOUNDS = "src/stats/bounds.c"
WHOLE = "src/model/whole.c"
GROWTH = "src/stats/growth.c"
LEAK = "src/stats/leak.c"

ANALYSIS = "src/report/analysis.c"
CHECK = "src/compare/check.c"
BASELINE_CHECK = "src/compare/baseline_check.c"
MOVED = "src/compare/moved.c"
NAMES = "src/compare/names.c"
RENAME = "src/compare/rename.c"
PATCH = "src/agent/hooks/patch.c"

MUTANTS = []


def mutant(name, path, by, text, new, program="acceptance"):
    """`by`: the test of the program that must reject it."""
    MUTANTS.append(Mutant(name, path, text, by, new, program))


# ---- the law ----

# The period is half a percent longer or shorter than it says.
mutant("rate_low", SAMPLER, "gaps",
       "law->mean = law->period_bytes << zeros;",
       "law->mean = (law->period_bytes << zeros) / 1000 * 1005;")
mutant("rate_high", SAMPLER, "gaps",
       "law->mean = law->period_bytes << zeros;",
       "law->mean = (law->period_bytes << zeros) / 1000 * 995;")
# The hit byte is counted as one that passed.
mutant("gap_plus_one", SAMPLER, "gaps",
       "(58 + law->mean_shift));",
       "(58 + law->mean_shift)) + 1;")
# An object is hit by the byte behind it, too.
mutant("less_or_equal", SAMPLER, "events",
       "if (sampler->gap < left) {",
       "if (sampler->gap <= left) {")
# A hit every R bytes.
mutant("fixed_stride", SAMPLER, "gaps",
       "sampler->gap = sp_law_gap(law, sp_rng_next(&sampler->rng) >> 11);",
       "sampler->gap = law->period_bytes;")
# Gaps that seem too long are drawn again.
mutant("redraw_long", SAMPLER, "gaps",
       "sampler->gap = sp_law_gap(law, sp_rng_next(&sampler->rng) >> 11);",
       "do sampler->gap = sp_law_gap(law, sp_rng_next(&sampler->rng) >> 11);"
       " while (sampler->gap > 4 * law->period_bytes);")
# 26 random bits.
mutant("coarse_uniform", SAMPLER, "uniforms",
       "sp_rng_next(&sampler->rng) >> 11",
       "sp_rng_next(&sampler->rng) >> 38 << 27")
# The same number twice.
mutant("repeated_uniform", RNG, "gaps",
       "s[3] = rotate_left(s[3], 45);\n\treturn result;",
       "s[3] = rotate_left(s[3], 45);\n"
       "\tstatic uint64_t held; static int turn;\n"
       "\tif (++turn % 2) held = result;\n\treturn held;")
# The next gap begins at the hit byte, cut at the end of the object.
mutant("overshoot", SAMPLER, "objects",
       "\tdraw_gap(sampler);\n\treturn true;\n}",
       "\tdraw_gap(sampler);\n"
       "\tsp_sampler_skip(sampler, size_bytes - *ret_offset);\n"
       "\treturn true;\n}")
# The pending gap begins anew after each event without a hit.
mutant("forgets_gap", SAMPLER, "events",
       "if (!pass_bytes(sampler, size_bytes, ret_offset))\n\t\treturn false;",
       "uint64_t gap = sampler->gap;\n"
       "\tif (!pass_bytes(sampler, size_bytes, ret_offset)) {\n"
       "\t\tsampler->gap = gap;\n\t\treturn false;\n\t}")
# The byte behind the hit byte is recorded.
mutant("offset_plus_one", SAMPLER, "objects",
       "*ret_offset = bytes - left + sampler->gap;",
       "*ret_offset = bytes - left + sampler->gap + 1;")

# ---- the charge ----

# What passes is the allocator's rounded size.
mutant("usable_size", HARNESS, "objects",
       "uint64_t charge = size_bytes, used;",
       "uint64_t charge = ((size_bytes + 8 + 15) & ~15ull) - 8, used;")
# The fast path charges one byte more.
mutant("charge_plus_one", ARCH, "objects",
       '"cmpq $1, %2\\n\\t"', '"stc\\n\\t"')

# ---- objects that are always sampled ----

mutant("hollow_hits", SAMPLER, "gaps",
       "sampler->is_hollow = true;", "sampler->is_hollow = false;")
mutant("large_consumes_gap", SAMPLER, "objects",
       "if (size_bytes >= sampler->law->always_bytes)\n\t\treturn true;",
       "if (size_bytes >= sampler->law->always_bytes) {\n"
       "\t\tsp_sampler_skip(sampler, size_bytes);\n\t\treturn true;\n\t}")
mutant("large_redraws_gap", SAMPLER, "objects",
       "if (size_bytes >= sampler->law->always_bytes)\n\t\treturn true;",
       "if (size_bytes >= sampler->law->always_bytes) {\n"
       "\t\tsampler->gap = 0;\n\t\treturn true;\n\t}")
mutant("large_by_chance", SAMPLER, "objects",
       "if (size_bytes >= sampler->law->always_bytes)\n\t\treturn true;\n", "")

# ---- threads and periods ----

# A thread's first object is always sampled.
mutant("first_always", SAMPLER, "threads",
       "\tsampler->law = law;\n\tdraw_gap(sampler);\n}\n\nvoid sp_sampler_change",
       "\tsampler->law = law;\n\tdraw_gap(sampler);\n\tsampler->gap = 0;\n}\n\n"
       "void sp_sampler_change")
mutant("same_seed", SAMPLER, "threads",
       "((uint64_t)generation << 32) | thread",
       "((uint64_t)generation << 32)")
mutant("shared_by_two", SAMPLER, "threads",
       "((uint64_t)generation << 32) | thread",
       "((uint64_t)generation << 32) | (thread >> 1)")
# The stream's number reaches the generator without being mixed.
mutant("correlated_seeds", RNG, "threads",
       "rng->s[i] = sp_splitmix64(&state);",
       "rng->s[i] = seed + stream;")
mutant("no_redraw", SAMPLER, "periods",
       "\tsampler->law = law;\n\tdraw_gap(sampler);\n}\n\nvoid sp_sampler_skip",
       "\tsampler->law = law;\n}\n\nvoid sp_sampler_skip")

# ---- a target of samples per second ----

# Weighted with the period in force when it is recorded, not with that which
# its gap was drawn with.
mutant("foreign_period", THREADS, "bursts",
       "\t\tsample(arg, size_bytes, offset, w->sampler.law->period_bytes,\n"
       "\t\t       clock_ns);\n\t\tsp_period_charge();",
       "\t\tsp_period_charge();\n\t\tadapt();\n"
       "\t\tsample(arg, size_bytes, offset, sp_period_law()->period_bytes,\n"
       "\t\t       clock_ns);")
mutant("foreign_period_of_threads", THREADS, "storm",
       "sample(arg, size_bytes, offset, w->sampler.law->period_bytes,",
       "sample(arg, size_bytes, offset, sp_period_law()->period_bytes,")
# The period changes, the gap stays.
mutant("keeps_gap", THREADS, "bursts",
       "sp_sampler_change(&w->sampler, law);", "w->sampler.law = law;")
# Only gaps that are short anyway are drawn again.
mutant("redraws_short", THREADS, "bursts",
       "if (w->sampler.law != law)",
       "if (w->sampler.law != law && w->sampler.gap < law->period_bytes)")
# A check-in at which a long gap is pending draws another.
mutant("looks_at_gap", THREADS, "bursts",
       "\tfollow(w);\n}",
       "\tfollow(w);\n\tif (w->sampler.gap > 2 * w->sampler.law->period_bytes)"
       "\n\t\tsp_sampler_change(&w->sampler, w->sampler.law);\n}")
# Nothing is sampled while there are too many samples.
mutant("quota", THREADS, "ramp",
       "\tfollow(w);\n}",
       "\tfollow(w);\n\tif (sp_period_law()->period_bytes > 1 << 22)\n"
       "\t\tw->sampler.gap += 1 << 22;\n}")
# No end to the samples of a burst; of those that silence saves up; up and down
# all the time.
mutant("never_raises", THROTTLE, "silence",
       "if (step < low)\n\t\treturn low;", "")
mutant("unlimited_credit", THROTTLE, "silence",
       "return (due_ns > oldest_ns ? due_ns : oldest_ns) +",
       "return (due_ns ? due_ns : oldest_ns) +")
mutant("nervous", THROTTLE, "large",
       "return step > low + 1 ? low + 1 : step;", "return low;")

# ---- weights ----

mutant("foreign_weight", ESTIMATOR, "objects",
       "-z * log1p(-1 / r) : z / r;",
       "-z * log1p(-1 / r) : z / (1.005 * r);")
mutant("large_weighted", ESTIMATOR, "objects",
       "return law->always_large &&", "return 0 &&")
# .NET's law with R in place of its own mean, in either half.
mutant("dotnet_drawn_with_r", SAMPLER, "dotnet",
       "if (kind == SP_LAW_DOTNET)", "if (kind == 99)")
mutant("dotnet_weighted_with_r", ESTIMATOR, "dotnet",
       "-z * log1p(-1 / r) : z / r;", "z / r : z / r;")

# ---- intervals; `by` are the sizes of the subset ----

# Samples divided by one probability, that of their mean size.
mutant("sum_then_unbias", ESTIMATOR, "16 B and 3 R",
       "dst->est_bytes += src->est_bytes;",
       "const double mean = (double)dst->size_bytes / (double)dst->samples;\n"
       "\tdst->est_bytes = (double)dst->size_bytes / "
       "-expm1(-mean / (double)dst->period_bytes);",
       program="coverage")
mutant("no_phantom", ESTIMATOR, "16 B",
       "m.k1 += r;\n\tm.k2 += r * r;\n\tm.k3 += 2 * r * r * r;",
       "(void)r;", program="coverage")
mutant("no_third_cumulant", ESTIMATOR, "exact",
       "scale = k3 / k2 / 2;", "scale = 0;", program="coverage")
mutant("no_lattice", ESTIMATOR, "exact",
       ".step = acc->k2 > 0 ? acc->kz / acc->k2 : 0,", ".step = 0,",
       program="coverage")
mutant("no_phantom_in_share", ESTIMATOR, "16 B",
       "ha + a.period + a.step / 2,\n"
       "\t\t\t\t    a.k2 + a.period * a.period,",
       "ha, a.k2,", program="coverage")
# A count in which the smallest object is a whole period.
mutant("no_small_objects", ESTIMATOR, "16 B",
       "const uint64_t z = smallest.bytes, r = acc->period_bytes;",
       "const uint64_t r = acc->period_bytes, z = r;", program="coverage")
# Objects of 1 to 16 bytes are all taken for 16.
mutant("tiny_are_large", BOUNDS, "1 B and 4 KiB",
       "is_tiny ? (struct sp_smallest){1, 0}",
       "is_tiny ? (struct sp_smallest){16, 0}", program="coverage")
# What is smaller than the phantom is forgotten.
mutant("no_smaller_objects", ESTIMATOR, "1 B and 4 KiB",
       "const double more = fmax(objects - bytes / z, 0);",
       "const double more = 0 * objects * bytes;", program="coverage")
# As if each subset ended on its own sample.
mutant("upper_with_s", NAMED, "16 B",
       "trials_quantile(t->hits + 1, t->p, 1 - half)",
       "trials_quantile(t->hits, t->p, 1 - half)", program="coverage")
mutant("no_phantom_in_class", STRATA, "16 B",
       "if (phantom == ON_PART)\n\t\tadd_phantom(&a);", "",
       program="coverage")
# A limit that is moved keeps its spread, or begins away from the end.
mutant("keeps_spread", STRATA, "rows",
       "scale_spread(&law, c, &a, &b, is_upper);", "", program="coverage")
mutant("ends_away_from_all", STRATA, "rows",
       "-sp_estimator_end_at_zero(most - all.k1, all.k2,\n"
       "\t\t\t\t\t\t      -all.k3)", "all.k3", program="coverage")
# Beside other strata: half a phantom is too little, a whole one too much; and
# a short tail takes from a long one.
mutant("little_phantom", STRATA, "apart", "#define PHANTOM_LEAST 0.6",
       "#define PHANTOM_LEAST 0.2", program="coverage")
mutant("whole_phantom", STRATA, "apart", "#define PHANTOM_LEAST 0.6",
       "#define PHANTOM_LEAST 1.0", program="coverage")
mutant("no_tail", STRATA, "apart", "fmax(limit + lattice, least)",
       "limit + lattice", program="coverage")
mutant("tail_does_not_rise", STRATA, "apart",
       "fmin(fmax(length - 1, 0), 1)", "0", program="coverage")
# What was not seen may be less than nothing (E42).
mutant("ends_below_zero", ESTIMATOR, "rows",
       "fmin(k3, 2 * k2 * (k2 / k1))", "k3", program="coverage")
# The runs in which a row is not shown count as if it had been right.
mutant("rows_not_shown", ESTIMATE, "rows",
       "half * chance_of_samples(row, lo * hits)", "half", program="coverage")
mutant("rows_not_shown_in_tables", ESTIMATE, "tables",
       "half * chance_of_samples(row, lo * hits)", "half", program="simulated")
# Rows of one sample are not counted, and yet those of two may miss as if they
# were.
mutant("all_rows_may_miss", ESTIMATE, "test_rows_of_two_samples",
       "return row->samples_min > 1\n", "return row->samples_min > 99\n",
       program="test_estimate")
# Each class held against its total, however few samples it has.
mutant("each_class_alone", ESTIMATE, "Pareto 1.1",
       "(double)population->low[i].bytes >= enough",
       "population->low[i].bytes > 0 * enough", program="coverage")
# Exact totals do not bound what is estimated without them; nor counts, by the
# classes of a row; nor what the rows of a class have together.
mutant("more_than_all", ESTIMATE, "test_own_class",
       "return cut_interval(i, at_most(how, false));", "return i;", program="totals")
mutant("more_than_its_class", ESTIMATE, "test_own_class",
       "i.hi = fmin(i.hi, sp_bounds_objects(", "(void)(sp_bounds_objects(",
       program="totals")
mutant("class_of_weights", ADJUST, "test_own_class",
       "is_alone[number] ? gain_of_class(population, c)",
       "is_alone[number] ? 0", program="totals")
# What is unseen beside many classes is as little as beside none.
mutant("classes_are_no_hits", BOUNDS, "test_claims",
       "sums->n_classes + 1.", "1.", program="totals")


# ---- the peak ----

# Of equally high moments the last: what falls meanwhile is not seen.
mutant("last_of_equal_moments", PEAK, "test_programs",
       "look_at_choice(w, last_ns(w));\n\t\t}\n",
       "}\n\t\tw->chooser.best.height *= 1 - 1e-9;\n"
       "\t\tlook_at_choice(w, last_ns(w));\n", program="live")
# Where no sample chose, the peak is measured where nothing was.
mutant("no_moment", PEAK, "test_nobody_chooses",
       "c->best.height > 0 || !(all > c->without)", "true",
       program="test_peak")
# Those that chose a moment measure it, too.
mutant("temporary_without_frees", SUMS, "test_temporary_without_frees",
       "(selection->view == SP_VIEW_TEMPORARY &&", "(false &&",
       program="test_analysis")
mutant("choosers_measure", SUMS, "peaks",
       "selection->peak_ns != SP_NEVER;", "false;", program="simulated")
# A sample that measures stands for as much as one of all.
mutant("measured_by_all", ESTIMATOR, "peaks",
       "const double d = f + (1 - f) * q, miss = q / d;",
       "const double d = f, miss = q;", program="simulated")
# What was missed is a sample of all, not of those that measure.
mutant("missed_by_all", ESTIMATOR, "test_measured_by_the_others",
       "return period_bytes + more + (period_bytes % (n - 1) != 0);",
       "return period_bytes + 0 * more;", program="test_peak")
# Two summits are one.
mutant("one_summit", PEAK, "test_another_summit",
       "#define SEPARATE 0.75", "#define SEPARATE 0", program="test_peak")

# ---- leaks ----

# What slows down is a leak; or is by the clock of its own bytes alone.
mutant("slow_growth_leaks", GROWTH, "test_no_false_leaks",
       "{{0, -SLOWS_HALF, 1, 1, 0}},\n\t\t"
       "{{0, -SLOWS_QUARTER / 3, -SLOWS_QUARTER / 3, 1, 0}},",
       "{{0, 1, 1, 1, 0}},\n\t\t{{0, 1, 1, 1, 0}},", program="leak")
mutant("clock_of_its_own", LEAK, "test_no_false_leaks",
       "fmax(by_clock, slows)", "by_clock", program="leak")
# That clock says that it goes on, and that a longer run would show it.
mutant("own_clock_goes_on", LEAK, "test_filling_alone",
       "clocks->is_load || !clocks->is_own", "true", program="test_leaks")
# Windows by all bytes find nothing more, or cost nothing.
mutant("all_bytes_find_nothing", "src/stats/leaks.c", "test_no_false_leaks",
       "r->judged.is_load && is_uneven(p, bytes, &l->clock)", "false",
       program="leak")
mutant("all_bytes_cost_nothing", LEAK, "test_shares",
       "clocks->has_all ? 1 - SHARE_OF_ALL : 1", "1", program="test_leaks")
# What grows is the load.
mutant("load_is_all", "src/stats/leaks.c", "test_load",
       "\tif (r->judged.is_load)\n\t\tbytes = r->bins->soon;\n", "",
       program="test_leaks")
mutant("load_says_nothing", LEAK, "test_load",
       "clocks->is_load || ", "", program="test_leaks")
mutant("even_load_says_nothing", LEAK, "test_load_that_falls_little",
       "\tif (clocks->is_load || !clocks->is_own)\n",
       "\tif (clocks->is_uneven && (clocks->is_load || !clocks->is_own))\n",
       program="test_leaks")
# The program has no noise of its own.
mutant("windows_do_not_scatter", GROWTH, "test_no_false_leaks",
       "return fmax(by_samples, by_windows);",
       "(void)by_windows;\n\treturn by_samples;", program="leak")
# A leak is soon called a cache.
mutant("leaks_are_filling", LEAK, "test_no_false_leaks",
       "#define FILLING_LEVEL 0.005", "#define FILLING_LEVEL 0.2",
       program="leak")
# What grows little is steady, however surely it grows.
mutant("growth_is_steady", LEAK, "test_no_false_leaks",
       "row->half_bytes.hi <= steady && t->p_half > LEVEL",
       "row->half_bytes.hi <= steady", program="leak")
# A shorter run than is needed is promised to be enough.
mutant("promises_too_much", LEAK, "test_found_when_stated",
       "#define TWO_TESTS      1.15", "#define TWO_TESTS 0.6",
       program="leak")

# ---- sums over samples ----

# Weights are added up as they are.
mutant("sums_of_weights", ADJUST, "test_sums",
       "acc->est_bytes + bytes->by_k2 * acc->k2", "acc->est_bytes",
       program="totals")

# ---- two sides ----

# Runs without a sample do not vary, and what does not vary is certain.
mutant("silent_runs", COMPARE, "test_unlike_noise",
       "fmax(old->noise, new->noise));", "0);", program="gate")
# One new run is held against several as if noise were normal.
mutant("no_tails", COMPARE, "test_totals_with_tails",
       "if (!isfinite(log_var) || !(new->mean > 0))",
       "return both_ways(half);\n\tif (!isfinite(log_var))",
       program="tails")
# The variances of two runs and of eight count alike, whatever they are.
mutant("few_are_welch", COMPARE, "test_totals_with_tails",
       "if (old->n == new->n)", "if (!is_single || old->n == new->n)",
       program="tails")

# What sampling explains is noise of the program that may have heavy tails.
mutant("sampling_has_tails", COMPARE, "test_what_is_alive",
       "square_of(t) * (log_var - explained)", "square_of(t) * log_var",
       program="power")
# Runs that agree by chance have no noise but that of sampling.
mutant("agreement_is_calm", COMPARE, "test_runs_that_agree",
       "#define SAMPLING_TIMES 2", "#define SAMPLING_TIMES 1",
       program="test_compare")
# The sampling of one side explains what varies between the other one's runs.
mutant("explained_by_others", COMPARE, "test_sampling_of_the_same_runs",
       "square_of(t) * (log_var - explained)",
       "square_of(t) * (log_var - sampled)", program="test_compare")

# Exact totals that agree say nothing of the rows.
mutant("agreement_says_nothing", COMPARE, "test_same_each_time",
       "noise && noise->is_bounded && !sp_run_is_wild",
       "noise && !noise->is_bounded && !sp_run_is_wild", program="power")

# ---- what unit tests must reject: `program` is theirs, and `by` the test ----

# The end of a class is all that is said of a percentile.
mutant("percentile_is_a_class_end", ANALYSIS, "test_percentile_limits",
       "size.lo = class_begin(&a->selection, first);",
       "size.lo = class_end(&a->selection, last);", program="test_analysis")
# The noise of the whole is that of rows that take turns, too.
mutant("turns_are_calm", COMPARE, "test_rows_that_take_turns",
       "noise->is_bounded && !sp_run_is_wild(old, new, noise)",
       "noise->is_bounded", program="test_compare")
# Half of what would be found is said to be found nearly always.
mutant("reach_without_power", REACH, "test_detectable_growth",
       "return exp(sp_special_normal_quantile(r->power) * sqrt(variance));",
       "return r->power + 0.05 + 0 * variance;", program="test_compare")
# What was not sampled passes every limit.
mutant("unsampled_passes", CHECK, "test_sampling_was_off",
       "(doubt_unsampled(c, f) || doubt_incomplete(c, f))",
       "(false || doubt_incomplete(c, f))", program="test_check")
# A limit whose pattern is a slip of the pen is kept.
mutant("pattern_of_nothing", CHECK, "test_pattern_of_nothing",
       "return limit->pattern;", "return false;", program="test_check")
# A baseline may have more samples than allocations.
mutant("any_sum", BASELINE_CHECK, "test_refusals",
       "if (size <= bytes && samples <= (double)alloc_objects &&",
       "if (size >= 0 ||", program="test_baseline")
# One without samples is a baseline like others.
mutant("emptied", BASELINE_CHECK, "test_refusals",
       "if (!(least <= 2 * sum + chance))", "if (least < 0)",
       program="test_baseline")
mutant("emptied_live", BASELINE_CHECK, "test_refusals",
       ": run->bytes[v].lo;", ": 0;", program="test_baseline")
# A profile that lacks something has limits as one that does not; or it lacks
# what was never to be sampled; or lost samples are hidden that chance does not
# hide; or a row's share has limits of its own.
mutant("nothing_is_missing", ESTIMATE, "test_what_is_missing",
       "population->gap_bytes = population->gap_objects = INFINITY;",
       "return;", program="test_estimate")
mutant("unknown_is_little", ESTIMATE, "test_what_is_missing",
       "whole.is_damaged || profile->missing_bytes_max == UINT64_MAX",
       "whole.is_damaged", program="test_estimate")
mutant("unknown_is_bounded", BOUNDS, "test_what_is_missing",
       " ||\n\t    profile->missing_bytes_max == UINT64_MAX", "",
       program="test_estimate")
mutant("unknown_totals_hold", ESTIMATE, "test_what_is_missing",
       "if (profile->missing_bytes_max == UINT64_MAX)\n", "if (false)\n",
       program="test_estimate")
mutant("unsampled_is_missing", ESTIMATE, "test_what_is_missing",
       "return fmax(most - unsampled - least, 0);",
       "return fmax(most - least + 0 * unsampled, 0);",
       program="test_estimate")
mutant("chance_hides_all", WHOLE, "test_what_chance_hides",
       "parts * parts <= samples", "lost <= samples", program="test_whole_of")
mutant("known_to_the_end", WHOLE, "test_cut",
       "return w->known_ns != SP_NEVER && at_ns > w->known_ns;",
       "return w->known_ns < at_ns && at_ns != SP_NEVER;",
       program="test_whole_of")
mutant("share_of_its_own", ANALYSIS, "test_share_of_a_row",
       "if (!exact_total(a, &all)) {", "if (!exact_total(a, &all) || true) {",
       program="test_analysis")
mutant("peak_of_other_sums", ANALYSIS, "test_peak_is_its_rows",
       "if (r >= 0 && shows_peak(a))", "if (false)", program="test_analysis")
# What a profile lacks, what is said of it, and the peak.
for path, rows, test in (
        (WHOLE, mutants_of_one_file.WHOLE, "test_whole_of"),
        ("src/read/totals.c", mutants_of_one_file.TOTALS,
         "test_proved_totals"),
        ("src/read/loader_end.c", mutants_of_one_file.END,
         "test_proved_totals"),
        ("src/text/lack.c", mutants_of_one_file.LACK, "test_lack"),
        (PEAK, mutants_of_one_file.PEAK, "test_peak")):
    for name, old, new, by in rows:
        mutant(name, path, by, old, new, program=test)
# A function that is inlined on one side is new, and a regression.
mutant("inlining_is_new", MOVED, "test_other_inlining",
       "if (is_own[frame] && d + 1 < p.n &&",
       "if (false && d + 1 < p.n &&", program="test_check_names")
# Functions without a name on one side are gone, and new.
mutant("missing_names_are_gone", NAMES, "test_names_are_missing",
       "l.is_mixed[m] = is_mixed(&l, m);",
       "l.is_mixed[m] = false;", program="test_check_names")
# A lambda whose number is another is another function.
mutant("lambdas_by_number", RENAME, "test_lambdas_with_other_numbers",
       "*to++ = '*';", "*to++ = c[mark];", program="test_check_names")

# ---- attaching: against the naive model of unit.patch ----

# A page that was read-only after relocation stays writable.
mutant("relro_stays_open", PATCH, "test_model",
       "protect_part(&opened.parts[--opened.n], 0);", "opened.n--;",
       program="test_patch")
# The same of a page that is opened by itself, since there is no room for more
# parts.
mutant("page_stays_open", PATCH, "test_many_objects",
       "protect_part(&pass->page, 0);", ";", program="test_patch")
# Of two names of one function, the first gets all calls.
mutant("first_of_two_names", PATCH, "test_model",
       "if (strcmp(p->symbol, symbol) == 0)",
       "if (symbol && strcmp(p->symbol, p->symbol) == 0)",
       program="test_patch")
# A definition of that name is taken for the allocator's.
mutant("symbol_of_another", PATCH, "test_model",
       "if (bias + s->st_value == from)", "if (s->st_value)",
       program="test_patch")
# For a moment allocations come in whose frees do not.
mutant("frees_first_on_the_way_back", PATCH, "test_model",
       "pass.step = is_back ? STEPS - 1 - i : i;", "pass.step = i;",
       program="test_patch")
# Operators that call malloc are counted there, and here.
mutant("operators_twice", PATCH, "test_model",
       "p->below = p->ours = 0;\n}", "(void)is_wanted;\n}",
       program="test_patch")

# Built like the others, and the judge must complain about both: one changes
# nothing, so that it is accepted; one does not apply.
CONTROLS = [
    Mutant("control", SAMPLER, "sampler->law = law;\n\tdraw_gap(sampler);\n}\n\n"
           "void sp_sampler_skip", "periods",
           "sampler->law = law;\n\t\tdraw_gap(sampler);\n}\n\n"
           "void sp_sampler_skip", "acceptance"),
    Mutant("control_absent", SAMPLER, "no such text", "periods", "",
           "acceptance"),
]


def find(name):
    for m in MUTANTS + CONTROLS:
        if m.name == name:
            return m
    sys.exit(f"mutants.py: no mutant {name}")


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        return f.read()


def apply(root, name, directory):
    """A text that does not apply leaves the copy unchanged: `check` says so."""
    m = find(name)
    source = read(root, m.path)
    if source.count(m.text) == 1:
        source = source.replace(m.text, m.new)
    out = os.path.join(directory, m.path)
    os.makedirs(os.path.dirname(out), exist_ok=True)
    with open(out, "w", encoding="utf-8") as f:
        f.write(source)


def misses(root, m):
    """Why it cannot be applied, or None."""
    n = read(root, m.path).count(m.text)
    return None if n == 1 else f"its text occurs {n} times in {m.path}"


def judge(root, binaries, m):
    """What is wrong with the test of this mutant, or None."""
    if misses(root, m):
        return misses(root, m)
    is_unit = m.program.startswith("test_")
    run = subprocess.run([os.path.join(binaries, "mutant_" + m.name),
                          *([] if is_unit else [m.by])],
                         stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT if is_unit else None,
                         env={**os.environ, "SAMPLEPROF_TEST_WHOLE": "1"},
                         text=True, errors="replace", check=False)
    sign = f"[  FAILED  ] {m.by}" if is_unit else "!"
    rejections = [l for l in run.stdout.splitlines() if l.startswith(sign)]
    if is_unit:
        print(f"{m.name} ({m.by}):", *rejections[:1], sep="\n    ")
        return None if run.returncode and rejections else "it was accepted"
    print(f"{m.name} ({m.by}):", *rejections, sep="\n    ")
    if run.returncode == 0:
        return "it was accepted"
    if run.returncode != 1 or not rejections:
        return f"it did not run: status {run.returncode}"
    return None


def check_texts(root):
    wrong = 0
    for m in MUTANTS + CONTROLS:
        fault = misses(root, m)
        # One of the controls does not apply.
        if bool(fault) != (m.name == "control_absent"):
            print(f"mutants.py: {m.name}: {fault}", file=sys.stderr)
            wrong = 1
    return wrong


def check(root, binaries, names):
    wrong = 0
    for m in [find(n) for n in names] or MUTANTS:
        fault = judge(root, binaries, m)
        if fault:
            print(f"mutants.py: {m.name}: {fault}", file=sys.stderr)
            wrong = 1
    for m in [] if names else CONTROLS:
        if judge(root, binaries, m) is None:
            print(f"mutants.py: {m.name} was not noticed", file=sys.stderr)
            wrong = 1
    return wrong


def main():
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    if command == "list" and len(sys.argv) == 2:
        for m in MUTANTS + CONTROLS:
            print(f"{m.name}:{m.path}:{m.program}")
    elif command == "apply" and len(sys.argv) == 5:
        apply(*sys.argv[2:])
    elif command == "texts" and len(sys.argv) == 3:
        sys.exit(check_texts(sys.argv[2]))
    elif command == "check" and len(sys.argv) >= 4:
        sys.exit(check(sys.argv[2], sys.argv[3], sys.argv[4:]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
