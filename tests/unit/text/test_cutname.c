/* SPDX-License-Identifier: MIT */
/* Names that are cut: never wider than asked for, and what tells most stays. */
#include <stdbool.h>
#include <string.h>

#include "base/rng.h"
#include "text/cutname.h"
#include "support/test.h"

static void check(const char *name, size_t columns, const char *expected)
{
	FREED char *cut = sp_cut_name(name, columns, SP_CUT_ASCII);

	assert_non_null(cut);
	assert_string_equal(cut, expected);
}

TEST(brackets)
{
	const char *name = "std::map<std::pair<int, long>, Order>::insert";
	const char *table = "hash_table<default_hash_traits<tree_node const*>, "
			    "false, xcallocator>::expand()";

	check(name, 45, name);
	check(name, 44, "std::map<std::pair<...>, Order>::insert");
	check(name, 30, "std::map<...>::insert");
	check(name, 21, "std::map<...>::insert");
	check(table, 75,
	      "hash_table<default_hash_traits<...>, false, xcallocator>"
	      "::expand()");
	check(table, 40, "hash_table<...>::expand()");
	check(table, 20, "hash_ta...::expand()");
	/* operators are no brackets, nor are names that end like them */
	check("ns::operator<(a::b<ccccc> const&)", 31,
	      "ns::operator<(a::b<...> const&)");
	check("cooperator<a::b, c::d>::run", 20, "cooperator<...>::run");
	/* several functions of a path */
	check("get<a::b, c::d> < put<a::b, c::d> < main", 35,
	      "get<...> < put<...> < main");
	/* one without the other is no bracket */
	check("first > std::map<int, long>::insert", 30,
	      "first > std::map<...>::insert");
	check("std::map<int, long>::insert(first", 30,
	      "std::map<...>::insert(first");
}

/* Who has called goes before the function does. */
TEST(paths)
{
	const char *path = "get<a> < put<b> < operator<< < ns::run < main";

	check(path, 45, path);
	check(path, 44, "get<a> < put<b> < operator<< < ns::run < ...");
	check(path, 43, "get<a> < put<b> < operator<< < ...");
	check(path, 21, "get<a> < put<b> < ...");
	check(path, 20, "get<a> < ...");
	check("fill_every_table_of_the_program < main", 24,
	      "fill_...he_program < ...");
}

/* ---- names that stand together ---- */

/* What is shown of them, each after a line feed. */
static char *apart(const char *const *names, size_t n, size_t columns)
{
	struct sp_cut cuts[8] = {{0}};
	char *text = calloc(1, 2000);

	assert_non_null(text);
	for (size_t i = 0; i < n; i++)
		cuts[i] = (struct sp_cut){
			.name = names[i],
			.columns = columns,
			.text = strlen(names[i]) > columns
					? sp_cut_name(names[i], columns,
						      SP_CUT_ASCII)
					: NULL};
	sp_cut_apart(cuts, n, SP_CUT_ASCII);
	for (size_t i = 0; i < n; i++) {
		strcat(text, "\n");
		strcat(text, cuts[i].text ? cuts[i].text : names[i]);
		free(cuts[i].text);
	}
	return text;
}

#define APART(columns, expected, ...)                                          \
	do {                                                                   \
		const char *const names[] = {__VA_ARGS__};                     \
		char *text =                                                   \
			apart(names, sizeof(names) / sizeof(*names), columns); \
                                                                               \
		assert_string_equal(text, expected);                           \
		free(text);                                                    \
	} while (0)

