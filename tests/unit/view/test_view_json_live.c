/* SPDX-License-Identifier: MIT */
/* The JSON of what is alive, of views and of object sizes. */
#include <jansson.h>

#include "support/close.h"
#include "support/json_document.h"
#include "support/test.h"

/* f's 9 samples live from 1 s to 2 s; main's 5 stay. */
static void add_lives(struct fixture *x)
{
	x->profile.has_frees = true;
	x->next.born_ns = 1000000000;
	x->next.freed_ns = 2000000000;
	fixture_stack(x, (size_t[]){F, MAIN}, 2, 9, 100);
	x->next.freed_ns = SP_NEVER;
	fixture_stack(x, (size_t[]){MAIN}, 1, 5, 100);
}

TEST_OF(struct document *d, live, setup, teardown)
{
	const struct sp_analysis *a;
	json_t *root;

	add_lives(d->x);
	root = export(d);
	a = d->x->analysis;
	assert_true(json_is_true(at(root, "has_frees")));
	assert_bytes(d, root, "estimate.live_bytes", &a->live->all);
	assert_objects(d, root, "estimate.live_objects", &a->live->all);
	assert_bytes(d, root, "estimate.view_bytes", &a->alloc->all);
	assert_interval(root, "estimate.peak_bytes", a->peak.bytes);
	assert_int_equal(integer(root, "estimate.peak_bytes.time_ns"),
			 1000000000);
	assert_true(real(root, "estimate.peak_bytes.time") == 1);
	assert_int_equal(integer(root, "estimate.peak_bytes.samples"), 14);

	assert_string_equal(string(root, "functions.0.name"), "app+0x1f");
	assert_true(real(root, "functions.0.live_bytes.value") == 0);
	assert_true(real(root, "functions.0.live_bytes.hi") > 0);
	assert_int_equal(integer(root, "functions.0.lifetime.samples"), 9);
	assert_int_equal(integer(root, "functions.0.lifetime.alive"), 0);
	assert_int_equal(integer(root, "functions.0.lifetime.median_ns"),
			 1000000000);
	assert_true(real(root, "functions.0.lifetime.alive_share") == 0);
	assert_bytes(d, root, "functions.1.live_bytes", &a->live->stacks[1]);
	assert_null_at(root, "functions.1.lifetime.median_ns");
	assert_null_at(root, "functions.1.lifetime.p90_ns");
	assert_int_equal(integer(root, "functions.1.lifetime.alive"), 5);
	assert_bytes(d, root, "stacks.1.live_bytes", &a->live->stacks[1]);
	assert_int_equal(integer(root, "stacks.1.lifetime.samples"), 5);
}

/* Where samples were discarded nothing bounds the peak. */
TEST_OF(struct document *d, peak_at_least, setup, teardown)
{
	json_t *root;

	add_lives(d->x);
	root = export(d);
	assert_true(json_is_false(at(root, "estimate.peak_bytes.at_least")));
	assert_true(real(root, "estimate.peak_bytes.hi") > 0);
	d->x->profile.discarded_bytes = 1;
	root = export(d);
	assert_true(json_is_true(at(root, "estimate.peak_bytes.at_least")));
	assert_null_at(root, "estimate.peak_bytes.hi");
	assert_true(real(root, "estimate.peak_bytes.lo") > 0);
}

TEST_OF(struct document *d, view_and_selection, setup, teardown)
{
	json_t *root;

	add_lives(d->x);
	assert_true(sp_moment_parse("1500ms", &d->x->question.at));
	assert_true(sp_moment_parse("3s", &d->x->question.to));
	d->x->question.has_view = true;
	d->x->question.view = SP_VIEW_LEAKS;
	d->x->question.min_size_bytes = 100;
	d->x->question.max_size_bytes = 200;
	d->x->question.method = SP_METHOD_P3;
	d->x->question.confidence = 0.99;
	root = export(d);
	assert_string_equal(string(root, "view"), "leaks");
	assert_string_equal(string(root, "method"), "p3");
	assert_true(real(root, "confidence") == 0.99);
	assert_int_equal(integer(root, "selection.from_ns"), 0);
	assert_true(integer(root, "selection.to_ns") == 3000000000);
	assert_int_equal(integer(root, "selection.at_ns"), 1500000000);
	assert_int_equal(integer(root, "selection.tail_ns"), 325000000);
	assert_int_equal(integer(root, "selection.min_size_bytes"), 100);
	assert_int_equal(integer(root, "selection.max_size_bytes"), 200);
	assert_null_at(root, "selection.within_bytes");
	/* The rows are those of the view, and so are flat and cum. */
	assert_int_equal(json_array_size(at(root, "stacks")), 2);
	assert_bytes(d, root, "stacks.0.flat_bytes",
		     fixture_sums(d->x, &d->x->stacks[0]));
	assert_bytes(d, root, "estimate.live_bytes",
		     &d->x->analysis->live->all);
	assert_true(real(root, "estimate.live_bytes.value") > 0);
}

