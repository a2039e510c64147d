/* SPDX-License-Identifier: MIT */
/* The text report of functions: what is on the page, not how wide its columns
 * are. */
#include "support/page.h"
#include "support/test.h"
#include "support/text_checks.h"
#include "text/style.h"
#include "text/text.h"
#include "view/view.h"

#define R (512 * 1024)

enum {
	NEW = NAMELESS + 1,
	INSERT,
};

enum part {
	HEADER,
	TOP,
	STACKS,
	NOTES,
	ALL,
};

static const char *print(struct page *page, enum part part, size_t n)
{
	struct sp_aggregate *a = fixture_aggregate(page->x);
	FILE *out = page_begin(page);
	sp_aggregate_sort(a, page->order);
	if (page->is_together)
		sp_aggregate_hold_together(a);
	if (part == HEADER || part == ALL) {
		sp_view_summary_print_header(out, a->analysis);
		sp_view_summary_print_view(out, a->analysis);
		sp_view_summary_print_method(out, a->analysis, &a->how);
	}
	if (part == TOP || part == ALL)
		assert_int_equal(sp_view_top_print(out, a, n, page->columns,
						   page->has_bars, NULL),
				 0);
	if (part == STACKS || part == ALL)
		assert_int_equal(sp_view_stacks_print(out, a, n, false, NULL),
				 0);
	if (part == NOTES || part == ALL) {
		sp_view_notes_print(out, a->analysis, a);
		sp_view_notes_print_completeness(out, &page->x->profile);
	}
	fclose(out);
	return page->text;
}

static size_t column_of(const char *text, const char *name)
{
	const char *found = strstr(text, name), *start = found;

	assert_has(text, name);
	while (start > text && start[-1] != '\n')
		start--;
	return (size_t)(found - start);
}

TEST_OF(struct page *page, header, page_setup, page_teardown)
{
	const char *text;

	page_add_stacks(page->x);
	page->x->profile.exact_alloc_bytes = 600 << 20;
	text = print(page, HEADER, 0);
	assert_has(text, "sampleprof report: app -x\n"
			 "  pid 7 on box, 2026-11-21 09:40:12 UTC, ran 3.25 s, "
			 "ended cleanly\n"
			 "  allocated 600.0 MiB in 1,234 allocations, exact\n"
			 "  view      alloc: what was allocated\n"
			 "\nintervals 95 %, method p3t; period 512 KiB, 1,052 "
			 "samples, 3 stacks, 2 threads; without totals by size "
			 "(the file has no totals by size class)\n");
	/* The total once, not its estimate beside it. */
	assert_has_not(text, "526");
	assert_has_not(text, "  live ");
	assert_has_not(text, "  rows ");
}

TEST_OF(struct page *page, header_names_the_method, page_setup, page_teardown)
{
	char want[256];

	page_add_stacks(page->x);
	page->x->question.method = SP_METHOD_P3;
	page->x->question.confidence = 0.999;
	snprintf(want, sizeof(want),
		 "\nintervals 99.9 %%, method p3 (%s); period",
		 sp_method_assumes(SP_METHOD_P3));
	assert_has(print(page, HEADER, 0), want);
	page->x->question.confidence = 0.9;
	page->is_together = true;
	/* What is no row is at the level that was asked for. */
	assert_has(print(page, HEADER, 0),
		   "\nintervals 90 %, of rows 98 %, so that all rows of a "
		   "column hold together, method p3 (");
}

TEST_OF(struct page *page, header_of_unknown_origin, page_setup, page_teardown)
{
	page->x->profile.command = "";
	page->x->profile.host = "";
	assert_has(print(page, HEADER, 0), "report: /bin/app\n"
					   "  pid 7, 2026");
}

TEST_OF(struct page *page, long_command_is_cut_between_characters, page_setup,
	page_teardown)
{
	char command[1024] = "x";
	const char *line;

	/* Three bytes each, after one: 240 is inside of one. */
	for (int i = 0; i < 200; i++)
		strcat(command, "\xe2\x82\xac");
	page->x->profile.command = command;
	line = line_with(print(page, HEADER, 0), "report:");
	assert_has_not(line, "\\x");
	assert_string_equal(line + strlen(line) - 7, "\xe2\x82\xac ...");
	assert_in_range(strlen(line), 230, 270);
}

