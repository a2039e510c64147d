/* SPDX-License-Identifier: MIT */
/* What is said of a profile that lacks something: each fact has its words, and
 * none is said of another. */
#include "support/test.h"
#include "text/lack.h"

static void assert_said(const struct sp_whole *w, const char *words)
{
	FREED char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	sp_lack_print(out, w);
	fclose(out);
	assert_string_equal(text, words);
}

TEST(why)
{
	static const struct {
		struct sp_whole whole;
		const char *why;
	} cases[] = {
		{{.is_turned = true}, NULL},
		{{.is_cut = true, .is_damaged = true, .is_full = true},
		 "the file is cut short"},
		{{.is_damaged = true, .is_full = true}, "the file is damaged"},
		{{.is_full = true, .is_starved = true, .lacks_frees = true},
		 "the file or its disk was full"},
		{{.is_full = true, .is_low = true}, "its disk was nearly full"},
		{{.is_low = true, .is_starved = true}, "samples were lost"},
		{{.is_starved = true, .lacks_frees = true},
		 "samples and frees were lost"},
		{{.lacks_frees = true}, "frees were lost"},
	};

	assert_null(sp_lack_why(&cases[0].whole));
	for (size_t i = 1; i < sizeof(cases) / sizeof(*cases); i++)
		assert_string_equal(sp_lack_why(&cases[i].whole), cases[i].why);
}

TEST(known_until)
{
	struct sp_whole w = {.is_starved = true, .known_ns = SP_NEVER};

	assert_said(&w, "samples were lost: figures are lower limits");
	w = (struct sp_whole){.lacks_frees = true};
	assert_said(&w, "frees were lost: what was alive is not known");
	w = (struct sp_whole){.is_cut = true, .known_ns = 2900000000};
	assert_said(
		&w,
		"the file is cut short: what was alive is known until 2.900 s");
	w.n_parts = w.n_lacking = 1;
	assert_said(
		&w,
		"the file is cut short: what was alive is known until 2.900 s");
}

TEST(several)
{
	struct sp_whole w = {.is_cut = true,
			     .known_ns = 7,
			     .n_parts = 3,
			     .n_lacking = 1,
			     .n_cut = 1,
			     .has_rest = true};

	assert_said(&w,
		    "1 of 3 processes is not known to the end (its file is cut "
		    "short): live bytes are at least those of the others");
	w.n_lacking = 2;
	assert_said(&w, "2 of 3 processes are not known to the end (files are "
			"cut short or damaged, were full, or lost frees): live "
			"bytes are at least those of the others");
	w.n_cut = 0;
	assert_said(&w, "2 of 3 processes are not known to the end (files are "
			"damaged, were full, or lost frees): live bytes are at "
			"least those of the others");
	w.n_cut = w.n_lacking = 3;
	w.has_rest = false;
	assert_said(&w, "3 of 3 processes are not known to the end (the files "
			"are cut short)");
}

TEST(words)
{
	static const struct {
		enum sp_profile_end end;
		uint64_t kind;
		const char *word;
	} cases[] = {
		{SP_PROFILE_END_CLEAN, SP_END_CLEAN, "clean"},
		{SP_PROFILE_END_EXEC, SP_END_EXEC, "exec"},
		{SP_PROFILE_END_RUNNING, 0, "running"},
		{SP_PROFILE_END_DETACHED, 0, "detached"},
		{SP_PROFILE_END_KILLED, 0, "killed?"},
		{SP_PROFILE_END_KILLED, SP_END_NO_MEMORY, "oom"},
		{SP_PROFILE_END_KILLED, SP_END_EXIT, "_exit"},
		{SP_PROFILE_END_KILLED, SP_END_SIGNAL, "killed?"},
		{SP_PROFILE_END_KILLED, SP_END_SIGNAL + 1, "sig1"},
		{SP_PROFILE_END_KILLED, SP_END_SIGNAL + 64, "sig64"},
		{SP_PROFILE_END_KILLED, SP_END_SIGNAL + 65, "killed?"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_string_equal(
			sp_lack_word(cases[i].end, cases[i].kind, false).text,
			cases[i].word);
		assert_string_equal(
			sp_lack_word(cases[i].end, cases[i].kind, true).text,
			"cut");
	}
}

/* Nobody saw its end, and it could not say so. */
TEST(end_on_a_low_disk)
{
	struct sp_profile p = {.end = SP_PROFILE_END_KILLED};

	p.losses[SP_LOSS_PAGE] = 1;
	assert_string_equal(
		sp_lack_end_of(&p).text,
		"how it ended is not known: its disk was nearly full");
	p.end_kind = SP_END_SIGNAL + 9;
	assert_string_equal(sp_lack_end_of(&p).text, "was killed by signal 9");
	p.end = SP_PROFILE_END_CLEAN;
	assert_string_equal(sp_lack_end_of(&p).text, "ended cleanly");
}

static struct sp_lack_line end_of(size_t n_parts, bool first, bool second)
{
	struct sp_part parts[2] = {{.is_cut = first}, {.is_cut = second}};
	const struct sp_profile p = {.end = SP_PROFILE_END_KILLED,
				     .end_kind = SP_END_SIGNAL + 9,
				     .is_cut = first || second,
				     .parts = parts,
				     .n_parts = n_parts};

	return sp_lack_end_of(&p);
}

TEST(end_of_several)
{
	assert_string_equal(end_of(2, false, false).text,
			    "was killed by signal 9");
	assert_string_equal(
		end_of(2, false, true).text,
		"was killed by signal 9; 1 of 2 files is cut short");
	assert_string_equal(
		end_of(2, true, true).text,
		"was killed by signal 9; 2 of 2 files are cut short");
	assert_string_equal(
		end_of(1, true, false).text,
		"the file is cut short; the process was killed by signal 9");
}

TEST(json)
{
	static const struct {
		struct sp_whole whole;
		const char *words;
	} cases[] = {
		{{.known_ns = SP_NEVER},
		 "\"is_whole\": true, \"why_not\": null"},
		{{.is_cut = true, .is_damaged = true}, "\"cut\": true"},
		{{.is_damaged = true}, "\"cut\": false, \"damaged\": true"},
		{{.is_full = true}, "\"full\": true"},
		{{.is_starved = true},
		 "\"is_whole\": false, \"why_not\": \"samples were lost\""},
		{{.is_starved = true}, "\"lost_samples\": true"},
		{{.lacks_frees = true}, "\"lost_frees\": true"},
		{{.is_turned = true}, "\"discarded\": true"},
		{{.known_ns = 7}, "\"live_known_until_ns\": 7"},
		{{.known_ns = SP_NEVER}, "\"live_known_until_ns\": null"},
		{{.n_parts = 3, .n_lacking = 2},
		 "\"processes\": 3, \"processes_lacking\": 2"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct sp_json json = {.is_first = true};
		FREED char *text = NULL;
		size_t size;

		json.out = open_memstream(&text, &size);
		sp_lack_json(&json, &cases[i].whole);
		fclose(json.out);
		if (!strstr(text, cases[i].words))
			fail_msg("%s is not in %s", cases[i].words, text);
	}
}

TEST_MAIN(NULL, NULL)
