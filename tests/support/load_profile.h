/* SPDX-License-Identifier: MIT */
#pragma once

#include "model/profile.h"
#include "read/load.h"
#include "support/test.h"

static inline void free_profile(void *profile)
{
	sp_profile_free(profile);
}

/* Until the test ends. */
static inline struct sp_profile *keep_profile(struct sp_profile *profile)
{
	at_test_end(free_profile, profile);
	return profile;
}

/* The profile in a file that can be read; fails the test if it cannot. */
static inline struct sp_profile *load_profile(const char *path)
{
	struct sp_profile *p = NULL;
	struct sp_error err;

	if (sp_profile_load(path, NULL, NULL, &p, &err) != 0)
		fail_msg("%s: %s", path, err.message);
	return keep_profile(p);
}

/* sp_profile_read() of one file. */
static inline int read_profile(const char *path, const struct sp_plan *plan,
			       struct sp_profile **ret_profile,
			       struct sp_error *err)
{
	return sp_profile_read(&path, 1, plan, NULL, NULL, ret_profile, err);
}

/* The same of one that is whole. */
static inline struct sp_profile *load_whole_profile(const char *path)
{
	struct sp_profile *p = load_profile(path);

	assert_string_equal(p->damage, "");
	return p;
}
