/* SPDX-License-Identifier: MIT */
/* The text report of functions: what is on the page, not how wide its columns
 * are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/parse.h"
#include "cli/options.h"
#include "support/report_fixture.h"
#include "support/text_checks.h"
#include "text/text.h"
#include "view/view_notes.h"
#include "view/view_stacks.h"
#include "view/view_summary.h"
#include "view/view_top.h"

/* As the tool was called; the shell has to see it quoted. */
#define PROGRAM "sampleprof-report"

#define R (512 * 1024)

enum {
	MAIN,
	F,
	H_IN_G,
	NAMELESS,
};

struct page {
	struct fixture *x;
	char *text;
	size_t size;
	size_t n_together;
	unsigned int columns;
};

static int setup(void **state)
{
	struct page *page = calloc(1, sizeof(*page));
	struct fixture *x = fixture_new(R);

	fixture_symbol(x, MAIN, "main", "src/main.c", 10);
	fixture_symbol(x, F, "f", "f.c", 0);
	fixture_symbol(x, H_IN_G, "h", "h.c", 40);
	fixture_symbol(x, H_IN_G, "g", "g.c", 31);
	fixture_symbol(x, NAMELESS, "libz.so.1+0x1f", NULL, 0);
	page->x = x;
	*state = page;
	return 0;
}

static int teardown(void **state)
{
	struct page *page = *state;

	free(page->text);
	fixture_free(page->x);
	free(page);
	return 0;
}

/* Three stacks with 1000, 50 and 2 samples. */
static void add_stacks(struct fixture *x)
{
	fixture_stack(x, (size_t[]){H_IN_G, MAIN}, 2, 1000, 64);
	fixture_stack(x, (size_t[]){F, F, MAIN}, 3, 50, 64);
	fixture_stack(x, (size_t[]){NAMELESS, MAIN}, 2, 2, 64);
	x->stacks[2].frames[0].module = 2;
}

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
	FILE *out;

	free(page->text);
	out = open_memstream(&page->text, &page->size);
	if (page->n_together)
		sp_aggregate_hold_together(a, page->n_together);
	if (part == HEADER || part == ALL) {
		sp_view_summary_print_header(out, a->analysis);
		sp_view_summary_print_view(out, a->analysis, &a->how,
					   a->n_together);
	}
	if (part == TOP || part == ALL)
		assert_int_equal(
			sp_view_top_print(out, a, n, page->columns, NULL), 0);
	if (part == STACKS || part == ALL)
		assert_int_equal(sp_view_stacks_print(out, a, n, NULL), 0);
	if (part == NOTES || part == ALL) {
		static const struct sp_argument focus = {.name = "focus"};
		static const struct sp_argument fetch = {.name = "debuginfod"};

		sp_view_notes_print(out, a->analysis, a);
		sp_view_notes_print_completeness(out, &page->x->profile);
		sp_options_print_next(
			out,
			&(struct sp_options){
				.program = PROGRAM,
				.given = {{&focus, "a b"}, {&fetch, NULL}},
				.n_given = 2},
			&page->x->profile, "--stacks 10");
	}
	fclose(out);
	sp_aggregate_free(a);
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

static void test_header(void **state)
{
	struct page *page = *state;
	const char *text;

	add_stacks(page->x);
	page->x->profile.exact_alloc_bytes = 600 << 20;
	text = print(page, HEADER, 0);
	assert_has(text, "sampleprof report: app -x\n"
			 "  pid 7 on box, started 2026-11-21 09:40:12 UTC, ran "
			 "3.2 s, ended cleanly\n"
			 "  period 512 KiB, 1,052 samples, 3 distinct stacks, "
			 "2 threads\n"
			 "  EXACT     600.0 MiB in 1,234 allocations\n"
			 "  estimate  526.0 MiB (95 %: [");
	assert_has(text,
		   "\n  view      alloc: what was allocated; others need "
		   "SAMPLEPROF_FREES=on\n"
		   "  intervals 95 %, method p3t without exact totals per "
		   "size class\n");
	assert_has_not(text, "  live ");
	assert_has_not(text, "  rows ");
}

