/* SPDX-License-Identifier: MIT */
/* The advice on a period, against profiles made by hand. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/advise.h"
#include "support/report_fixture.h"
#include "support/test.h"

#define R (512ull * 1024)

/* Of a normal law. */
#define T 1.959963984540054

enum { SMALL, RARE, LARGE };

struct advised {
	struct fixture *x;
	struct sp_aggregate *aggregate;
	struct sp_advise_options options;
	struct sp_advice *advice;
};

static void advised_free(void *made)
{
	struct advised *a = made;

	if (a->advice)
		sp_advise_free(a->advice);
	fixture_free(a->x);
	free(a);
}

static struct advised *advised_new(uint64_t period)
{
	struct advised *a = calloc(1, sizeof(*a));

	assert_non_null(a);
	at_test_end(advised_free, a);
	a->x = fixture_new(period);
	a->options.error = 0.1;
	a->options.top = 10;
	fixture_symbol(a->x, SMALL, "small", "a.c", 1);
	fixture_symbol(a->x, RARE, "rare", "a.c", 2);
	fixture_symbol(a->x, LARGE, "large", "a.c", 3);
	return a;
}

static void advise(struct advised *a)
{
	a->aggregate = fixture_aggregate(a->x);
	assert_int_equal(
		sp_advise_new(a->aggregate, &a->options, &a->advice, NULL), 0);
}

static void add(struct advised *a, size_t symbol, uint64_t samples,
		uint64_t size)
{
	fixture_stack(a->x, &symbol, 1, samples, size);
}

static void assert_close(double value, double expected, double relative)
{
	if (!(fabs(value - expected) <= relative * fabs(expected)))
		fail_msg("%.10g is not %.10g", value, expected);
}

/* Small objects that are alive: 20 % of their number, of which the holes beside
 * them make twice the variance, takes 2 (t / 0.2)^2 = 192 samples; there are
 * 100, so half the period is what is needed.  Of another allocator than glibc,
 * all of them; of nothing that is alive, none. */
TEST(pins)
{
	struct advised *a = advised_new(R);

	a->options.error = 0.2;
	add(a, SMALL, 100, 64);
	a->x->profile.has_frees = true;
	advise(a);
	assert_int_equal(a->advice->pins_period_bytes, R / 2);
	a = advised_new(R);
	add(a, SMALL, 100, 64);
	a->x->profile.has_frees = true;
	a->x->infos[0] = (struct sp_info){"allocator", "/x/libjemalloc.so.2"};
	a->x->profile.n_infos = 1;
	advise(a);
	assert_int_equal(a->advice->pins_period_bytes, R / 8);
	a = advised_new(R);
	add(a, SMALL, 100, 64);
	a->x->profile.has_frees = true;
	a->x->infos[0] = (struct sp_info){"allocator", "/x/libmimalloc.so.2"};
	a->x->profile.n_infos = 1;
	advise(a);
	assert_int_equal(a->advice->pins_period_bytes, 1);
	a = advised_new(R);
	add(a, SMALL, 100, 64);
	advise(a);
	assert_int_equal(a->advice->pins_period_bytes, 0);
}

/* 100 samples of small objects: an error of t / 10; 0.1 takes (t / 0.1)^2 of
 * them, which a period shorter by that factor gives. */
TEST(small_objects)
{
	struct advised *a = advised_new(R);
	const struct sp_advise_site *site;

	add(a, SMALL, 100, 64);
	advise(a);
	assert_true(sp_advise_can_tell(a->advice));
	assert_int_equal(a->advice->n_sites, 1);
	site = &a->advice->sites[0];
	assert_string_equal(site->name, "small");
	assert_true(site->can_tell);
	assert_close(site->error, T / 10, 1e-3);
	assert_close(site->period.value, R * 100 / (T * T / 0.01), 1e-3);
	/* The limits of the bytes are those of the period. */
	assert_close(site->period.lo / site->period.value,
		     site->bytes.lo / site->bytes.value, 1e-3);
	assert_close(site->period.hi / site->period.value,
		     site->bytes.hi / site->bytes.value, 1e-3);
	/* 136 KiB, as it may be set. */
	assert_int_equal(a->advice->sites_period_bytes, 128 * 1024);
}

