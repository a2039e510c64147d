/* SPDX-License-Identifier: MIT */
/* The priority of a thread that hurries, and of its children. */
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/hurry.h"
#include "support/test.h"

struct priority {
	int policy, nice;
};

/* A process that makes a child for each byte it reads, and tells which priority
 * the child has. */
static struct {
	pid_t pid;
	int ask, answer;
} parent;

static void tell_priority(int to)
{
	const struct priority own = {sched_getscheduler(0),
				     getpriority(PRIO_PROCESS, 0)};

	_exit(write(to, &own, sizeof(own)) != (ssize_t)sizeof(own));
}

static void make_children(int from, int to)
{
	char c;

	while (read(from, &c, 1) == 1) {
		const pid_t child = fork();

		if (child == 0)
			tell_priority(to);
		waitpid(child, NULL, 0);
	}
	_exit(0);
}

static struct priority of_child(void)
{
	struct priority p = {-1, -1};

	assert_int_equal(write(parent.ask, "", 1), 1);
	assert_int_equal(read(parent.answer, &p, sizeof(p)), sizeof(p));
	return p;
}

#define EXPECT_UNCHANGED(p)                                                    \
	do {                                                                   \
		const struct priority seen = (p);                              \
		assert_int_equal(seen.policy, SCHED_OTHER);                    \
		assert_int_equal(seen.nice, 0);                                \
	} while (0)

static struct priority of_parent(void)
{
	return (struct priority){sched_getscheduler(parent.pid),
				 getpriority(PRIO_PROCESS, (id_t)parent.pid)};
}

static bool begin(struct sp_hurry *h)
{
	*h = (struct sp_hurry){0};
	return sp_hurry_begin(h, parent.pid);
}

/* At each step a child is as it would have been, and the thread at the end. */
TEST(children)
{
	struct sp_hurry h;

	if (!begin(&h))
		skip(); /* no right to it, or a niceness of our own */
	for (int round = 0; round < 2; round++) {
		sp_hurry_first(&h);
		assert_int_equal(of_parent().nice, -20);
		EXPECT_UNCHANGED(of_child());
		sp_hurry_calm(&h);
		assert_int_equal(of_parent().nice, -20);
		EXPECT_UNCHANGED(of_child());
		sp_hurry_pause(&h);
		EXPECT_UNCHANGED(of_parent());
		EXPECT_UNCHANGED(of_child());
	}
	sp_hurry_first(&h);
	sp_hurry_end(&h);
	EXPECT_UNCHANGED(of_parent());
	EXPECT_UNCHANGED(of_child());
}

/* Its children would not have its own niceness, or policy. */
TEST(left_alone)
{
	const struct sched_param batch = {.sched_priority = 0};
	struct sp_hurry h;

	assert_int_equal(setpriority(PRIO_PROCESS, (id_t)parent.pid, 5), 0);
	assert_false(begin(&h));
	sp_hurry_first(&h);
	assert_int_equal(of_parent().nice, 5);
	assert_int_equal(of_child().nice, 5);
	if (setpriority(PRIO_PROCESS, (id_t)parent.pid, 0) != 0)
		skip();
	assert_int_equal(sched_setscheduler(parent.pid, SCHED_BATCH, &batch),
			 0);
	assert_false(begin(&h));
	assert_int_equal(of_child().policy, SCHED_BATCH);
}

static int make_parent(void **state)
{
	int asks[2], answers[2];

	(void)state;
	if (pipe(asks) != 0 || pipe(answers) != 0)
		return -1;
	parent.ask = asks[1];
	parent.answer = answers[0];
	parent.pid = fork();
	if (parent.pid == 0) {
		close(asks[1]);
		make_children(asks[0], answers[1]);
	}
	close(asks[0]);
	close(answers[1]);
	return parent.pid > 0 ? 0 : -1;
}

static int end_parent(void **state)
{
	(void)state;
	close(parent.ask);
	close(parent.answer);
	return waitpid(parent.pid, NULL, 0) == parent.pid ? 0 : -1;
}

TEST_MAIN(make_parent, end_parent)