TEST_OF(struct page *page, top, page_setup, page_teardown)
{
	const char *text;
	size_t column;

	page_add_stacks(page->x);
	text = print(page, TOP, 0);
	column = column_of(text, "function\n");
	assert_int_equal(column_of(text, "h  (app)\n"), column);
	assert_int_equal(column_of(text, "f  (app)\n"), column);
	assert_int_equal(column_of(text, "libz.so.1+0x1f\n"), column);
	assert_has(line_with(text, " h  (app)"), "95.1%   95.1%");
	assert_has(line_with(text, " h  (app)"), " 500.0 MiB   [");
	assert_has(line_with(text, " h  (app)"), " 1,000   1,000  h");
	assert_has(line_with(text, " f  (app)"), "4.8%   99.8%");
	/* Rows end where flat is nothing. */
	assert_has_not(text, " main  (app)");
	assert_has(text, "\n  and 2 functions that only call others: see "
			 "--cum\n");
	assert_has_not(text, "--top");
	assert_has_not(text, " \n");
	/* Points stand below each other, whatever their intervals are. */
	assert_int_equal(column_of(text, "500.0 MiB") + 9,
			 column_of(text, "25.0 MiB") + 8);
}

/* Who only calls has no flat, and has to be asked for. */
TEST_OF(struct page *page, top_by_cum, page_setup, page_teardown)
{
	const char *text, *line;

	page_add_stacks(page->x);
	page->order = SP_AGGREGATE_BY_CUM;
	text = print(page, TOP, 0);
	line = line_with(text, " main  (app)");
	assert_has(line, "100.0%");
	assert_has(line, " 0   1,052  main");
	assert_has(line, "  .  ");
	assert_has_not(text, "<");
	assert_has_not(text, "see --");
	/* What the rows are ordered by is there on every screen. */
	for (page->columns = 60; page->columns < 200; page->columns++)
		assert_has(print(page, TOP, 0), "  cum ");
	page->columns = 60;
	assert_has_not(print(page, TOP, 0), " flat ");
	assert_has(
		print(page, TOP, 1),
		"and 1 function that only calls others: see --cum --top 0\n");
	page->order = SP_AGGREGATE_BY_COUNT;
	assert_has(print(page, TOP, 0), " objects ");
}

/* Ordered by objects, shares are of objects: f has 10 bytes of 1010, and 10
 * objects of 11.  What is hidden goes by that, too. */
TEST_OF(struct page *page, top_by_count, page_setup, page_teardown)
{
	const size_t f[] = {F}, g[] = {MAIN};
	struct sp_aggregate *a;
	const char *text;

	page->x->profile.period_bytes = 1;
	page->x->next.period_bytes = 1;
	fixture_stack(page->x, f, 1, 10, 1);
	fixture_stack(page->x, g, 1, 1, 1000);
	page->order = SP_AGGREGATE_BY_COUNT;
	text = print(page, TOP, 0);
	assert_has(text, "10 exact");
	assert_has(text, " 90.9%");
	assert_has_not(text, "99.0%");
	assert_has(print(page, TOP, 1), "and 1 object (9.1%) flat in 1 other ");
	a = fixture_aggregate(page->x);
	sp_aggregate_sort(a, SP_AGGREGATE_BY_COUNT);
	assert_int_equal(sp_aggregate_drop(a, 0.5, false, NULL), 0);
	assert_int_equal(a->n_functions, 1);
	assert_int_equal(a->functions[0].flat.all.samples, 10);
}

/* A bar of six columns, in eighths, of what the rows are ordered by. */
TEST_OF(struct page *page, top_with_bars, page_setup, page_teardown)
{
	const char *text;

	page_add_stacks(page->x);
	page->has_bars = true;
	text = print(page, TOP, 0);
	assert_has(line_with(text, " h  (app)"),
		   "  \u2588\u2588\u2588\u2588\u2588\u258a  h  (app)");
	assert_has(line_with(text, " f  (app)"), "  \u258e       f  (app)");
	assert_has(line_with(text, "libz.so.1+"), "          libz.so.1+");
	assert_has_not(text, "\033");
	sp_text_set_ascii(true);
	assert_has(line_with(print(page, TOP, 0), " h  (app)"),
		   "  ######  h  (app)");
	sp_text_set_ascii(false);
	sp_style_set_colours(true);
	assert_has(print(page, TOP, 0), "\033[1;31m\u2588");
	sp_style_set_colours(false);
}

