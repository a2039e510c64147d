/* SPDX-License-Identifier: MIT */
#ifndef SP_TESTS_GOLDEN_MAKER_H
#define SP_TESTS_GOLDEN_MAKER_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/memfile.h"

/* The cmocka headers come first. */
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

#endif
