/* SPDX-License-Identifier: MIT */
#include "support/agent_fixture.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/diag.h"
#include "agent/lane.h"
#include "agent/outfile.h"
#include "agent/slots.h"
#include "agent/stacktab.h"
#include "agent/sys.h"
#include "agent/thread.h"
#include "agent/writer.h"

/* agent.c has it in the library. */
_Thread_local struct sp_thread sp_thread;

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
	struct sp_writer_options options = {
		.pid = UINT32_MAX,
		.process_start_ticks = 123,
		.start_unix_ns = 1700000000000000000u,
		.start_clock_ns = sp_sys_now_ns(),
		.period_bytes = FIXTURE_PERIOD,
		.seed = 42,
		.file_id = FIXTURE_FILE_ID,
		.max_file_bytes = max_file_bytes,
		.check_in_bytes = 1 << 20,
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

void agent_fixture_close(void)
{
	sp_writer_reset();
	sp_lane_reset(NULL);
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
