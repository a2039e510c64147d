/* SPDX-License-Identifier: MIT */
/*
 * Profiles of every version, cut at thousands of offsets, as they are and
 * packed: each is refused, or said to be cut; nothing of it is called exact,
 * clean or complete, and no interval has an end above.
 */
#include <math.h>

#include "model/whole.h"
#include "read/reader.h"
#include "report/analysis.h"
#include "support/memfile.h"
#include "support/test.h"
#include "support/load_profile.h"
#include "text/lack.h"
#include "view/view.h"

#define GOLDEN SP_TESTS_DIR "/format/golden/"
#define LENGTH (1u << 20) /* max_file_bytes of those that are not packed */

static struct memfile file;

static int open_file(void **state)
{
	(void)state;
	memfile_open(&file);
	return 0;
}

static int close_file(void **state)
{
	(void)state;
	memfile_close(&file);
	return 0;
}

/* All that is said of it, but for rows. */
static void check_text(const struct sp_analysis *a)
{
	static const char *const lies[] = {", exact",  "exact in", "cleanly",
					   "complete", "nan",      " inf",
					   "-0 "};
	FREED char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	sp_view_summary_print_header(out, a);
	sp_view_summary_print_view(out, a);
	sp_view_notes_print_completeness(out, a->profile);
	fclose(out);
	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++)
		if (strstr(text, lies[i]))
			fail_msg("\"%s\" in: %s", lies[i], text);
	assert_non_null(strstr(text, "the file is cut short"));
}

static void check_profile(const struct sp_profile *p)
{
	const struct sp_whole whole = sp_whole_of(p);
	struct sp_question question;
	struct sp_analysis *a;
	struct sp_error err;

	assert_true(whole.is_cut && !sp_whole_is_all(&whole));
	assert_true(sp_whole_is_unknown_at(&whole, SP_NEVER));
	assert_false(sp_profile_is_exact(p));
	assert_string_equal(sp_lack_word(p->end, p->end_kind, p->is_cut).text,
			    "cut");
	sp_question_init(&question);
	if (sp_analysis_new(p, &question, SP_VIEW_ALLOC, &a, &err) < 0)
		fail_msg("%s", err.message);
	assert_true(isinf(sp_estimate_bytes(&a->how, &a->view->all).hi));
	assert_true(isinf(sp_estimate_objects(&a->how, &a->view->all).hi));
	if (a->live) {
		const struct sp_interval live =
			sp_estimate_bytes(&a->how, &a->live->all);

		assert_true(live.lo == 0 && isinf(live.hi));
		assert_true(isinf(a->peak.bytes.hi));
	}
	check_text(a);
	sp_analysis_free(a);
}

/* False: it was refused. */
static bool check_cut(uint64_t bytes)
{
	struct sp_profile *p;
	struct sp_error err = {.message = ""};

	memfile_resize(&file, bytes);
	if (sp_profile_load(file.path, NULL, NULL, &p, &err) < 0) {
		assert_true(*err.message);
		return false;
	}
	check_profile(p);
	sp_profile_free(p);
	return true;
}

/* How much of the file its reader takes for all of it. */
static uint64_t whole_bytes(const char *path, uint64_t length)
{
	struct sp_reader *reader = calloc(1, sizeof(*reader));
	struct sp_profile *p;
	struct sp_error err;
	uint64_t bytes = memfile_copy(&file, path);

	if (length)
		memfile_resize(&file, bytes = length);
	p = load_profile(file.path);
	assert_false(p->is_cut);
	assert_int_equal(sp_reader_open(reader, file.path, &err), 0);
	if (length && reader->status.end_kind == SP_END_CLEAN)
		bytes = reader->status.chunks * SP_FORMAT_CHUNK_BYTES;
	sp_reader_close(reader);
	free(reader);
	return bytes;
}

/* From the end to the beginning, so that a cut is never undone. */
static void cut_often(const char *name, uint64_t length, uint64_t step)
{
	char path[256];
	uint64_t bytes, tried = 0, read = 0;

	snprintf(path, sizeof(path), GOLDEN "%s", name);
	bytes = whole_bytes(path, length);
	for (; bytes > step; tried++) {
		bytes -= tried < 3 ? 1 : step;
		read += check_cut(bytes);
	}
	assert_true(tried > 10 && read > 0);
}

TEST(as_they_are)
{
	static const char *const names[] = {
		"v1/clean.sprof",          "v1/killed.sprof",
		"v1-live/exit.sprof",      "v1-live/killed.sprof",
		"v1-addresses/exit.sprof", "v1-segments/bounded.sprof",
		"v1-segments/whole.sprof"};

	/* Primes, so that every place within a record comes. */
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		cut_often(names[i], LENGTH, test_rounds(8161, 2039));
}

TEST(beside_every_border)
{
	const uint64_t bytes = whole_bytes(GOLDEN "v1-live/exit.sprof", LENGTH);

	const uint64_t step = test_rounds(4, 1) * 4096u;

	for (uint64_t at = bytes; at >= step; at -= step)
		for (uint64_t before = 1; before <= 129; before += 64)
			check_cut(at - before);
}

TEST(packed)
{
	static const char *const names[] = {
		"v1-packed/v1-live-exit.sprof.zst",
		"v1-packed/v1-clean.sprof.zst",
		"v1-packed/v1-addresses-exit.sprof.zst",
		"v1-packed/v1-segments-bounded.sprof.zst"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		cut_often(names[i], 0, test_rounds(11, 3));
}

static void check_several(size_t n_cut, const char *text)
{
	struct sp_part parts[3] = {{.is_cut = n_cut > 0},
				   {.is_cut = n_cut > 1},
				   {.is_cut = n_cut > 2}};
	const struct sp_profile p = {.end = SP_PROFILE_END_CLEAN,
				     .parts = parts,
				     .n_parts = 3,
				     .is_cut = true};

	assert_string_equal(sp_lack_end_of(&p).text, text);
}

/* What the file knows of the end is said, and what it does not know is not. */
TEST(how_it_ended)
{
	static const struct {
		enum sp_profile_end end;
		uint64_t end_kind;
		const char *text;
	} ends[] = {
		{SP_PROFILE_END_KILLED, SP_END_SIGNAL + 9,
		 "the file is cut short; the process was killed by signal 9"},
		{SP_PROFILE_END_KILLED, SP_END_NO_MEMORY,
		 "the file is cut short; the process was killed by the "
		 "kernel's OOM killer"},
		{SP_PROFILE_END_KILLED, SP_END_EXIT,
		 "the file is cut short; the process ended by _exit()"},
		{SP_PROFILE_END_KILLED, 0, "the file is cut short"},
		{SP_PROFILE_END_CLEAN, SP_END_CLEAN,
		 "the file is cut short; the process ended by exit()"},
		{SP_PROFILE_END_EXEC, SP_END_EXEC,
		 "the file is cut short; the process ended as it executed "
		 "another program"},
		{SP_PROFILE_END_RUNNING, 0,
		 "the file is cut short; the process is still running"},
		{SP_PROFILE_END_DETACHED, SP_END_CLEAN,
		 "the file is cut short; the process went on after it was "
		 "detached"},
	};

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		const struct sp_profile p = {.end = ends[i].end,
					     .end_kind = ends[i].end_kind,
					     .n_parts = 1,
					     .is_cut = true};

		assert_string_equal(sp_lack_end_of(&p).text, ends[i].text);
	}
	check_several(1, "ended by exit(); 1 of 3 files is cut short");
	check_several(2, "ended by exit(); 2 of 3 files are cut short");
}

TEST_MAIN(open_file, close_file)
