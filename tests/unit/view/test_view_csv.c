/* SPDX-License-Identifier: MIT */
/*
 * The tables as CSV: functions, timeline, sizes; empty cells for unknown
 * values, hostile names.
 */
#include "stats/timeline.h"
#include "support/page.h"
#include "support/test.h"
#include "support/text_checks.h"
#include "text/figures.h"
#include "view/view.h"

#define R 4096

#define HEAD                                                                   \
	"function,module,file,line,"                                           \
	"flat_bytes,flat_bytes_lo,flat_bytes_hi,flat_samples,"                 \
	"cum_bytes,cum_bytes_lo,cum_bytes_hi,cum_samples,"                     \
	"flat_objects,flat_objects_lo,flat_objects_hi,"                        \
	"live_bytes,live_bytes_lo,live_bytes_hi\n"

enum { HOSTILE = NAMELESS + 1 };

static int setup(void **state)
{
	struct page *t = page_new(R);

	fixture_symbol(t->x, MAIN, "main", "main.c", 10);
	fixture_symbol(t->x, F, "f<a, \"b\">", NULL, 0);
	fixture_symbol(t->x, HOSTILE, "=1+1\n\x1b[2J\xff", "-x", 3);
	*state = t;
	return 0;
}

static const char *functions(struct page *t, size_t n_max)
{
	struct sp_aggregate *a = fixture_aggregate(t->x);
	FILE *out = page_begin(t);
	sp_view_csv_functions(out, a, n_max);
	fclose(out);
	return t->text;
}

/* `n` numbers after `at`, with all digits that are written of them. */
static const char *assert_numbers(const char *at, const double *want, int n)
{
	for (int i = 0; i < n; i++) {
		char *end;

		assert_int_equal(*at, ',');
		assert_true(strtod(at + 1, &end) ==
			    atof(sp_figure_digits(want[i]).text));
		at = end;
	}
	return at;
}

TEST_OF(struct page *t, functions, setup, page_teardown)
{
	const struct sp_class_sums *sums;
	const struct sp_estimation *how;
	struct sp_interval b, o;
	const char *text, *row;

	t->x->profile.has_frees = true;
	t->x->next.born_ns = 1;
	fixture_stack(t->x, (size_t[]){F, MAIN}, 2, 7, 100);
	text = functions(t, 0);
	assert_true(strncmp(text, HEAD, strlen(HEAD)) == 0);
	row = text + strlen(HEAD);
	assert_true(strncmp(row, "\"f<a, \"\"b\"\">\",\"/bin/app\",\"\",",
			    28) == 0);
	sums = fixture_sums(t->x, &t->x->stacks[0]);
	how = &t->x->analysis->how;
	b = sp_estimate_bytes(how, sums);
	o = sp_estimate_objects(how, sums);
	row = assert_numbers(row + 28,
			     (double[]){b.value, b.lo, b.hi, 7, b.value, b.lo,
					b.hi, 7, o.value, o.lo, o.hi, b.value,
					b.lo, b.hi},
			     14);
	assert_int_equal(*row, '\n');
	assert_has(row, "\n\"main\",\"/bin/app\",\"main.c\",10,0,0,");
	assert_string_equal(functions(t, 1) + (row + 1 - text), "");
}

TEST_OF(struct page *t, what_is_not_known_is_empty, setup, page_teardown)
{
	const char *text;

	fixture_stack(t->x, (size_t[]){MAIN}, 1, 7, 100);
	text = functions(t, 0);
	assert_string_equal(text + strlen(text) - 4, ",,,\n");
	t->x->profile.n_samples = 0;
	assert_string_equal(functions(t, 0), HEAD);
}

TEST_OF(struct page *t, hostile_names, setup, page_teardown)
{
	t->x->modules[0].path = "@\"";
	fixture_stack(t->x, (size_t[]){HOSTILE}, 1, 7, 100);
	assert_has(functions(t, 0), "\n\"'=1+1\\x0a\\x1b[2J\\xff\",\"'@\"\"\","
				    "\"'-x\",3,");
}