/* Few samples: the interval first. */
TEST_OF(struct page *page, top_marks_few_samples, page_setup, page_teardown)
{
	const char *text, *line;

	page_add_stacks(page->x);
	text = print(page, TOP, 0);
	line = line_with(text, "libz.so.1+");
	assert_has(line, "~1.00 MiB");
	assert_true(strchr(line, '[') < strchr(line, '~'));
	assert_has_not(line_with(text, " f  (app)"), "~");
	assert_has(text, "  ~ from 3 samples or fewer, or perhaps nothing: the "
			 "interval comes "
			 "first\n");
	text = print(page, TOP, 2);
	assert_has_not(text, "~");
}

/* Every width is kept, as long as there is something left to leave out. */
TEST_OF(struct page *page, top_on_a_narrow_screen, page_setup, page_teardown)
{
	const char *text;

	page_add_stacks(page->x);
	for (unsigned int columns = 200; columns >= 60; columns--) {
		size_t name;

		page->columns = columns;
		text = print(page, TOP, 2);
		name = column_of(text, "function\n");
		assert_in_range(name, 30, columns - 20);
		assert_int_equal(column_of(text, "h  (app)\n"), name);
		assert_has_not(text, " \n");
		assert_has(line_with(text, "h  (app)"), "500.0 MiB ");
	}
	assert_has_not(text, " cum ");
	assert_has_not(text, "samples ");
	page->columns = 100;
	text = print(page, TOP, 2);
	assert_has(text, " cum% ");
	assert_has_not(text, "sum%");
}

TEST_OF(struct page *page, top_of_exact_profile, page_setup, page_teardown)
{
	const char *text;

	page->x->profile.period_bytes = 1;
	page->x->next.period_bytes = 1;
	page_add_stacks(page->x);
	text = print(page, TOP, 0);
	assert_has(line_with(text, " h  (app)"), "62.5 KiB exact");
	assert_has(line_with(text, "libz.so.1+"), "128 B exact");
	assert_has_not(text, "~");
	assert_has_not(text, "<");
}

TEST_OF(struct page *page, top_says_what_is_left_out, page_setup, page_teardown)
{
	const char *text;

	page_add_stacks(page->x);
	text = print(page, TOP, 1);
	assert_has(text, "\n  and 26.0 MiB (4.9%) flat in 2 other functions: "
			 "see --top 0\n");
	assert_has_not(text, "main");
	assert_has(print(page, TOP, 2), "in 1 other function: see");
	assert_has_not(print(page, TOP, 100), "flat in");
}

TEST_OF(struct page *page, stacks, page_setup, page_teardown)
{
	const char *text;

	page_add_stacks(page->x);
	page->x->stacks[1].flags = SP_STACK_TRUNCATED;
	page->x->stacks[2].flags = SP_STACK_CALLER_ONLY;
	page->x->stacks[0].flags = SP_STACK_NO_POINTER;
	text = print(page, STACKS, 0);
	assert_has(text, "Showing 3 of 3 call stacks");
	assert_has(line_with(text, "#1 "), "#1  500.0 MiB [");
	assert_has(line_with(text, "#1 "), "] MiB  95.1%");
	assert_has(text, "    h (inline)  h.c:40  (app)\n"
			 "    g  g.c:31  (app)\n"
			 "    main  src/main.c:10  (app)\n"
			 "    ... its callers are not known\n\n#2");
	assert_has(text, "    f  f.c  (app)\n"
			 "    f  f.c  (app)\n"
			 "    main  src/main.c:10  (app)\n"
			 "    ... deeper than");
	assert_has(line_with(text, "#3 "), " MiB] ~1.00 MiB  0.2%");
	assert_has(text, "    libz.so.1+0x1f\n");
	assert_has(text, "... only the calling function");

	text = print(page, STACKS, 1);
	assert_has(text, "Showing 1 of 3");
	assert_has_not(text, "#2");
}

/* Between the program's own function and the allocator only the library's
 * outermost is shown, and between two own ones nothing; what a line would save
 * alone is. */
