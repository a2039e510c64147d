/* SPDX-License-Identifier: MIT */
/* Lines of a page: broken or cut to the width of a terminal; bars. */
#include "text/lines.h"
#include "text/style.h"
#include "text/text.h"
#include "support/test.h"

/* A page of one line: a name between two texts. */
static char *page_line(const char *before, const char *name, const char *after)
{
	char *lines, *got = NULL;
	size_t size, got_size;
	FILE *text = open_memstream(&lines, &size);
	FILE *out = open_memstream(&got, &got_size);

	sp_lines_begin_page();
	fputs(before, text);
	if (name)
		sp_lines_print_name(text, name);
	fprintf(text, "%s\n", after);
	assert_int_equal(sp_lines_close_page(out, text, &lines), 0);
	fclose(out);
	return got;
}

static void prints(const char *before, const char *name, const char *after,
		   const char *want)
{
	FREED char *got = page_line(before, name, after);

	assert_string_equal(got, want);
}

static int reset(void **state)
{
	(void)state;
	sp_lines_set_terminal(0);
	sp_text_set_ascii(false);
	sp_style_set_colours(false);
	return 0;
}

TEST_BETWEEN(names_are_cut_on_a_terminal, NULL, reset)
{
	sp_lines_set_terminal(20);
	prints("12 ", "ns::box::push", " (m)", "12 ns::box::push (m)\n");
	prints("12 ", "ns::abcdefghij::push", " (m)",
	       "12 ns::\u2026::push (m)\n");
	prints("12 ", "ns::box<abcdef>::push", " (m)",
	       "12 ns::\u2026::push (m)\n");
	/* More of the end: that is the method. */
	prints("12 ", "abcdefghijklmnopqrst", " (m)",
	       "12 abcd\u2026mnopqrst (m)\n");
	sp_text_set_ascii(true);
	prints("12 ", "ns::abcdefghij::push", " (m)", "12 ns::...::push (m)\n");
	/* Characters, not bytes. */
	sp_text_set_ascii(false);
	sp_lines_set_terminal(11);
	prints("", "\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4",
	       "  1", "\u00e4\u00e4\u2026\u00e4\u00e4\u00e4\u00e4\u00e4  1\n");
	/* Not below 8 columns: then the line goes on below. */
	sp_lines_set_terminal(9);
	prints("  1 ", "abcdefghijkl", "  22",
	       "  1\n    ab\u2026hijkl\n    22\n");
}

TEST_BETWEEN(every_width, NULL, reset)
{
	const char *name = "std::vector<shop::item>::push_back";

	for (unsigned int columns = 30; columns < 80; columns++) {
		FREED char *got;

		sp_lines_set_terminal(columns);
		got = page_line("  1.00 MiB  12.3%  ", name, "");
		assert_true(sp_lines_bytes(got, columns) >= strcspn(got, "\n"));
	}
}

/* For grep, a name is whole, and its line is one. */
TEST_BETWEEN(names_are_whole_elsewhere, NULL, reset)
{
	char name[200];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (int i = 0; i < 2; i++) {
		FREED char *got = page_line("  1.00 MiB  ", name, "  (app)");

		assert_int_equal(strlen(got), 12 + 199 + 7 + 1);
	}
	sp_lines_set_terminal(40);
	assert_int_equal(sp_lines_columns(), 40);
	assert_true(sp_lines_is_terminal());
	sp_lines_set_terminal(0);
	assert_int_equal(sp_lines_columns(), SP_LINES_WIDTH);
	assert_false(sp_lines_is_terminal());
}