/* Two are never shown as one. */
TEST(apart)
{
	APART(48,
	      "\nvoid std::...::{lambda()#1}>::_M_invoke(...)"
	      "\nvoid std::...::{lambda()#2}>::_M_invoke(...)",
	      "void std::_Function_handler<void (), app::run(int)::{lambda()"
	      "#1}>::_M_invoke(std::_Any_data const&)",
	      "void std::_Function_handler<void (), app::run(int)::{lambda()"
	      "#2}>::_M_invoke(std::_Any_data const&)");
	APART(40,
	      "\nhandler<run()::{lambda#1}>::call < ..."
	      "\nhandler<run()::{lambda#2}>::call < ...",
	      "handler<run()::{lambda#1}>::call < dispatch < work < main",
	      "handler<run()::{lambda#2}>::call < dispatch < work < main");
	/* the same one again is the same */
	APART(26, "\nstd::map<...>::insert(x)\nstd::map<...>::insert(x)",
	      "std::map<int, a>::insert(x)", "std::map<int, a>::insert(x)");
	/* each shows where it differs from the one that is most like it, or
	 * from all if there is room for that */
	APART(30,
	      "\nstd...::insert(an_index)::find"
	      "\nstd:...::insert(an_item)::find"
	      "\n...<int, b>::insert(...)::find",
	      "std::map<int, a>::insert(an_index)::find",
	      "std::map<int, a>::insert(an_item)::find",
	      "std::map<int, b>::insert(an_item)::find");
	APART(36,
	      "\n...p<int, a>::insert(an_index)::find"
	      "\n...ap<int, a>::insert(an_item)::find"
	      "\n...ap<int, b>::insert(an_item)::find"
	      "\n...p<int, b>::insert(an_index)::find",
	      "std::map<int, a>::insert(an_index)::find",
	      "std::map<int, a>::insert(an_item)::find",
	      "std::map<int, b>::insert(an_item)::find",
	      "std::map<int, b>::insert(an_index)::find");
	APART(30,
	      "\n...a>::insert(an_index)::find"
	      "\n...a>::insert(an_item)::find"
	      "\n...b>::insert(an_item)::find"
	      "\n...b>::insert(an_index)::find",
	      "std::map<int, a>::insert(an_index)::find",
	      "std::map<int, a>::insert(an_item)::find",
	      "std::map<int, b>::insert(an_item)::find",
	      "std::map<int, b>::insert(an_index)::find");
	/* a name that others begin with */
	APART(26, "\na_very_...tion_with_a_name\na_very_...s_on_with_a_name",
	      "a_very_long_function_with_a_name",
	      "a_very_long_function_with_a_name_that_goes_on_with_a_name");
	/* no room for where they differ, or for a number either */
	APART(15, "\npa...s_file [2]\npa...s_file [1]",
	      "parse_one_configuration_of_this_file",
	      "parse_another_configuration_of_this_file");
	APART(11,
	      "\nparse_one_configuration_file\nparse_two_configuration_file",
	      "parse_one_configuration_file", "parse_two_configuration_file");
}

TEST(unnamed)
{
	/* the module alone is cut, while there is room for both */
	check("libclang-cpp.so.14![unknown]", 28,
	      "libclang-cpp.so.14![unknown]");
	check("libclang-cpp.so.14![unknown]", 24, "lib...pp.so.14![unknown]");
	check("libclang-cpp.so.14![unknown]", 18, "l...o.14![unknown]");
	check("libclang-cpp.so.14![unknown]", 17, "libc...o.14![...]");
}

TEST(scopes)
{
	const char *name = "app::model::detail::storage::load";

	check(name, 32, "app::...::detail::storage::load");
	check(name, 24, "app::...::storage::load");
	check(name, 20, "app::...::load");
	check("app::model::detail::storage::load_everything", 20,
	      "...::load_everything");
	check("a_very_long_namespace::detail::load", 17, "...::detail::load");
	check("a_very_long_namespace::detail::load", 16, "a_very_...::load");
}

TEST(characters)
{
	check("parse_configuration_file_of_user", 20, "parse...file_of_user");
	check("a::parse_configuration_file_of_user", 20,
	      "a::pa...file_of_user");
	/* characters, not bytes */
	check("\u00fcberpr\u00fcfe_die_l\u00e4nge_\u00fcberall", 18,
	      "\u00fcberp...ge_\u00fcberall");
	/* a bracket goes as a whole */
	check("abc<x>defghijklmnopqrst", 20, "abc...ijklmnopqrst");
	check("abcdefghijklmn<...>pqr", 20, "abcde...klmn<...>pqr");
	check("abcdefghijklmn(...)pqr", 12, "abc...pqr");
	/* never less than this */
	check("parse_configuration", 1, "p...tion");
}

TEST(dots)
{
	char *cut = sp_cut_name("std::map<int, int>::insert", 20, SP_CUT_UTF8);

	assert_string_equal(cut, "std::map<\u2026>::insert");
	free(cut);
	cut = sp_cut_name("parse_configuration", 10, SP_CUT_UTF8);
	assert_string_equal(cut, "par\u2026ration");
	free(cut);
}

