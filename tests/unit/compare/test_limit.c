/* SPDX-License-Identifier: MIT */
/* Limits: what they say, what is refused with which words, files of them. */
#include <errno.h>

#include "compare/limit.h"
#include "support/close.h"
#include "support/memfile.h"
#include "support/test.h"
#include "support/text_checks.h"

static struct sp_error error;

static void good(struct sp_limits *limits, const char *text)
{
	*limits = (struct sp_limits){0};
	if (sp_limits_add(limits, text, &error) != 0)
		fail_msg("%s: %s", text, error.message);
	assert_int_equal(limits->n, 1);
}

static void refused(const char *text, const char *message)
{
	FREED_BY(sp_limits_done) struct sp_limits limits = {0};

	assert_int_equal(sp_limits_add(&limits, text, &error), -EINVAL);
	assert_has(error.message, message);
	assert_int_equal(limits.n, 0);
}

TEST(bounds)
{
	static const struct {
		const char *text;
		double growth, amount, cap;
		bool is_cap, both;
	} cases[] = {
		{"alloc_bytes=+3%", 0.03, 0, 0, false, false},
		{" alloc_bytes = +3.125% ", 0.03125, 0, 0, false, false},
		{"alloc_bytes=+64K", 0, 65536, 0, false, false},
		{"alloc_objects=+3%&1000", 0.03, 1000, 0, false, false},
		{"peak_bytes=+3%&64KiB", 0.03, 65536, 0, false, false},
		{"live_bytes=+-3%", 0.03, 0, 0, false, true},
		{"temporary_bytes=24M", 0, 0, 24 << 20, true, false},
		{"leak_rate=10K", 0, 0, 10 << 10, true, false},
		{"alloc_objects=1000", 0, 0, 1000, true, false},
		{"sites=+0%", 0, 0, 0, false, false},
	};
	struct sp_limits limits;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct sp_limit *l;

		good(&limits, cases[i].text);
		l = &limits.at[0];
		assert_close(l->allowance.growth, cases[i].growth, 1e-12);
		assert_close(l->allowance.amount, cases[i].amount, 1e-12);
		assert_close(l->cap, cases[i].cap, 1e-12);
		assert_int_equal(l->is_cap, cases[i].is_cap);
		assert_int_equal(l->both_ways, cases[i].both);
		sp_limits_done(&limits);
	}
}

TEST(names)
{
	struct sp_limits limits;

	good(&limits, "site(^json_=a@b$)=+5%");
	assert_int_equal(limits.at[0].kind, SP_LIMIT_SITE);
	assert_non_null(limits.at[0].pattern);
	assert_null(limits.at[0].phase);
	assert_int_equal(
		sp_pattern_search(limits.at[0].pattern, "json_=a@b", &error),
		1);
	sp_limits_done(&limits);
	good(&limits, "alloc_objects@load=+5%");
	assert_int_equal(limits.at[0].kind, SP_LIMIT_ALLOC_OBJECTS);
	assert_string_equal(limits.at[0].phase, "load");
	sp_limits_done(&limits);
	good(&limits, "site(a@b)@load=+3%");
	assert_string_equal(limits.at[0].phase, "load");
	sp_limits_done(&limits);
	good(&limits, "sites@load=+3%");
	assert_string_equal(limits.at[0].phase, "load");
	sp_limits_done(&limits);
	good(&limits, "alloc_bytes@a phase=+5%");
	assert_int_equal(limits.at[0].kind, SP_LIMIT_ALLOC_BYTES);
	assert_string_equal(limits.at[0].phase, "a phase");
	assert_string_equal(limits.at[0].text, "alloc_bytes@a phase=+5%");
	sp_limits_done(&limits);
}

TEST(refusals)
{
	refused("alloc_bytes", "has no '='");
	refused("", "has no '='");
	refused("=", "does not begin with one of alloc_bytes");
	refused("alloc=+3%", "does not begin with one of alloc_bytes");
	refused("alloc_bytes(x)=+3%", "does not begin with one of");
	refused("site=+3%", "does not begin with one of");
	refused("site(x=+3%", "no ')'");
	refused("site((=+3%", "no ')'");
	refused("site(a[)=+3%", "the limit's pattern");
	refused("alloc_bytes=", "is not valid: give +3%");
	refused("alloc_bytes=3%", "is not valid: give +3%");
	refused("alloc_bytes=-3%", "is not valid: give +3%");
	refused("alloc_bytes=+", "is not valid: give +3%");
	refused("alloc_bytes=+%", "is not valid: give +3%");
	refused("alloc_bytes=+3%&", "is not valid: give +3%");
	refused("alloc_bytes=+3%&4%", "is not valid: give +3%");
	refused("alloc_bytes=+64K&3%", "is not valid: give +3%");
	refused("alloc_bytes=+1e3", "is not valid: give +3%");
	refused("alloc_objects=+1K", "is not valid: give +3%");
	refused("alloc_bytes=+-100%", "nothing can shrink");
	refused("sites=24M", "sites are compared");
	refused("live_bytes@load=+3%", "only allocations have phases");
	refused("leak_rate=+3%", "at most 10 KiB");
	refused("leak_rate@load=3K", "only allocations have phases");
	refused("peak_bytes@load=+3%", "only allocations have phases");
}

static void put(struct memfile *file, const char *text)
{
	memfile_resize(file, 0);
	memfile_write(file, 0, text, strlen(text));
}

TEST(files)
{
	struct sp_limits limits = {0};
	struct memfile file;

	memfile_open(&file);
	put(&file, "# limits of app\n\n  alloc_bytes = +3%  # exact\r\n"
		   "site(a#b)=+1%\n\t# indented\npeak_bytes=24M");
	assert_int_equal(sp_limits_read(&limits, file.path, &error), 0);
	assert_int_equal(limits.n, 3);
	assert_string_equal(limits.at[0].text, "alloc_bytes = +3%");
	assert_string_equal(limits.at[1].text, "site(a#b)=+1%");
	assert_int_equal(limits.at[0].line, 3);
	assert_int_equal(limits.at[2].line, 6);
	assert_ptr_equal(limits.at[2].file, file.path);
	sp_limits_done(&limits);
	put(&file, "alloc_bytes=+3%\n\nalloc_bytes=x\n");
	assert_int_equal(sp_limits_read(&limits, file.path, &error), -EINVAL);
	assert_has(error.message,
		   "line 3: the limit alloc_bytes=x is not valid");
	assert_string_equal(error.file, file.path);
	sp_limits_done(&limits);
	memfile_close(&file);
	assert_int_equal(sp_limits_read(&limits, "/nonexistent", &error),
			 -ENOENT);
	sp_limits_done(&limits);
}

TEST_MAIN(NULL, NULL)