static void test_header_names_the_method(void **state)
{
	struct page *page = *state;
	char want[256];

	add_stacks(page->x);
	page->x->question.method = SP_METHOD_WEIGHTED;
	page->x->question.confidence = 0.999;
	snprintf(want, sizeof(want),
		 "  intervals 99.9 %%, method weighted: %s\n",
		 sp_method_assumes(SP_METHOD_WEIGHTED));
	assert_has(print(page, HEADER, 0), want);
	assert_has(print(page, HEADER, 0), "526.0 MiB (99.9 %: [");
	page->x->question.method = SP_METHOD_P3;
	page->x->question.confidence = 0.9;
	page->n_together = 10;
	assert_has(print(page, HEADER, 0), "intervals 99 %, method p3: ");
	assert_has(print(page, HEADER, 0),
		   "; raised so that the 10 rows of a column hold together\n");
	/* What is no row is at the level that was asked for. */
	assert_has(print(page, HEADER, 0), "526.0 MiB (90 %: [");
	assert_has(print(page, TOP, 0), "estimated bytes [99 % interval]");
}

static void test_header_of_unknown_origin(void **state)
{
	struct page *page = *state;

	page->x->profile.command = "";
	page->x->profile.host = "";
	assert_has(print(page, HEADER, 0), "report: /bin/app\n"
					   "  pid 7, started ");
}