TEST_BETWEEN(timeline_and_rss, setup, teardown)
{
	struct sp_rss rss[] = {{1000000000, 77}, {2000000000, 88}};
	struct document *d = *test_state;
	const json_t *root, *points;

	add_lives(d->x);
	d->x->profile.rss = rss;
	d->x->profile.n_rss = 2;
	root = export(d);
	points = at(root, "timeline");
	assert_int_equal(json_array_size(points), SP_VIEW_TIMELINE_POINTS);
	assert_int_equal(integer(points, "0.time_ns"), 0);
	assert_true(integer(points, "200.time_ns") == 3250000000);
	assert_null_at(points, "0.rss_bytes");
	assert_int_equal(integer(points, "100.rss_bytes"), 77);
	assert_int_equal(integer(points, "200.rss_bytes"), 88);
	assert_int_equal(integer(points, "100.samples"), 14);
	assert_int_equal(integer(points, "200.samples"), 5);
	assert_bytes(d, points, "200.live_bytes", &d->x->analysis->live->all);
	assert_true(real(points, "100.live_objects.value") >
		    real(points, "200.live_objects.value"));
	assert_int_equal(json_array_size(at(root, "rss")), 2);
	assert_int_equal(integer(root, "rss.1.time_ns"), 2000000000);
	assert_int_equal(integer(root, "rss.1.rss_bytes"), 88);
}

TEST_OF(struct document *d, sizes, setup, teardown)
{
	struct sp_profile *p = &d->x->profile;
	json_t *root;

	p->has_classes = true;
	p->class_slack_bytes = 5;
	p->classes[1] = (struct sp_class_total){3000, 100};
	p->classes[SP_FORMAT_CLASSES - 1] = (struct sp_class_total){4000, 2};
	root = export(d);
	assert_int_equal(json_array_size(at(root, "size_classes")), 2);
	assert_int_equal(integer(root, "size_classes.0.max_bytes"), 32);
	assert_int_equal(integer(root, "size_classes.0.alloc_bytes"), 3000);
	assert_int_equal(integer(root, "size_classes.0.alloc_objects"), 100);
	assert_null_at(root, "size_classes.1.max_bytes");
	assert_int_equal(integer(root, "size_percentiles.objects.p50"), 32);
	assert_null_at(root, "size_percentiles.bytes.p50");
	assert_int_equal(
		integer(root, "size_percentiles.unclassified_bytes_max"), 5);
}

TEST_BETWEEN(sizes_of_the_view, setup, teardown)
{
	static const double shares[] = {0.5, 0.9, 0.99};
	struct document *d = *test_state;
	struct fixture *x = d->x;
	struct sp_interval want;
	json_t *root;
	char path[64];

	x->profile.has_frees = true;
	fixture_stack(x, (size_t[]){MAIN}, 1, 60, 100);
	fixture_stack(x, (size_t[]){MAIN}, 1, 20, 1000);
	x->next.freed_ns = 10;
	fixture_stack(x, (size_t[]){MAIN}, 1, 70, 10000);
	x->question.has_view = true;
	x->question.view = SP_VIEW_LIVE;
	root = export(d);
	assert_int_equal(json_array_size(at(root, "view_size_percentiles")), 3);
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "view_size_percentiles.%d", i);
		assert_true(real(at(root, path), "share") == shares[i]);
		assert_true(sp_analysis_view_percentile(x->analysis, shares[i],
							&want));
		assert_true(real(at(root, path), "value") ==
			    as_written(want.value));
		assert_true(real(at(root, path), "lo") == want.lo);
	}
	assert_true(real(root, "view_size_percentiles.0.hi") == 112);
	assert_close(real(root, "view_size_percentiles.1.value"), 1000, 1e-12);
	/* Nothing bounds what 99 % are. */
	assert_null_at(root, "view_size_percentiles.2.hi");
}

TEST_BETWEEN(sizes_of_an_empty_view, setup, teardown)
{
	const json_t *root = export(*test_state);

	assert_true(json_is_array(at(root, "view_size_percentiles")));
	assert_int_equal(json_array_size(at(root, "view_size_percentiles")), 0);
}

TEST_MAIN(NULL, NULL)
