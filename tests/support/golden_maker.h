/* SPDX-License-Identifier: MIT */
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include "model/profile.h"
#include "support/memfile.h"
#include "support/test.h"

static inline void golden_check_same_bytes(const char *made, const char *kept)
{
	struct memfile files[2];
	uint8_t *bytes[2];
	uint64_t n[2];

	for (int i = 0; i < 2; i++) {
		memfile_open(&files[i]);
		memfile_copy(&files[i], i ? kept : made);
		bytes[i] = memfile_read(&files[i], &n[i]);
		memfile_close(&files[i]);
	}
	assert_int_equal(n[0], n[1]);
	assert_memory_equal(bytes[0], bytes[1], n[0]);
	free(bytes[0]);
	free(bytes[1]);
}

/* The program `maker` makes today, in a directory that it is given, the very
 * files that are kept in `golden_dir` (with its '/') under these names. */
static inline void golden_check_maker(const char *maker, const char *golden_dir,
				      const char *const *names, size_t n_names)
{
	char dir[] = "/tmp/sampleprof-golden-XXXXXX";
	int status;
	pid_t pid;

	assert_non_null(mkdtemp(dir));
	pid = fork();
	if (pid == 0) {
		execl(maker, maker, dir, (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	for (size_t i = 0; i < n_names; i++) {
		char made[256], kept[1024];

		snprintf(made, sizeof(made), "%s/%s", dir, names[i]);
		snprintf(kept, sizeof(kept), "%s%s", golden_dir, names[i]);
		golden_check_same_bytes(made, kept);
		unlink(made);
	}
	rmdir(dir);
}

static inline void golden_check_stretches(const struct sp_profile *p,
					  const struct sp_stretch *want,
					  size_t n)
{
	assert_int_equal(p->n_stretches, n);
	for (size_t i = 0; i < n; i++) {
		const struct sp_stretch *s = &p->stretches[i];

		assert_true(s->from_ns == want[i].from_ns);
		assert_true(s->asked_ns == want[i].asked_ns);
		assert_true(s->to_ns == want[i].to_ns);
		assert_string_equal(s->phase, want[i].phase);
		assert_int_equal(s->period_bytes, want[i].period_bytes);
		assert_int_equal(s->alloc_bytes, want[i].alloc_bytes);
		assert_int_equal(s->alloc_objects, want[i].alloc_objects);
		assert_int_equal(s->unsampled_bytes, want[i].unsampled_bytes);
		assert_int_equal(s->unsampled_objects,
				 want[i].unsampled_objects);
		assert_int_equal(s->discarded_bytes, want[i].discarded_bytes);
		assert_int_equal(s->slack_bytes, want[i].slack_bytes);
	}
}