static size_t columns_of(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

/* As people read them, of what has neither operators nor arrows. */
static bool has_matching_brackets(const char *text)
{
	int depth = 0;

	for (; *text && depth >= 0; text++)
		depth += (strchr("([{<", *text) != NULL) -
			 (strchr(")]}>", *text) != NULL);
	return depth == 0;
}

static void check_any(const char *text, size_t columns, enum sp_cut_dots dots)
{
	FREED char *cut = sp_cut_name(text, columns, dots);

	assert_non_null(cut);
	assert_true(columns_of(cut) <= columns);
	if (columns_of(text) <= columns)
		assert_string_equal(cut, text);
	if (!strstr(text, "operator") && !strstr(text, "->") &&
	    has_matching_brackets(text) && !has_matching_brackets(cut))
		fail_msg("%s in %zu: %s", text, columns, cut);
}

TEST(anything)
{
	static const char *const words[] = {
		"std", "::", "<", ">",  "(",      ")", "operator", "<<",
		"->",  "{",  "}", "ab", "\u00fc", ".", "...",      "[x]"};
	const unsigned int rounds = rounds_of(100000);
	struct sp_rng rng;
	char text[300];

	sp_rng_init(&rng, 7, 0);
	for (unsigned int i = 0; i < rounds; i++) {
		const size_t columns = SP_CUT_NAME_MIN + sp_rng_next(&rng) % 40;
		size_t n = sp_rng_next(&rng) % 40;

		*text = '\0';
		while (n--)
			strcat(text, words[sp_rng_next(&rng) %
					   (sizeof(words) / sizeof(*words))]);
		check_any(text, columns, i % 2 ? SP_CUT_ASCII : SP_CUT_UTF8);
	}
}

/* Of names that share most of their parts, at any width: each text is of one
 * name, and as wide as is allowed, or all of its name. */
TEST(anything_apart)
{
	static const char *const words[] = {"std",         "::",    "<a, b>",
					    "(c)",         "ab",    " < ",
					    "a_long_word", "\u00fc"};
	const unsigned int rounds = rounds_of(20000);
	unsigned int cut = 0;
	struct sp_rng rng;
	char names[8][200];

	sp_rng_init(&rng, 9, 0);
	for (unsigned int i = 0; i < rounds; i++) {
		const enum sp_cut_dots dots =
			i % 2 ? SP_CUT_ASCII : SP_CUT_UTF8;
		const size_t columns = 8 + sp_rng_next(&rng) % 60;
		struct sp_cut cuts[8];

		for (size_t k = 0; k < 8; k++) {
			size_t n = 4 + sp_rng_next(&rng) % 20;

			for (strcpy(names[k], "f"); n--;)
				strcat(names[k], words[sp_rng_next(&rng) % 8]);
			/* of one that is there, one place is another */
			if (k && sp_rng_next(&rng) % 4) {
				strcpy(names[k], names[sp_rng_next(&rng) % k]);
				names[k][sp_rng_next(&rng) %
					 strcspn(names[k], "\xc3")] = '1';
			}
			cuts[k] = (struct sp_cut){
				.name = names[k],
				.columns = columns,
				.text = sp_cut_name(names[k], columns, dots)};
		}
		sp_cut_apart(cuts, 8, dots);
		for (size_t k = 0; k < 8; k++) {
			const char *text =
				cuts[k].text ? cuts[k].text : names[k];

			assert_true(!cuts[k].text ||
				    columns_of(text) <= columns);
			assert_true(columns_of(text) <= columns ||
				    columns < SP_CUT_NAME_MIN + 4);
			cut += strcmp(text, names[k]) != 0;
			for (size_t j = 0; j < k; j++)
				if (strcmp(names[j], names[k]) &&
				    !strcmp(text, cuts[j].text ? cuts[j].text
							       : names[j]))
					fail_msg("%s: %s and %s", text,
						 names[j], names[k]);
		}
		for (size_t k = 0; k < 8; k++)
			free(cuts[k].text);
	}
	assert_true(cut > rounds);
}

/* Names with brackets that match: they still do at any width. */
TEST(brackets_still_match)
{
	static const char *const words[] = {"std",    "::", "ab",
					    "\u00fc", ", ", "a_long_word"};
	static const char *const pairs[] = {"<>", "()", "{}"};
	const unsigned int rounds = rounds_of(100000);
	struct sp_rng rng;
	char text[400], open[40];

	sp_rng_init(&rng, 8, 0);
	for (unsigned int i = 0; i < rounds; i++) {
		const size_t columns = SP_CUT_NAME_MIN + sp_rng_next(&rng) % 40;
		size_t n = sp_rng_next(&rng) % 30, n_open = 0;

		for (*text = '\0'; n || n_open; n -= n > 0) {
			const uint64_t dice = n ? sp_rng_next(&rng) % 10 : 0;
			const char *pair = pairs[sp_rng_next(&rng) % 3];

			if (dice < 3 && n_open)
				strncat(text, &open[--n_open], 1);
			else if (dice < 6 && n) {
				strncat(text, pair, 1);
				open[n_open++] = pair[1];
			} else {
				strcat(text,
				       words[sp_rng_next(&rng) %
					     (sizeof(words) / sizeof(*words))]);
			}
		}
		assert_true(has_matching_brackets(text));
		check_any(text, columns, i % 2 ? SP_CUT_ASCII : SP_CUT_UTF8);
	}
}

TEST_MAIN(NULL, NULL)