TEST_BETWEEN(timeline, setup, page_teardown)
{
	struct sp_rss rss = {1625000000, 77};
	struct page *t = *test_state;
	struct sp_timeline_point points[SP_VIEW_TIMELINE_POINTS];
	const struct sp_analysis *a;
	const char *row;
	FILE *out;

	t->x->profile.has_frees = true;
	t->x->profile.rss = &rss;
	t->x->profile.n_rss = 1;
	t->x->next.born_ns = 1000000000;
	t->x->next.freed_ns = 2000000000;
	fixture_stack(t->x, (size_t[]){MAIN}, 1, 7, 100);
	a = fixture_analysis(t->x);
	out = page_begin(t);
	assert_int_equal(sp_view_csv_timeline(out, a, NULL), 0);
	fclose(out);
	assert_int_equal(sp_timeline(a->profile, &a->selection, &a->how, points,
				     SP_VIEW_TIMELINE_POINTS, NULL),
			 0);
	row = strchr(t->text, '\n');
	assert_true(points[100].live_bytes.value > 0);
	for (size_t i = 0; i < SP_VIEW_TIMELINE_POINTS; i++) {
		const struct sp_timeline_point *p = &points[i];
		char *end;

		assert_true(strtoull(row + 1, &end, 10) == p->time_ns);
		row = assert_numbers(
			end,
			(double[]){p->live_bytes.value, p->live_bytes.lo,
				   p->live_bytes.hi, p->live_objects.value,
				   p->live_objects.lo, p->live_objects.hi,
				   (double)p->samples},
			7);
		assert_true(strncmp(row, i < 100 ? ",\n" : ",77\n",
				    i < 100 ? 2 : 4) == 0);
		row = strchr(row, '\n');
	}
	assert_string_equal(row, "\n");
}

TEST_OF(struct page *t, sizes, setup, page_teardown)
{
	FILE *out = page_begin(t);

	t->x->profile.has_classes = true;
	t->x->profile.classes[0] = (struct sp_class_total){8, 1};
	t->x->profile.classes[64] = (struct sp_class_total){5000, 4};
	t->x->profile.classes[SP_FORMAT_CLASSES - 1] =
		(struct sp_class_total){9, 2};
	sp_view_csv_sizes(out, &t->x->profile);
	fclose(out);
	assert_string_equal(t->text, "max_bytes,alloc_bytes,alloc_objects\n"
				     "16,8,1\n1280,5000,4\n,9,2\n");
}

TEST_OF(struct page *t, sizes_of_a_view, setup, page_teardown)
{
	const struct sp_analysis *a;
	const uint64_t sizes[] = {UINT64_MAX - 1, 100, 3};
	const char *row;
	FILE *out;

	for (size_t i = 0; i < 3; i++)
		fixture_stack(t->x, (size_t[]){MAIN}, 1, i + 1, sizes[i]);
	a = fixture_analysis(t->x);
	out = page_begin(t);
	sp_view_csv_sizes_estimated(out, a);
	fclose(out);
	row = strchr(t->text, '\n') + 1;
	assert_int_equal(strncmp(t->text,
				 "max_bytes,view_bytes,view_bytes_lo,"
				 "view_bytes_hi,samples\n",
				 (size_t)(row - t->text)),
			 0);
	for (size_t i = 3; i-- > 0; row = strchr(row, '\n') + 1) {
		struct sp_interval want = sp_estimate_bytes(
			&a->how, fixture_sums(t->x, &t->x->stacks[i]));
		const struct sp_figure_limits cells = sp_figure_limits(want);
		struct sp_interval got;
		char first[16], *p;

		snprintf(first, sizeof(first), "%.*s", (int)strcspn(row, ","),
			 row);
		assert_string_equal(first, i == 2 ? "16" : i ? "112" : "");
		got.value = strtod(strchr(row, ',') + 1, &p);
		got.lo = strtod(p + 1, &p);
		got.hi = strtod(p + 1, &p);
		assert_true(got.value == atof(cells.value.text) &&
			    got.lo == atof(cells.lo.text) &&
			    got.hi == atof(cells.hi.text));
		assert_int_equal(strtoul(p + 1, &p, 10), i + 1);
		assert_int_equal(*p, '\n');
	}
	assert_string_equal(row, "");
}

TEST_MAIN(NULL, NULL)
