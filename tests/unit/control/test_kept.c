/* SPDX-License-Identifier: MIT */
/*
 * Files that processes below this one have mapped as code are kept, until that
 * is stopped; and of those that are not, only this user's are counted.
 */
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

/* A process that has so many deleted files mapped as code. */
static void begin_mapper(unsigned int n)
{
	static const char elf[4096] = "\177ELF";
	int ends[2];
	char ready = 0;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	for (unsigned int i = 0; pid == 0 && i < n; i++) {
		char path[] = "/tmp/sampleprof-unit-XXXXXX";
		const int fd = mkstemp(path);

		if (fd < 0 || unlink(path) != 0 ||
		    write(fd, elf, sizeof(elf)) != sizeof(elf) ||
		    mmap(NULL, sizeof(elf), PROT_READ | PROT_EXEC, MAP_PRIVATE,
			 fd, 0) == MAP_FAILED)
			_exit(1);
		close(fd);
	}
	if (pid == 0 && write(ends[1], "x", 1) == 1)
		for (;;)
			pause();
	at_test_end(end_child, (void *)(intptr_t)pid);
	close(ends[1]);
	assert_int_equal(read(ends[0], &ready, 1), 1);
	close(ends[0]);
}

/* What is beyond the limit is not kept, and is counted. */
TEST(beyond)
{
	const unsigned int open_max = 8192, beyond = 3;
	struct rlimit before, enough;
	struct sp_kept *kept;
	size_t n = 0;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	enough = (struct rlimit){.rlim_cur = open_max + 512,
				 .rlim_max = before.rlim_max};
	if (getuid() != 0 || setrlimit(RLIMIT_NOFILE, &enough) != 0)
		skip(); /* only root may open the deleted files */
	kept = sp_kept_new();
	begin_mapper(open_max + beyond);
	/* A look has its time, and the next one goes on. */
	for (unsigned int looks = 0; n < beyond && looks < 200; looks++) {
		sp_kept_look_below(kept);
		n = sp_kept_left_out(kept);
	}
	assert_true(n >= beyond);
	sp_kept_free(kept);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* Whether a file can be found is decided once, so that many take little. */
TEST(decided_once)
{
	char path[] = "/tmp/sampleprof-unit-XXXXXX", other[64];
	struct sp_kept *kept = sp_kept_new();
	const int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "\177ELF", 4), 4);
	close(fd);
	snprintf(other, sizeof(other), "%s.other", path);
	sp_kept_add(kept, path);
	assert_int_equal(rename(path, other), 0);
	assert_true(is_kept(kept, path));
	assert_int_equal(rename(other, path), 0);
	assert_true(is_kept(kept, path));
	sp_kept_free(kept);
	assert_int_equal(unlink(path), 0);
}

TEST_MAIN(NULL, NULL)