/* 1 % of all: a hundred times fewer samples. */
TEST(small_share)
{
	struct advised *a = advised_new(R);
	const double needed = (double)R * 100 / (T * T / 0.01);

	add(a, SMALL, 10000, 64);
	advise(a);
	assert_true(needed > 128 * 1024 && needed < 256 * 1024);
	assert_int_equal(a->advice->small_period_bytes, 128 * 1024);
	assert_close(sp_advise_row(a->advice, R).error_small, T / 10, 1e-3);
	assert_close(sp_advise_row(a->advice, R).error_all, T / 100, 1e-3);
}

/* Nobody says that the small share is of large objects. */
TEST(small_share_of_small_objects)
{
	struct advised *a = advised_new(R);

	add(a, LARGE, 1000, 3 * R);
	advise(a);
	assert_close(sp_advise_row(a->advice, R).error_small,
		     T / sqrt(0.01 * a->advice->sites[0].bytes.value / R),
		     1e-3);
	assert_true(sp_advise_row(a->advice, R).error_all <
		    0.05 * sp_advise_row(a->advice, R).error_small);
}

TEST(rows)
{
	struct advised *a = advised_new(R);
	const struct sp_advise_row *rows;

	add(a, SMALL, 10000, 64);
	advise(a);
	rows = a->advice->rows;
	assert_int_equal(rows[0].period_bytes, R / 64);
	assert_int_equal(rows[3].period_bytes, R);
	assert_int_equal(rows[5].period_bytes, R * 16);
	for (size_t i = 0; i < SP_ADVISE_ROWS; i++) {
		/* Of 3.25 seconds. */
		const double rate = 10000 / 3.25 * R / rows[i].period_bytes;

		assert_close(rows[i].samples_per_s, rate, 1e-2);
		assert_close(rows[i].processor,
			     rate * SP_ADVISE_SAMPLE_NS * 1e-9, 1e-2);
		assert_close(rows[i].bytes_per_hour,
			     rate * 3600 * SP_ADVISE_SAMPLE_BYTES, 1e-2);
		assert_close(rows[i].error_all, T / sqrt(rate * 3.25), 1e-2);
		assert_true(rows[i].error_first == rows[i].error_last);
	}
}

static const char *written(const struct advised *a)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(sp_advise_write(out, a->advice), 0);
	assert_int_equal(fclose(out), 0);
	at_test_end(free, text);
	return text;
}

static struct advised *advised_of(uint64_t run_ns)
{
	struct advised *a = advised_new(R);

	add(a, SMALL, 100, 64);
	a->x->profile.duration_ns = run_ns;
	advise(a);
	assert_true(sp_advise_can_tell(a->advice));
	return a;
}

/* No rates of such a run, whatever is printed of it; its errors stand. */
TEST(too_short_for_rates)
{
	static const uint64_t runs_ns[] = {0, 1, 999999};
	static const char *const rates[] = {"samples/s", "CPU", "file/h",
					    "of a processor", "in an hour"};

	for (size_t i = 0; i < sizeof(runs_ns) / sizeof(*runs_ns); i++) {
		struct advised *a = advised_of(runs_ns[i]);
		const struct sp_advise_row row = a->advice->rows[0];
		const char *text = written(a);

		assert_true(isnan(row.samples_per_s));
		assert_true(isnan(row.processor));
		assert_true(isnan(row.bytes_per_hour));
		assert_true(row.error_all > 0);
		for (size_t k = 0; k < sizeof(rates) / sizeof(*rates); k++)
			assert_null(strstr(text, rates[k]));
		assert_non_null(strstr(text, "SAMPLEPROF_PERIOD=128K\n"));
		assert_non_null(strstr(text, "too short for samples per "));
		a->options.json = true;
		text = written(a);
		assert_non_null(strstr(text, "\"samples_per_s\": null"));
		assert_null(strstr(text, "too short"));
		a->options.json = false;
		a->options.csv = true;
		assert_non_null(strstr(written(a), "\n8192,,,,0."));
	}
	assert_non_null(strstr(written(advised_of(1000000)), "samples/s"));
}

/* What has too few samples is listed, and nothing is said of it. */
TEST(too_few_of_a_site)
{
	struct advised *a = advised_new(R);
	const struct sp_advice *v;

	add(a, SMALL, 100, 64);
	add(a, RARE, 5, 64);
	advise(a);
	v = a->advice;
	assert_int_equal(v->n_sites, 2);
	assert_int_equal(v->n_told, 1);
	assert_int_equal(v->first, 1);
	assert_int_equal(v->last, 1);
	assert_false(v->sites[1].can_tell);
	/* It has no say in what is proposed. */
	assert_int_equal(v->sites_period_bytes, 128 * 1024);
}

