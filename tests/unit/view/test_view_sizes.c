/* SPDX-License-Identifier: MIT */
/* The text of --sizes: exact, and estimated for a view. */
#include <errno.h>

#include "support/page.h"
#include "support/test.h"
#include "support/text_checks.h"
#include "text/text.h"
#include "view/view.h"

#define R (512 * 1024)

/* Of 150 samples of 64 bytes 40 are alive at the end, 10 were freed at once. */
static int setup(void **state)
{
	struct page *page = page_new(R);
	struct fixture *x = page->x;

	fixture_symbol(x, MAIN, "main", "main.c", 10);
	x->profile.has_frees = true;
	x->profile.exact_alloc_bytes = 75 << 20;
	fixture_stack(x, (size_t[]){MAIN}, 1, 40, 64);
	x->next.freed_ns = 1000;
	fixture_samples(x, &x->stacks[0], 100, 64);
	x->next.age_bytes = 0;
	x->next.thread = 0;
	x->next.freed_by = 0;
	x->profile.n_thread_infos = 1;
	x->threads[0].index = 1;
	fixture_samples(x, &x->stacks[0], 10, 64);
	*state = page;
	return 0;
}

static const char *print(struct page *page, bool ascii)
{
	FILE *out = page_begin(page);
	sp_view_sizes_print(out, &page->x->profile, ascii);
	return page_end(page, out);
}

static const char *print_estimated(struct page *page)
{
	const struct sp_analysis *a = fixture_analysis(page->x);
	FILE *out = page_begin(page);
	sp_view_sizes_print_estimated(out, a, true);
	return page_end(page, out);
}

static void add_sizes(struct sp_profile *p, uint64_t size, uint64_t objects)
{
	struct sp_class_total *class = &p->classes[sp_format_class(size)];

	p->has_classes = true;
	class->bytes += size * objects;
	class->objects += objects;
}

TEST_OF(struct page *page, sizes, setup, page_teardown)
{
	const char *text;

	add_sizes(&page->x->profile, 24, 500);
	add_sizes(&page->x->profile, 32, 400);
	add_sizes(&page->x->profile, 33, 10);
	add_sizes(&page->x->profile, 4096, 89);
	add_sizes(&page->x->profile, 1 << 20, 1);
	page->x->profile.class_slack_bytes = 2048;
	text = print(page, true);
	assert_has_not(text, "16 B");
	assert_has(text, "        32 B            900  90.0%    24.2 KiB   1.7%"
			 "  #\n");
	assert_has(text, "        64 B             10   1.0%");
	assert_has(text, "       128 B              0     0%           0     0%"
			 "\n");
	assert_has(text, "       4 KiB             89   8.9%   356.0 KiB  25.3%"
			 "  ########\n");
	assert_has(text, "       1 MiB              1   0.1%    1.00 MiB  72.9%"
			 "  ########################\n");
	assert_has_not(text, "2 MiB");
	assert_has(text, "         all          1,000           1.37 MiB\n");
	assert_has(text, "  of the objects half at most 32 B, 90 % at most "
			 "32 B, 99 % at most 4 KiB\n");
	assert_has(text, "  of the bytes   half at most 1 MiB, 90 % at most "
			 "1 MiB, 99 % at most 1 MiB\n");
	assert_has(text,
		   "up to 2.00 KiB is missing: threads had not published it");
	assert_has(print(page, false), "\u2588\u2588\u2588\n");
}

/* Every class is in the row of its upper end, and in no other. */
TEST_OF(struct page *page, every_size_has_a_row, setup, page_teardown)
{
	struct sp_profile *p = &page->x->profile;

	p->has_classes = true;
	for (unsigned int i = 0; i < SP_FORMAT_CLASSES; i++) {
		char want[160];
		uint64_t max = sp_format_class_max(i), row = 16;

		p->classes[i] = (struct sp_class_total){777, 1};
		while (row < max && row < 1ull << 51)
			row *= 2;
		snprintf(want, sizeof(want), "\n  %10s              1 100.0%%",
			 row < max ? "larger" : sp_text_size(row).text);
		assert_has(print(page, false), want);
		p->classes[i] = (struct sp_class_total){0, 0};
	}
	assert_has(print(page, false), "all              0");
}

