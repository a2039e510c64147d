/* SPDX-License-Identifier: MIT */
/*
 * Files that processes below this one have mapped as code are kept, until that
 * is stopped; and of those that are not, only this user's are counted.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/kept.h"
#include "support/test.h"

#define NOBODY 65534

static void end_child(void *pid)
{
	kill((pid_t)(intptr_t)pid, SIGKILL);
	waitpid((pid_t)(intptr_t)pid, NULL, 0);
}

/* A child that has a deleted file mapped as code. */
static void begin_child(char path[64], uid_t user)
{
	static const char elf[4096] = "\177ELF";
	int ends[2], fd;
	char ready = 0;
	pid_t pid;

	snprintf(path, 64, "/tmp/sampleprof-unit-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, elf, sizeof(elf)), sizeof(elf));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		if (mmap(NULL, sizeof(elf), PROT_READ | PROT_EXEC, MAP_PRIVATE,
			 fd, 0) == MAP_FAILED ||
		    setresuid(user, user, user) != 0 ||
		    write(ends[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	at_test_end(end_child, (void *)(intptr_t)pid);
	close(fd);
	close(ends[1]);
	assert_int_equal(read(ends[0], &ready, 1), 1);
	close(ends[0]);
}

static bool is_kept(struct sp_kept *kept, const char *path)
{
	char file[SP_KEPT_FILE_BYTES];
	const char *gone;

	for (size_t i = 0; (gone = sp_kept_gone(kept, i, file)) != NULL; i++)
		if (strcmp(gone, path) == 0)
			return true;
	return false;
}

TEST(until_stopped)
{
	struct sp_kept *kept = sp_kept_new();
	char first[64], second[64];

	begin_child(first, getuid());
	sp_kept_look_below(kept);
	assert_true(is_kept(kept, first));
	begin_child(second, getuid());
	sp_kept_stop(kept);
	sp_kept_look_below(kept);
	assert_true(is_kept(kept, first));
	assert_false(is_kept(kept, second));
	sp_kept_free(kept);
}

/* What another user's process had says nothing about the program. */
TEST(counted)
{
	struct rlimit before, none;
	struct sp_kept *kept;
	char path[64];

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){.rlim_cur = 64, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	kept = sp_kept_new();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	if (getuid() == 0) {
		begin_child(path, NOBODY);
		sp_kept_look_below(kept);
		assert_int_equal(sp_kept_left_out(kept), 0);
	}
	begin_child(path, getuid());
	sp_kept_look_below(kept);
	assert_false(is_kept(kept, path));
	assert_int_equal(sp_kept_left_out(kept), 1);
	sp_kept_free(kept);
}

TEST_MAIN(NULL, NULL)
