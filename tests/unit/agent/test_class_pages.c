/* SPDX-License-Identifier: MIT */
/*
 * Where the totals by size class stand in the file, and what happens if there
 * is no room for them.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "agent/file/writer.h"
#include "agent/sys/diag.h"
#include "agent/thread/size_counts.h"
#include "support/agent_fixture.h"
#include "support/test.h"

#define CHUNK SP_FORMAT_CHUNK_BYTES

static struct sp_lane *take_lane(void)
{
	uint8_t hint = 0;
	struct sp_lane *lane = sp_lane_take(&hint);

	assert_non_null(lane);
	return lane;
}

static uint64_t class_losses(void)
{
	uint64_t losses[SP_FORMAT_LOSSES];

	sp_diag_read(losses);
	return losses[SP_LOSS_CLASS_TOTALS];
}

static struct sp_size_counts *fresh(void)
{
	struct sp_size_counts *classes = calloc(1, sizeof(*classes));

	assert_non_null(classes);
	return classes;
}

/* Each slot has two pages of its own, in chunks among those of records. */
TEST_BETWEEN(every_slot, NULL, agent_fixture_teardown)
{
	const char *path = agent_fixture_open(8 << 20);
	struct sp_lane *lane = take_lane();
	FREED struct sp_size_counts *classes = fresh();
	static char text[3000];
	struct sp_class_page page;

	memset(text, 'a', sizeof(text));
	for (unsigned int i = 0; i < SP_FORMAT_SLOTS; i++) {
		unsigned int n = i * 191 % SP_FORMAT_SLOTS;
		uint8_t *pages;

		sp_writer_info(lane, "key", text, sizeof(text));
		pages = sp_writer_class_pages(n);
		assert_non_null(pages);
		assert_ptr_equal(sp_writer_class_pages(n), pages);
		classes->small[n]++;
		sp_size_counts_write(classes, FIXTURE_FILE_ID, n, 1, pages);
		sp_size_counts_write(classes, FIXTURE_FILE_ID, n, 2, pages);
	}
	for (unsigned int i = 0; i < SP_FORMAT_SLOTS; i++) {
		unsigned int n = i * 191 % SP_FORMAT_SLOTS;

		assert_true(agent_fixture_read_classes(path, n, &page));
		assert_int_equal(page.seq, 2);
		assert_int_equal(page.alloc_objects, i + 1);
	}
	assert_null(sp_writer_class_pages(SP_FORMAT_SLOTS));
	assert_true(agent_fixture_losses() == 0);
}

/* One file's pages are not another's. */
TEST_BETWEEN(next_file, NULL, agent_fixture_teardown)
{
	FREED struct sp_size_counts *classes = fresh();
	struct sp_class_page page;
	const char *path;

	assert_null(sp_writer_class_pages(1));
	agent_fixture_open(1 << 20);
	sp_size_counts_write(classes, FIXTURE_FILE_ID, 1, 1,
			     sp_writer_class_pages(1));
	agent_fixture_close();
	assert_null(sp_writer_class_pages(1));
	path = agent_fixture_open(1 << 20);
	assert_false(agent_fixture_read_classes(path, 1, &page));
	sp_size_counts_write(classes, FIXTURE_FILE_ID, 1, 1,
			     sp_writer_class_pages(1));
	assert_true(agent_fixture_read_classes(path, 1, &page));
}

/* No chunk left: a loss each time, and records go on. */
TEST_BETWEEN(full, NULL, agent_fixture_teardown)
{
	struct sp_lane *lane;

	agent_fixture_open(2 * CHUNK);
	lane = take_lane();
	sp_writer_info(lane, "key", "value", 5);
	for (uint64_t i = 1; i <= 3; i++) {
		assert_null(sp_writer_class_pages(1));
		assert_int_equal(class_losses(), i);
	}
	assert_int_equal(agent_fixture_losses(), 3);
}

/* A child that was forked in the middle of writing a copy: that goes nowhere,
 * and its own file has pages of its own. */
static void run_child(struct sp_size_counts *classes, uint8_t *pages)
{
	struct sp_class_page page;
	const char *path;

	sp_writer_detach();
	sp_writer_reset();
	sp_lane_reset();
	classes->small[1] = 1000;
	sp_size_counts_write(classes, FIXTURE_FILE_ID, 1, 3, pages);
	if (sp_writer_class_pages(1))
		_exit(1);
	path = agent_fixture_open(1 << 20);
	if (agent_fixture_read_classes(path, 1, &page))
		_exit(2);
	pages = sp_writer_class_pages(1);
	if (!pages)
		_exit(3);
	sp_size_counts_write(classes, FIXTURE_FILE_ID, 1, 1, pages);
	_exit(agent_fixture_read_classes(path, 1, &page) &&
			      page.alloc_objects == 1000
		      ? 0
		      : 4);
}

TEST_BETWEEN(fork, NULL, agent_fixture_teardown)
{
	char path[1024];
	FREED struct sp_size_counts *classes = fresh();
	struct sp_class_page page;
	uint8_t *pages;
	pid_t child;
	int status;

	snprintf(path, sizeof(path), "%s", agent_fixture_open(1 << 20));
	pages = sp_writer_class_pages(1);
	classes->small[1] = 7;
	sp_size_counts_write(classes, FIXTURE_FILE_ID, 1, 2, pages);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		run_child(classes, pages);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_true(agent_fixture_read_classes(path, 1, &page));
	assert_int_equal(page.seq, 2);
	assert_int_equal(page.alloc_objects, 7);
}

TEST_MAIN(agent_fixture_begin, agent_fixture_end)
