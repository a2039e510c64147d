/* SPDX-License-Identifier: MIT */
/*
 * The processes below one: children of any thread, and theirs, but nobody else;
 * by both ways that a kernel may offer; and that the time for it has an end.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/family.h"
#include "support/test.h"

/* A child, the child of a thread of it, and a child of that. */
#define BELOW 3

static void tell(int out)
{
	const pid_t pid = getpid();

	if (write(out, &pid, sizeof(pid)) != sizeof(pid))
		_exit(1);
}

static void *begin_two(void *arg)
{
	const int out = *(const int *)arg;

	if (fork() == 0) {
		tell(out);
		if (fork() == 0)
			tell(out);
		for (;;)
			pause();
	}
	for (;;)
		pause();
	return NULL;
}

static pid_t begin_child(int out)
{
	const pid_t pid = fork();
	pthread_t thread;

	if (pid)
		return pid;
	setpgid(0, 0);
	tell(out);
	if (pthread_create(&thread, NULL, begin_two, &out) != 0)
		_exit(1);
	for (;;)
		pause();
}

static void end_group(void *pid)
{
	kill(-(pid_t)(intptr_t)pid, SIGKILL);
	waitpid((pid_t)(intptr_t)pid, NULL, 0);
}

static size_t count(const struct sp_family *family, pid_t pid)
{
	size_t n = 0;

	for (size_t i = 0; i < family->n; i++)
		n += family->pids[i] == (uint64_t)pid;
	return n;
}

TEST(both_ways)
{
	static int (*const ways[])(uint64_t, uint64_t, struct sp_family *) = {
		sp_family_by_children, sp_family_by_parents, sp_family_find};
	pid_t pids[BELOW], beside;
	struct sp_family family;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	beside = begin_child(ends[1]);
	at_test_end(end_group, (void *)(intptr_t)beside);
	for (int i = 0; i < BELOW; i++)
		assert_int_equal(read(ends[0], &pids[i], sizeof(pids[i])),
				 sizeof(pids[i]));
	pids[0] = begin_child(ends[1]);
	at_test_end(end_group, (void *)(intptr_t)pids[0]);
	for (int i = 0; i < BELOW; i++)
		assert_int_equal(read(ends[0], &pids[i], sizeof(pids[i])),
				 sizeof(pids[i]));
	assert_true(sp_family_has((uint64_t)getpid(), (uint64_t)pids[2]));
	assert_true(sp_family_has((uint64_t)pids[0], (uint64_t)pids[2]));
	assert_false(sp_family_has((uint64_t)pids[2], (uint64_t)pids[0]));
	assert_false(sp_family_has((uint64_t)pids[0], (uint64_t)pids[0]));
	assert_false(sp_family_has((uint64_t)pids[0], (uint64_t)beside));
	assert_false(sp_family_has(0, (uint64_t)beside));
	for (size_t way = 0; way < 3; way++) {
		const int r = ways[way]((uint64_t)pids[0], UINT64_MAX, &family);

		/* Only that way needs a kernel that lists children. */
		if (way == 0 && r == -ENOSYS)
			continue;
		assert_int_equal(r, 0);
		assert_int_equal(family.n, BELOW - 1);
		assert_int_equal(count(&family, pids[1]), 1);
		assert_int_equal(count(&family, pids[2]), 1);
		sp_family_free(&family);
		assert_int_equal(
			ways[way]((uint64_t)getpid(), UINT64_MAX, &family), 0);
		assert_int_equal(family.n, 2 * BELOW);
		assert_int_equal(count(&family, beside), 1);
		sp_family_free(&family);
		/* No time, and nobody. */
		assert_int_equal(ways[way]((uint64_t)getpid(), 0, &family), 0);
		assert_int_equal(family.n, 0);
		sp_family_free(&family);
		assert_int_equal(ways[way](1u << 30, UINT64_MAX, &family), 0);
		assert_int_equal(family.n, 0);
		sp_family_free(&family);
	}
	close(ends[0]);
	close(ends[1]);
}

TEST_MAIN(NULL, NULL)