static void test_long_command_is_cut_between_characters(void **state)
{
	struct page *page = *state;
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

static void test_top(void **state)
{
	struct page *page = *state;
	const char *text;
	size_t column;

	add_stacks(page->x);
	text = print(page, TOP, 0);
	assert_has(text, "Showing 5 of 5 functions; % of what was allocated, "
			 "no interval:");
	column = column_of(text, "function\n");
	assert_int_equal(column_of(text, "h  (app)\n"), column);
	assert_int_equal(column_of(text, "f  (app)\n"), column);
	assert_int_equal(column_of(text, "libz.so.1+0x1f  (libz.so.1)\n"),
			 column);
	assert_int_equal(column_of(text, "main  (app)\n"), column);
	assert_has(line_with(text, " h  (app)"), "95.1%   95.1%");
	assert_has(line_with(text, " h  (app)"), " 500.0 MiB   [");
	assert_has(line_with(text, " h  (app)"), " 1,000  1,000  h");
	assert_has(line_with(text, " f  (app)"), "4.8%   99.8%");
	assert_has(line_with(text, " main  (app)"), "100.0%");
	assert_has(line_with(text, " main  (app)"), " 0  1,052  main");
	assert_has_not(text, "--top");
	assert_has_not(text, " \n");
	/* Points stand below each other, whatever their intervals are. */
	assert_int_equal(column_of(text, "500.0 MiB") + 9,
			 column_of(text, "25.0 MiB") + 8);
}

/* Few samples: the interval first.  None: a limit. */
static void test_top_marks_few_samples(void **state)
{
	struct page *page = *state;
	const char *text, *line;

	add_stacks(page->x);
	text = print(page, TOP, 0);
	line = line_with(text, "libz.so.1+");
	assert_has(line, "~1.00 MiB");
	assert_true(strchr(line, '[') < strchr(line, '~'));
	assert_has_not(line_with(text, " f  (app)"), "~");
	line = line_with(text, " main  (app)");
	assert_has_not(line, "~");
	/* 3.69 periods of 512 KiB */
	assert_has(line, "< 1.85 MiB ");
	assert_has(text, "  ~ from 3 samples or fewer, or perhaps nothing: the "
			 "interval comes "
			 "first\n"
			 "  < no sample: less than that with 97.5 %, at most "
			 "3.7 periods\n");
	text = print(page, TOP, 2);
	assert_has_not(text, "~");
	assert_has_not(text, "no sample");
	page->x->question.confidence = 0.9;
	text = print(page, TOP, 0);
	assert_has(line_with(text, " main  (app)"), "< 1.50 MiB ");
	assert_has(text, "with 95 %, at most 3.0 periods");
}

/* Every width is kept, as long as there is something left to leave out. */
static void test_top_on_a_narrow_screen(void **state)
{
	struct page *page = *state;
	const char *text;

	add_stacks(page->x);
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
	assert_has_not(text, "cum");
	assert_has_not(text, "samples ");
	page->columns = 100;
	text = print(page, TOP, 2);
	assert_has(text, " cum% ");
	assert_has_not(text, "sum%");
}

static void test_top_of_exact_profile(void **state)
{
	struct page *page = *state;
	const char *text;

	page->x->profile.period_bytes = 1;
	page->x->next.period_bytes = 1;
	add_stacks(page->x);
	text = print(page, TOP, 0);
	assert_has(line_with(text, " h  (app)"), "62.5 KiB exact");
	assert_has(line_with(text, " main  (app)"), "  0 exact ");
	assert_has(line_with(text, "libz.so.1+"), "128 B exact");
	assert_has_not(text, "~");
	assert_has_not(text, "<");
}

static void test_top_says_what_is_left_out(void **state)
{
	struct page *page = *state;
	const char *text;

	add_stacks(page->x);
	text = print(page, TOP, 1);
	assert_has(text, "Showing 1 of 5 functions");
	assert_has(text, "and 26.0 MiB (4.9%) flat in 4 other functions");
	assert_has_not(text, "main");
	assert_has(print(page, TOP, 4), "in 1 other function;");
	assert_has(print(page, TOP, 100), "Showing 5 of 5");
}

static void test_stacks(void **state)
{
	struct page *page = *state;
	const char *text;

	add_stacks(page->x);
	page->x->stacks[1].flags = SP_STACK_TRUNCATED;
	page->x->stacks[2].flags = SP_STACK_CALLER_ONLY;
	page->x->stacks[0].flags = SP_STACK_NO_POINTER;
	text = print(page, STACKS, 0);
	assert_has(text, "Showing 3 of 3 call stacks");
	assert_has(line_with(text, "#1 "), "#1  500.0 MiB (95 %: [");
	assert_has(line_with(text, "#1 "), ")  95.1%  1,000 samples");
	assert_has(text, "    h (inline)  h.c:40  (app)\n"
			 "    g  g.c:31  (app)\n"
			 "    main  src/main.c:10  (app)\n"
			 "    ... its callers are not known\n\n#2");
	assert_has(text, "    f  f.c  (app)\n"
			 "    f  f.c  (app)\n"
			 "    main  src/main.c:10  (app)\n"
			 "    ... deeper than");
	assert_has(line_with(text, "#3 "), " MiB] (95 %), ~1.00 MiB  0.2%");
	assert_has(text, "    libz.so.1+0x1f  (libz.so.1)\n");
	assert_has(text, "... only the calling function");

	text = print(page, STACKS, 1);
	assert_has(text, "Showing 1 of 3");
	assert_has_not(text, "#2");
}

static void test_stack_of_no_frames(void **state)
{
	struct page *page = *state;

	fixture_stack(page->x, NULL, 0, 1, 64);
	assert_has(print(page, STACKS, 0), "1 sample\n    [no stack]\n");
}

static void test_every_loss_is_a_note(void **state)
{
	struct page *page = *state;

	add_stacks(page->x);
	page->x->profile.exact_alloc_bytes = 526 << 20;
	for (unsigned int i = 0; i < SP_LOSS_COUNT; i++) {
		char want[512];

		assert_has_not(print(page, NOTES, 0), sp_loss_name(i));
		page->x->profile.losses[i] = 1000 + i;
		snprintf(want, sizeof(want), "  - 1,0%02u %s: %s\n", i,
			 sp_loss_name(i), sp_loss_help(i));
		assert_has(print(page, NOTES, 0), want);
		page->x->profile.losses[i] = 0;
	}
}

static void test_notes(void **state)
{
	struct page *page = *state;
	struct sp_profile *p = &page->x->profile;
	const char *text;

	add_stacks(page->x);
	page->x->stacks[0].flags = SP_STACK_CALLER_ONLY;
	page->x->stacks[1].flags = SP_STACK_TRUNCATED;
	page->x->symbolizer.problem = &page->x->modules[1];
	page->x->symbolizer.reason = "no such file";
	page->x->infos[0] = (struct sp_info){"diagnosis", "nothing seen"};
	p->n_infos = 1;
	p->damaged_records = 1;
	p->ignored_bytes = 4096;
	strcpy(p->damage, "offset 65536: check");
	text = print(page, NOTES, 0);
	assert_has(text, "  - nothing seen\n");
	assert_has(text, "damaged: 1 bad record, 4 KiB ignored; first: "
			 "offset 65536: check\n");
	assert_has(text, "  - 4.8% of the bytes are in stacks deeper");
	assert_has_not(text, "callers");
	assert_has(text, "  - no symbols for /lib/libz.so.1: no such file\n");
	assert_has_not(text, "unfinished");
	assert_has_not(text, "stored");
	page->x->stacks[0].flags = SP_STACK_NO_POINTER;
	assert_has(print(page, NOTES, 0),
		   "  - 95.1% of the bytes are in stacks that end at code "
		   "whose callers cannot be found: outer functions are "
		   "missing\n");
	page->x->infos[0] = (struct sp_info){"unwinder", "fp"};
	assert_has(print(page, NOTES, 0), "SAMPLEPROF_UNWIND=tables finds");
	page->x->symbolizer.named = 1500;
	page->x->symbolizer.stored = 1100;
	assert_has(print(page, NOTES, 0),
		   "  - names of 1,100 of 1,500 addresses are those that are "
		   "stored in the profile (sampleprof-report symbolize)\n");
}

/* What a kill leaves is no damage. */
static void test_unfinished(void **state)
{
	struct page *page = *state;
	struct sp_profile *p = &page->x->profile;
	const char *text;

	add_stacks(page->x);
	p->end = SP_PROFILE_END_KILLED;
	p->unfinished_records = 1;
	text = print(page, NOTES, 0);
	assert_has(text, "  - 1 record was unfinished when the process was "
			 "killed: nothing else is missing for it\n");
	assert_has_not(text, "damaged");
	p->end = SP_PROFILE_END_CLEAN;
	p->unfinished_records = 2;
	assert_has(print(page, NOTES, 0),
		   "  - 2 records were unfinished when the process ended: ");
}

static void test_exact_outside_interval(void **state)
{
	struct page *page = *state;

	add_stacks(page->x);
	page->x->profile.exact_alloc_bytes = 526 << 20;
	assert_has_not(print(page, NOTES, 0), "outside");
	page->x->profile.exact_alloc_bytes = 400 << 20;
	assert_has(print(page, NOTES, 0), "outside the 95 % interval of its "
					  "estimate: chance in up to one run "
					  "of 20, ");
	page->x->profile.exact_alloc_bytes = 700 << 20;
	assert_has(print(page, NOTES, 0), "outside");
	/* Whatever method the rows are made with. */
	page->x->question.method = SP_METHOD_NEGBINOM_AS_WRITTEN;
	page->x->question.confidence = 0.99;
	assert_has(print(page, NOTES, 0), "outside the 99 % interval of its "
					  "estimate: chance in up to one run "
					  "of 100, ");
	page->x->question.method = SP_METHOD_P3T;
	page->x->question.confidence = 0.95;

	/* Much may not have been published. */
	page->x->profile.end = SP_PROFILE_END_KILLED;
	page->x->profile.missing_bytes_max = 200 << 20;
	page->x->profile.exact_alloc_bytes = 400 << 20;
	assert_has_not(print(page, NOTES, 0), "outside");
	page->x->profile.exact_alloc_bytes = 250 << 20;
	assert_has(print(page, NOTES, 0), "outside");
	page->x->profile.exact_alloc_bytes = 700 << 20;
	assert_has(print(page, NOTES, 0), "outside");
}

static void test_ends(void **state)
{
	struct page *page = *state;
	struct sp_profile *p = &page->x->profile;

	add_stacks(page->x);
	assert_has(print(page, NOTES, 0), "complete, the process ended");
	assert_has_not(print(page, HEADER, 0), "at least");
	p->missing_bytes_max = 3 << 20;
	assert_has(print(page, HEADER, 0), " (up to 3.00 MiB more)\n");
	assert_has(print(page, NOTES, 0), "; up to 3.00 MiB may be missing");
	p->end = SP_PROFILE_END_KILLED;
	p->missing_bytes_max = 0;
	assert_has(print(page, HEADER, 0), "was killed or left without exit()");
	assert_has(print(page, HEADER, 0), "EXACT     at least 5.64 MiB in");
	p->end = SP_PROFILE_END_RUNNING;
	assert_has(print(page, ALL, 0), "figures as of now");
}

static void test_next_command(void **state)
{
	struct page *page = *state;

	add_stacks(page->x);
	page->x->profile.path = "-my file";
	assert_has(print(page, NOTES, 0),
		   "\nnext: sampleprof-report --stacks 10 --focus 'a b' "
		   "--debuginfod ./'-my file'\n");
}

/* The suggested period has to be one that the agent takes, and help. */
static void test_no_samples(void **state)
{
	struct page *page = *state;
	const char *text;

	page->x->profile.exact_alloc_bytes = 312 << 10;
	text = print(page, ALL, 0);
	assert_has(text, "estimate  less than 1.85 MiB with 97.5 %\n");
	assert_has(text, "0 samples: 312.0 KiB allocated, period 512 KiB; to "
			 "see more use SAMPLEPROF_PERIOD=4K\n");
	assert_has_not(text, "Showing");

	for (uint64_t bytes = 1; bytes < 1ull << 50; bytes = bytes * 3 + 1) {
		char *period;
		uint64_t period_bytes = 0;

		page->x->profile.period_bytes = 1ull << 50;
		page->x->profile.exact_alloc_bytes = bytes;
		text = print(page, NOTES, 0);
		assert_has(text, "SAMPLEPROF_PERIOD=");
		period = strdup(strstr(text, "_PERIOD=") + 8);
		period[strcspn(period, "\n")] = '\0';
		assert_true(sp_parse_size(period, &period_bytes));
		free(period);
		assert_true(period_bytes >= 1);
		assert_true(period_bytes == 1 || bytes / period_bytes >= 64);
		assert_true(bytes / period_bytes < 128);
	}
	/* There is no better one. */
	page->x->profile.period_bytes = R;
	page->x->profile.exact_alloc_bytes = 0;
	assert_has(print(page, NOTES, 0), "0 samples: no allocation was seen");
	page->x->profile.exact_alloc_bytes = 1ull << 40;
	assert_has_not(print(page, NOTES, 0), "SAMPLEPROF_PERIOD");
}

static void test_hostile_text_everywhere(void **state)
{
	static const char hostile[] = "a\x1b]52;c;eA==\x07\n\xff\xe2\x80\xae";
	struct page *page = *state;
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
	/* command, host, name and module twice each, file, problem (2),
	 * diagnosis, damage, next command */
	for (int i = 0; i < 12; i++) {
		assert_has(text, "a\\x1b]52;c;eA==\\x07\\x0a\\xff\\xe2\\x80");
		text = strstr(text, "a\\x1b]52") + 1;
	}
	assert_null(strstr(text, "a\\x1b"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_header),
		TEST(test_header_names_the_method),
		TEST(test_header_of_unknown_origin),
		TEST(test_long_command_is_cut_between_characters),
		TEST(test_top),
		TEST(test_top_marks_few_samples),
		TEST(test_top_on_a_narrow_screen),
		TEST(test_top_of_exact_profile),
		TEST(test_top_says_what_is_left_out),
		TEST(test_stacks),
		TEST(test_stack_of_no_frames),
		TEST(test_every_loss_is_a_note),
		TEST(test_notes),
		TEST(test_unfinished),
		TEST(test_exact_outside_interval),
		TEST(test_ends),
		TEST(test_next_command),
		TEST(test_no_samples),
		TEST(test_hostile_text_everywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