TEST_OF(struct page *page, no_sizes, setup, page_teardown)
{
	struct sp_error err = {0};

	assert_int_equal(sp_view_sizes_check(&page->x->profile, &err),
			 -ENODATA);
	assert_has(err.message, "no exact totals per object size");
	page->x->profile.has_classes = true;
	assert_int_equal(sp_view_sizes_check(&page->x->profile, &err), 0);
}

/* The view has 40 samples of 64 bytes; 7 of 5000 bytes come to it. */
TEST_OF(struct page *page, sizes_of_a_view, setup, page_teardown)
{
	struct fixture *x = page->x;
	const char *text;

	x->next.freed_ns = SP_NEVER;
	fixture_samples(x, &x->stacks[0], 7, 5000);
	page_choose(page, SP_VIEW_LIVE);
	text = print_estimated(page);
	assert_has(text, "Estimated bytes by object size in this view");
	assert_has(text, "\n  size up to                           bytes      %"
			 "\n        64 B       20.0 MiB [14.2, ");
	assert_has(line_with(text, "   64 B  "), "  85.0%  ######");
	assert_has(text, "\n       128 B                     <= 1.85 MiB     "
			 "0%\n");
	assert_has(line_with(text, "   8 KiB  "), "  3.52 MiB [1.40, ");
	assert_has_not(text, "32 B ");
	assert_has_not(text, "16 KiB");
	assert_has(line_with(text, "   all  "), " 23.5 MiB [17.2, ");
	assert_has(line_with(text, "   all  "), "100.0%");
	assert_has(text, "\n  <= no sample: at most that with 97.5 %, at most "
			 "3.7 periods\n");
	assert_has_not(text, "  ~ ");
	assert_has(text, "\n  of the bytes, estimated\n"
			 "    half at most       64 B  [49 B, 64 B]\n"
			 "    90 % at most   4.88 KiB  [49 B, 5 KiB]\n"
			 "    99 % at most   4.88 KiB  [4.00 KiB, any size]\n");
}

/* Rows are those that there can be, and no more than was allocated. */
TEST_OF(struct page *page, sizes_of_a_view_with_totals, setup, page_teardown)
{
	struct sp_profile *p = &page->x->profile;
	const char *text;

	add_sizes(p, 32, 1000);
	add_sizes(p, 64, (75 << 20) / 64);
	add_sizes(p, 1 << 20, 1);
	p->exact_alloc_bytes = (76 << 20) + 32000;
	page_choose(page, SP_VIEW_TEMPORARY);
	text = print_estimated(page);
	assert_has(text, "\n        32 B                     <= 31.3 KiB     "
			 "0%\n");
	assert_has(text, "\n       128 B                         0 exact     "
			 "0%\n");
	assert_has(text, "\n       1 MiB                     <= 1.00 MiB     "
			 "0%\n");
	assert_has_not(text, " 2 MiB");
	page->x->question.min_size_bytes = 64;
	page->x->question.max_size_bytes = 128;
	text = print_estimated(page);
	assert_has_not(text, " 32 B");
	assert_has_not(text, " 1 MiB");
	assert_has(text, "half at most       64 B  [64 B, 64 B]\n");
}

TEST_OF(struct page *page, sizes_of_an_empty_view, setup, page_teardown)
{
	const char *text;

	page_choose(page, SP_VIEW_LIVE);
	page->x->question.max_size_bytes = 10;
	text = print_estimated(page);
	assert_has(text, "%\n         all                     <= 1.85 MiB"
			 "      -\n");
	assert_has_not(text, "of the bytes");
}

TEST_BETWEEN(sizes_of_everything_recorded, setup, page_teardown)
{
	struct fixture *x = fixture_new(1);
	struct page exact = {.x = x};
	const char *text;

	x->profile.has_frees = true;
	fixture_symbol(x, MAIN, "main", "main.c", 10);
	fixture_stack(x, (size_t[]){MAIN}, 1, 3, 24);
	page_choose(&exact, SP_VIEW_LIVE);
	text = print_estimated(&exact);
	assert_has(text, "        32 B                      72 B exact 100.0%"
			 "  ################\n");
	assert_has(text, "    99 % at most       24 B  exact\n");
	fixture_free(x);
	free(exact.text);
}

TEST_MAIN(NULL, NULL)
