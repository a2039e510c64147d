/* SPDX-License-Identifier: MIT */
/* Which name a mistyped word was meant to be. */
#include "cli/commands.h"
#include "cli/nearest.h"
#include "support/test.h"

/* Among "report", "symbolize", "diff", "ps", "size", "sizes". */
static void is_near(const char *word, const char *want)
{
	static const char *const names[] = {"report", "symbolize", "diff",
					    "ps",     "size",      "sizes"};
	struct sp_nearest nearest;

	sp_nearest_init(&nearest, word);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		sp_nearest_try(&nearest, names[i]);
	if (!want)
		assert_null(sp_nearest_name(&nearest));
	else if (!sp_nearest_name(&nearest))
		fail_msg("nothing is near \"%s\", want \"%s\"", word, want);
	else
		assert_string_equal(sp_nearest_name(&nearest), want);
}

TEST(distance)
{
	is_near("report", "report");
	is_near("reprot", "report");   /* swapped */
	is_near("repotr", "report");   /* swapped */
	is_near("eprort", "report");   /* swapped across one: two steps */
	is_near("epott", "report");    /* a letter missing, another wrong */
	is_near("rreportt", "report"); /* two too many */
	is_near("erpotr", "report");   /* twice swapped */
	is_near("xyport", "report");   /* two others */
	is_near("xyzort", NULL);       /* three others */
	is_near("diffffff", NULL);
	is_near("siez", "size");
	is_near("Reprot", "report");
	is_near("sizess", "sizes");
}

TEST(prefix)
{
	is_near("sym", "symbolize");
	is_near("rep", "report");
	/* Two begin so, and none is nearer by distance than the other. */
	is_near("s", NULL);
}

/* Nothing is known of a word in which half of the letters are wrong. */
TEST(short)
{
	is_near("ls", "ps");
	is_near("daff", "diff");
	is_near("dabf", NULL);
	is_near("fof", NULL);
	is_near("x", NULL);
	is_near("ab", NULL);
	is_near("", NULL);
}

TEST(long)
{
	is_near("a-word-that-is-longer-than-all-names-that-there-are", NULL);
}

TEST(commands)
{
	assert_string_equal(sp_command_nearest("hlep"), "help");
	assert_string_equal(sp_command_nearest("export-"), "export");
	assert_null(sp_command_nearest("frobnicate"));
	assert_null(sp_command_nearest("foo")); /* "top" has one letter of it */
	assert_non_null(sp_command_find("run"));
	assert_null(sp_command_find("ru"));
	assert_string_equal(sp_command_program("/usr/bin/sampleprof"),
			    "sampleprof");
	assert_string_equal(sp_command_program("sampleprof-lab"),
			    "sampleprof-lab");
	assert_string_equal(sp_command_program("./report"),
			    "sampleprof-report");
	assert_null(sp_command_implied("sampleprof"));
	assert_string_equal(sp_command_implied("sampleprof-report"), "report");
}

TEST_MAIN(NULL, NULL)
