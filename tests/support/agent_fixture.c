/* SPDX-License-Identifier: MIT */
#include "support/agent_fixture.h"

#include <ftw.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/file/outfile.h"
#include "agent/file/slots.h"
#include "agent/file/stacktab.h"
#include "agent/file/writer.h"
#include "agent/sys/clock.h"
#include "agent/sys/diag.h"
#include "agent/thread/size_counts.h"
#include "agent/thread/thread.h"
#include "agent/unwind/lane.h"
#include "format/record.h"

/* thread_life.c has it in the library, and in the test that links that. */
__attribute__((weak)) _Thread_local struct sp_thread sp_thread = {
	.counts = sp_size_counts_voids};

static char dir[512];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

const char *agent_fixture_dir(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%s/sampleprof-test-XXXXXX",
		 tmp && tmp[0] ? tmp : "/tmp");
	if (!mkdtemp(dir))
		die(dir);
	return dir;
}

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void agent_fixture_remove_dir(void)
{
	if (nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS) != 0)
		die(dir);
}

const char *agent_fixture_path(const char *name)
{
	static char paths[4][1024];
	static unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

const char *agent_fixture_open(uint64_t max_file_bytes)
{
	static uint64_t opened;
	struct sp_writer_options options = {
		.pid = UINT32_MAX,
		/* Each file is of another process, and keeps its name. */
		.process_start_ticks = FIXTURE_TICKS + opened++,
		.start_unix_ns = 1700000000000000000u,
		.start_clock_ns = sp_clock_now_ns(),
		.period_bytes = FIXTURE_PERIOD,
		.seed = 42,
		.file_id = FIXTURE_FILE_ID,
		.max_file_bytes = max_file_bytes,
		.check_in_bytes = 1 << 20,
		.flags = SP_HEADER_ALWAYS_LARGE | SP_HEADER_SEGMENTS |
			 SP_HEADER_FREES,
	};
	int err;

	if (!sp_outfile_prepare(agent_fixture_path("test.sprof"), "/bin/test",
				"host", 0)) {
		fprintf(stderr, "%s: too long\n", dir);
		exit(1);
	}
	err = sp_writer_open(&options);
	if (err) {
		fprintf(stderr, "%s: %s\n", dir, strerror(-err));
		exit(1);
	}
	return sp_outfile_name();
}

uint16_t agent_fixture_claim(uint32_t index)
{
	const uint16_t slot = sp_slots_hold();

	sp_slots_claim(slot, index);
	return slot;
}

static bool is_whole(const struct sp_class_page *page, uint64_t slot)
{
	uint64_t bytes = 0, objects = 0;

	for (unsigned int c = 0; c < SP_FORMAT_CLASSES; c++) {
		bytes += page->classes[c].bytes;
		objects += page->classes[c].objects;
	}
	return page->seq && page->slot == slot &&
	       page->check == sp_format_check(FIXTURE_FILE_ID, SP_CHECK_CLASSES,
					      page,
					      offsetof(struct sp_class_page,
						       classes)) &&
	       page->alloc_bytes == bytes && page->alloc_objects == objects;
}

static void take_newer(FILE *f, long at, uint64_t slot,
		       struct sp_class_page *best)
{
	for (int copy = 0; copy < 2; copy++) {
		struct sp_class_page page;

		if (fseek(f, at + copy * (long)SP_FORMAT_PAGE_BYTES,
			  SEEK_SET) != 0 ||
		    fread(&page, sizeof(page), 1, f) != 1)
			die("class page");
		if (is_whole(&page, slot) && page.seq > best->seq)
			*best = page;
	}
}

bool agent_fixture_read_classes(const char *path, uint64_t slot,
				struct sp_class_page *ret)
{
	const uint64_t pair = slot % SP_FORMAT_CLASS_SLOTS;
	const long in_chunk = (long)((1 + 2 * pair) * SP_FORMAT_PAGE_BYTES);
	struct sp_chunk_header header;
	FILE *f = fopen(path, "rbe");

	memset(ret, 0, sizeof(*ret));
	if (!f)
		die(path);
	for (long at = SP_FORMAT_CHUNK_BYTES;
	     fseek(f, at, SEEK_SET) == 0 &&
	     fread(&header, sizeof(header), 1, f) == 1;
	     at += SP_FORMAT_CHUNK_BYTES)
		if (header.magic == SP_FORMAT_CHUNK_MAGIC &&
		    header.kind == SP_CHUNK_CLASSES)
			take_newer(f, at + in_chunk, slot, ret);
	fclose(f);
	return ret->seq != 0;
}

void agent_fixture_close(void)
{
	sp_writer_reset();
	for (uint8_t i = 1; i <= SP_LANES; i++)
		sp_lane_give(sp_lane_of(i));
	sp_lane_reset();
	sp_stacktab_reset();
	sp_slots_reset();
	sp_diag_reset();
}

int agent_fixture_begin(void **state)
{
	(void)state;
	agent_fixture_dir();
	return 0;
}

int agent_fixture_end(void **state)
{
	(void)state;
	agent_fixture_remove_dir();
	return 0;
}

int agent_fixture_teardown(void **state)
{
	(void)state;
	agent_fixture_close();
	return 0;
}

uint64_t agent_fixture_losses(void)
{
	uint64_t losses[SP_FORMAT_LOSSES], sum = 0;

	sp_diag_read(losses);
	for (int i = 0; i < SP_FORMAT_LOSSES; i++)
		sum += losses[i];
	return sum;
}
