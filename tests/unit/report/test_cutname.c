/* SPDX-License-Identifier: MIT */
/* Names that are cut: never wider than asked for, and what tells most stays. */
#include "base/rng.h"
#include "report/cutname.h"
#include "support/test.h"

static void check(const char *name, size_t columns, const char *expected)
{
	char *cut = sp_cut_name(name, columns);

	assert_non_null(cut);
	assert_string_equal(cut, expected);
	free(cut);
}

TEST(brackets)
{
	const char *name = "std::map<std::pair<int, long>, Order>::insert";

	check(name, 0, name);
	check(name, 45, name);
	check(name, 44, "std::map<std::pair<...>, Order>::insert");
	check(name, 30, "std::map<...>::insert");
	check(name, 21, "std::map<...>::insert");
	/* operators are no brackets */
	check("ns::operator<(a::b<ccccc> const&)", 31,
	      "ns::operator<(a::b<...> const&)");
}

TEST(scopes)
{
	check("app::model::detail::storage::load", 20, "app::...::load");
	check("app::model::detail::storage::load_everything", 20,
	      "...::load_everything");
	check("a_very_long_namespace::detail::load", 16, "...::load");
}

TEST(characters)
{
	check("parse_configuration_file_of_user", 20, "parse...file_of_user");
	check("a::parse_configuration_file_of_user", 20,
	      "a::pa...file_of_user");
	/* characters, not bytes */
	check("\u00fcberpr\u00fcfe_die_l\u00e4nge_\u00fcberall", 18,
	      "\u00fcberp...ge_\u00fcberall");
	/* never less than this */
	check("parse_configuration", 1, "par...ration");
}

static size_t columns_of(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

TEST(anything)
{
	static const char *const words[] = {
		"std", "::", "<", ">",  "(",      ")", "operator", "<<",
		"->",  "{",  "}", "ab", "\u00fc", ".", "...",      "[x]"};
	struct sp_rng rng;
	char text[300];

	sp_rng_init(&rng, 7, 0);
	for (int i = 0; i < 100000; i++) {
		const size_t columns = SP_CUT_NAME_MIN + sp_rng_next(&rng) % 40;
		size_t n = sp_rng_next(&rng) % 40;
		char *cut;

		*text = '\0';
		while (n--)
			strcat(text, words[sp_rng_next(&rng) %
					   (sizeof(words) / sizeof(*words))]);
		cut = sp_cut_name(text, columns);
		assert_non_null(cut);
		assert_true(columns_of(cut) <= columns);
		if (columns_of(text) <= columns)
			assert_string_equal(cut, text);
		free(cut);
	}
}

/* Untrusted text is escaped before it is cut. */
TEST(print)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	sp_cut_name_print(out, "evil\033[2Jname", 14);
	putc('|', out);
	sp_cut_name_print(out, "evil\033[2J", 0);
	fclose(out);
	assert_string_equal(text, "evi...b[2Jname|evil\\x1b[2J");
	free(text);
}

TEST_MAIN(NULL, NULL)
