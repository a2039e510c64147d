/* SPDX-License-Identifier: MIT */
/*
 * Names of threads: given before the first event, by other threads, twice, too
 * long, or not at all.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "agent/file/names.h"
#include "agent/file/slots.h"
#include "agent/sys/tid.h"
#include "support/agent_fixture.h"
#include "support/test.h"

static void assert_name(uint16_t slot, const char *want)
{
	char name[SP_FORMAT_THREAD_NAME_MAX];

	sp_slots_name(slot, name);
	assert_string_equal(name, want);
}

TEST_BETWEEN(named_by_itself, NULL, agent_fixture_teardown)
{
	uint16_t slot;
	unsigned long self = (unsigned long)pthread_self();

	agent_fixture_open(1 << 20);
	sp_names_begin("program");
	slot = agent_fixture_claim(1);
	assert_name(slot, "program");
	sp_slots_set_name(self, "worker");
	assert_name(slot, "worker");
	sp_slots_set_name(self, "a name that is too long");
	assert_name(slot, "a name that is ");
	sp_slots_set_name(self, "");
	assert_name(slot, "");
	sp_slots_set_name(self, "old");
	sp_slots_release(slot);
	assert_int_equal(agent_fixture_claim(2), slot);
	assert_name(slot, "");
}

static void expect(uint64_t tid, const char *want)
{
	char name[SP_FORMAT_THREAD_NAME_MAX];

	sp_names_get(tid, name);
	assert_string_equal(name, want);
}

TEST(table)
{
	char own[SP_FORMAT_THREAD_NAME_MAX] = "";

	/* The kernel calls it so, too; qemu-user has another name for it. */
	snprintf(own, sizeof(own), "%s", program_invocation_short_name);
	sp_names_begin_program("/nowhere");
	expect(7, own);
	sp_names_begin("a/name that is too long");
	expect(7, "a/name that is ");
	sp_names_put(8, "eight");
	expect(8, "eight");
	/* It may have the name of any. */
	expect(7, "");
	/* The newest stays. */
	sp_names_put(8 + SP_NAMES_MAX, "nine");
	expect(8, "");
	expect(8 + SP_NAMES_MAX, "nine");
	sp_names_forget(8);
	expect(8 + SP_NAMES_MAX, "nine");
	sp_names_forget(8 + SP_NAMES_MAX);
	expect(8 + SP_NAMES_MAX, "");
	/* Unknown threads have no name. */
	sp_names_put(0, "nobody");
	expect(0, "");
	sp_names_put(8, "eight");
	sp_names_begin("child");
	expect(8, "child");
}

static pthread_barrier_t named;

static void *claim(void *arg)
{
	uint16_t slot;

	pthread_barrier_wait(&named);
	slot = agent_fixture_claim(*(uint32_t *)arg);
	assert_name(slot, "by creator");
	sp_slots_release(slot);
	return NULL;
}

/* It has no slot when it gets its name; it may never get one. */
static void name_first(uint32_t index)
{
	pthread_t thread;

	assert_int_equal(pthread_barrier_init(&named, NULL, 2), 0);
	assert_int_equal(pthread_create(&thread, NULL, claim, &index), 0);
	sp_slots_set_name((unsigned long)thread, "by creator");
	pthread_barrier_wait(&named);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&named);
}

TEST_BETWEEN(named_by_creator, NULL, agent_fixture_teardown)
{
	sp_tid_find();
	sp_names_begin("program");
	name_first(1);
	for (unsigned int i = 1; i < SP_FORMAT_SLOTS; i++)
		assert_int_equal(agent_fixture_claim(i), i);
	name_first(SP_FORMAT_SLOTS);
}

TEST_MAIN(agent_fixture_begin, agent_fixture_end)