/* What two names on a page differ in is not cut out of both. */
TEST_BETWEEN(cut_names_stay_apart, NULL, reset)
{
	static const char *const want[] = {
		"                             0  handler\u2026"
		"::{lambda()#1}>::invoke(any_data const&)\n"
		"                             0  handler\u2026"
		"::{lambda()#2}>::invoke(any_data const&)\n"
		"                             1  handler\u2026"
		"::{lambda()#1}>::invoke(any_data const&)\n"
		"                             1  handler\u2026"
		"::{lambda()#2}>::invoke(any_data const&)\n",
		"                             0  handl..."
		"::{lambda()#1}>::invoke(any_data const&)\n"
		"                             0  handl..."
		"::{lambda()#2}>::invoke(any_data const&)\n"
		"                             1  handl..."
		"::{lambda()#1}>::invoke(any_data const&)\n"
		"                             1  handl..."
		"::{lambda()#2}>::invoke(any_data const&)\n"};
	char *lines, *got = NULL;
	size_t size, got_size;

	for (int is_screen = 0; is_screen <= 1; is_screen++) {
		FILE *text = open_memstream(&lines, &size);
		FILE *out = open_memstream(&got, &got_size);

		sp_lines_set_terminal(is_screen ? 0 : 80);
		sp_lines_begin_page();
		for (int i = 0; i < 4; i++) {
			fprintf(text, "%30d  ", i / 2);
			sp_lines_print_name(
				text, i % 2 ? "handler<void (), app::run(int)::"
					      "{lambda()#2}>::invoke(any_data "
					      "const&)"
					    : "handler<void (), app::run(int)::"
					      "{lambda()#1}>::invoke(any_data "
					      "const&)");
			fputs("\n", text);
		}
		assert_int_equal(
			(is_screen ? sp_lines_close_screen
				   : sp_lines_close_page)(out, text, &lines),
			0);
		fclose(out);
		assert_string_equal(got, want[is_screen]);
		free(got);
	}
	assert_false(sp_lines_is_terminal());
}

/* Text goes on below; an interval stays together. */
TEST_BETWEEN(text_is_broken, NULL, reset)
{
	sp_lines_set_terminal(30);
	prints("  live  1.00 MiB in 12 objects [1,000, 2,000] at", NULL, " 1 s",
	       "  live  1.00 MiB in 12 objects\n    [1,000, 2,000] at 1 s\n");
	sp_lines_set_terminal(40);
	prints("  live  1.00 MiB in 12 objects [1,000, 2,000] at", NULL, " 1 s",
	       "  live  1.00 MiB in 12 objects\n    [1,000, 2,000] at 1 s\n");
	sp_lines_set_terminal(30);
	prints("  - one, two, three, four, five, six", NULL, "",
	       "  - one, two, three, four,\n    five, six\n");
	prints("\033[1;33mnote:\033[0m one, two, three, four, five", NULL, "",
	       "\033[1;33mnote:\033[0m one, two, three, four,\n"
	       "      five\n");
	/* Colours take no room. */
	prints("\033[1m", NULL, "abcdefghij abcdefghij abcdefgh\033[0m",
	       "\033[1mabcdefghij abcdefghij abcdefgh\033[0m\n");
	prints("\033[2mintervals 95 %, ", NULL, "method p3t, 12 samples\033[0m",
	       "\033[2mintervals 95 %, method p3t,\n"
	       "              12 samples\033[0m\n");
	sp_lines_set_terminal(0);
	prints("a", NULL, "", "a\n");
}

TEST_BETWEEN(hostile_name, NULL, reset)
{
	sp_lines_set_terminal(60);
	prints("", "a\1b\2c\033[31m", "", "a\\x01b\\x02c\\x1b[31m\n");
}

static char *bar(double share)
{
	char *got = NULL;
	size_t size;
	FILE *out = open_memstream(&got, &size);

	sp_style_print_bar(out, share);
	fclose(out);
	return got;
}

static void has_bar(double share, const char *want)
{
	FREED char *got = bar(share);

	assert_string_equal(got, want);
}

TEST_BETWEEN(bar, NULL, reset)
{
	has_bar(0, "      ");
	has_bar(1, "\u2588\u2588\u2588\u2588\u2588\u2588");
	has_bar(1.5, "\u2588\u2588\u2588\u2588\u2588\u2588");
	has_bar(0.5, "\u2588\u2588\u2588   ");
	has_bar(1.0 / 48, "\u258f     ");
	has_bar(0.001, "      ");
	sp_text_set_ascii(true);
	has_bar(0.5, "###   ");
	sp_style_set_colours(true);
	has_bar(0.5, "\033[1;31m###\033[0m   ");
	has_bar(0, "      ");
}

TEST_MAIN(NULL, NULL)