TEST(least_period_counts)
{
	struct advised *a = advised_new(R);

	add(a, SMALL, 100, 64);
	add(a, RARE, 50, 64);
	advise(a);
	assert_int_equal(a->advice->last, 2);
	assert_int_equal(a->advice->sites_period_bytes, 64 * 1024);
	/* Only of those that were asked for. */
	a = advised_new(R);
	a->options.top = 1;
	add(a, SMALL, 100, 64);
	add(a, RARE, 50, 64);
	advise(a);
	assert_int_equal(a->advice->n_sites, 1);
	assert_int_equal(a->advice->sites_period_bytes, 128 * 1024);
}

TEST(too_few_at_all)
{
	struct advised *a = advised_new(R);

	add(a, SMALL, 29, 64);
	advise(a);
	assert_false(sp_advise_can_tell(a->advice));
	/* 5912331 bytes, a thousand samples. */
	assert_int_equal(a->advice->try_bytes, 4096);
	a = advised_new(R);
	a->x->profile.exact_alloc_bytes = 0;
	advise(a);
	assert_false(sp_advise_can_tell(a->advice));
	assert_int_equal(a->advice->try_bytes, 0);
}

/* Everything was recorded: a few objects are enough, and nothing is unsure. */
TEST(everything)
{
	struct advised *a = advised_new(1);
	const struct sp_advise_site *site;

	add(a, SMALL, 3, 64);
	advise(a);
	assert_true(sp_advise_can_tell(a->advice));
	site = &a->advice->sites[0];
	assert_true(site->can_tell);
	assert_true(site->error == 0);
	assert_true(site->period.lo == site->period.hi);
	assert_int_equal(a->advice->rows[3].period_bytes, 512 * 1024);
}

/* Objects of two periods are seldom missed: far fewer samples are needed, and
 * another law would do better. */
TEST(large_objects)
{
	struct advised *a = advised_new(R);
	const struct sp_advise_site *site;

	add(a, LARGE, 100, 2 * R);
	add(a, SMALL, 2000, 64);
	advise(a);
	site = &a->advice->sites[1];
	assert_string_equal(site->name, "large");
	assert_true(site->error < 0.5 * T / 10);
	assert_true(site->period.value > R);
	assert_true(a->advice->worse_bytes > 1.001);
	assert_true(a->advice->worse_samples > 0.001);
	assert_true(a->advice->worse_objects > 1);
}

/* Where all objects are small, there is no better law for bytes. */
TEST(no_better_law)
{
	struct advised *a = advised_new(R);

	add(a, SMALL, 2000, 64);
	advise(a);
	assert_close(a->advice->worse_bytes, 1, 1e-3);
	assert_true(a->advice->worse_samples < 1e-3);
	assert_close(a->advice->worse_objects, 1, 1e-3);
}

/* Each sample counts with its own period. */
TEST(mixed_periods)
{
	struct advised *a = advised_new(R);

	add(a, SMALL, 100, 64);
	a->x->next.period_bytes = R / 4;
	add(a, SMALL, 400, 64);
	advise(a);
	assert_true(a->advice->is_mixed);
	assert_int_equal(a->advice->period_bytes, R);
	/* 200 periods of R. */
	assert_close(a->advice->sites[0].bytes.value, 200.0 * R, 1e-3);
	assert_close(a->advice->sites[0].period.value, R * 200 / (T * T / 0.01),
		     1e-3);
}

/* Exact totals by size are the sizes of the program. */
TEST(exact_sizes)
{
	struct advised *a = advised_new(R);
	struct sp_profile *p = &a->x->profile;
	const unsigned int class = sp_format_class(64);

	p->has_classes = true;
	p->classes[class].bytes = 64 * 1000000;
	p->classes[class].objects = 1000000;
	p->exact_alloc_bytes = 64 * 1000000;
	p->exact_alloc_objects = 1000000;
	add(a, SMALL, 100, 64);
	advise(a);
	assert_true(a->advice->is_exact);
	assert_close(sp_period_model_bytes(&a->advice->sizes), 64e6, 1e-12);
	assert_close(sp_advise_row(a->advice, R).samples_per_s, 64e6 / R / 3.25,
		     1e-3);
}

TEST_MAIN(NULL, NULL)