TEST_OF(struct page *page, stack_of_library_functions, page_setup,
	page_teardown)
{
	struct fixture *x = page->x;
	struct sp_aggregate *a;
	FREED char *text = NULL;
	size_t size;
	FILE *out;

	fixture_symbol(x, NEW, "operator new", NULL, 0);
	fixture_symbol(x, INSERT, "std::a", "a.h", 1);
	fixture_symbol(x, INSERT, "std::b", "b.h", 2);
	fixture_symbol(x, INSERT, "std::c", "c.h", 3);
	fixture_stack(x, (size_t[]){NEW, INSERT, MAIN, INSERT}, 4, 100, 64);
	fixture_stack(x, (size_t[]){NEW, NEW, NEW, MAIN}, 4, 10, 64);
	assert_has(print(page, STACKS, 0),
		   "    operator new  (app)\n"
		   "    ... 2 library functions: see --all-frames\n"
		   "    std::c  c.h:3  (app)\n"
		   "    main  src/main.c:10  (app)\n"
		   "    ... 3 library functions\n");
	assert_has(page->text, "    operator new  (app)\n"
			       "    operator new  (app)\n"
			       "    operator new  (app)\n"
			       "    main  src/main.c:10  (app)\n");

	a = fixture_aggregate(x);
	out = open_memstream(&text, &size);
	assert_int_equal(sp_view_stacks_print(out, a, 0, true, NULL), 0);
	fclose(out);
	assert_has(text, "    operator new  (app)\n"
			 "    std::a (inline)  a.h:1  (app)\n"
			 "    std::b (inline)  b.h:2  (app)\n"
			 "    std::c  c.h:3  (app)\n"
			 "    main  src/main.c:10  (app)\n");
}

TEST_OF(struct page *page, stack_of_no_frames, page_setup, page_teardown)
{
	fixture_stack(page->x, NULL, 0, 1, 64);
	assert_has(print(page, STACKS, 0), "%\n    [no stack]\n");
}

TEST_OF(struct page *page, ends, page_setup, page_teardown)
{
	struct sp_profile *p = &page->x->profile;

	page_add_stacks(page->x);
	assert_has(print(page, NOTES, 0), "complete, the process ended");
	assert_has_not(print(page, HEADER, 0), "at least");
	p->missing_bytes_max = 3 << 20;
	assert_has(print(page, HEADER, 0), " (up to 3.00 MiB more)\n");
	assert_has(print(page, NOTES, 0), "; up to 3.00 MiB may be missing");
	p->end = SP_PROFILE_END_KILLED;
	p->missing_bytes_max = 0;
	assert_has(print(page, HEADER, 0), "was killed or left without exit()");
	assert_has(print(page, HEADER, 0), "allocated at least 5.63 MiB in");
	p->end = SP_PROFILE_END_RUNNING;
	assert_has(print(page, ALL, 0), "figures as of now");
}

TEST_BETWEEN(hostile_text_everywhere, page_setup, page_teardown)
{
	static const char hostile[] = "a\x1b]52;c;eA==\x07\n\xff\xe2\x80\xae";
	struct page *page = *test_state;
	struct fixture *x = page->x;
	const char *text;
	uint32_t code;

	x->profile.command = hostile;
	x->profile.host = hostile;
	x->profile.path = hostile;
	x->modules[0].path = hostile;
	x->symbolizer.problem = &x->modules[0];
	x->symbolizer.reason = hostile;
	x->infos[0] = (struct sp_info){"diagnosis", hostile};
	x->profile.n_infos = 1;
	strcpy(x->profile.damage, hostile);
	fixture_symbol(x, 100, hostile, hostile, 1);
	fixture_stack(x, (size_t[]){100}, 1, 5, 64);

	text = print(page, ALL, 0);
	for (const char *p = text; *p;) {
		unsigned int n = sp_text_decode_utf8(p, &code);

		assert_true(n > 0);
		assert_true(code == '\n' || !sp_text_is_unsafe(code));
		p += n;
	}
	/* command, host, name and module twice each, file, diagnosis, damage
	 */
	for (int i = 0; i < 9; i++) {
		assert_has(text, "a\\x1b]52;c;eA==\\x07\\x0a\\xff\\xe2\\x80");
		text = strstr(text, "a\\x1b]52") + 1;
	}
	assert_null(strstr(text, "a\\x1b"));
}

TEST_MAIN(NULL, NULL)
