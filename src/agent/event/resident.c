/* SPDX-License-Identifier: MIT */
#include "agent/event/resident.h"

#include <stdatomic.h>
#include <string.h>

#include "agent/event/look.h"
#include "agent/event/recorder.h"
#include "agent/file/writer.h"
#include "agent/process/memory_limit.h"
#include "agent/process/period.h"
#include "agent/sys/diag.h"
#include "agent/sys/sys.h"
#include "agent/unwind/lane.h"

#include "agent/sys/poison.h"

#define RSS_INTERVAL_NS 100000000u
/* The same where more than half of the limit is resident: at 1 GiB/s the rest
 * of 1 GiB is full within half a second. */
#define RSS_INTERVAL_HIGH_NS 10000000u
/* Readings of resident memory from one reading of the limit to the next. */
#define LIMIT_CALLS      64u
#define LIMIT_CALLS_HIGH 16u
/* Facts about it: a limit that goes up and down does not fill the file. */
#define LIMIT_CHANGES_MAX 100u

/* The process of the variables below: a forked child begins anew. */
static _Atomic uint32_t generation;
static _Atomic uint64_t next_rss_ns;
/* The limit of memory as it was last read; 0: as at the start. */
static _Atomic uint64_t limit_bytes;
static _Atomic uint32_t limit_changes;

/* The second number of the file: resident pages.  A function of its own, so
 * that its buffer is not on the stack while the record is written. */
static __attribute__((noinline)) uint64_t resident_bytes(void)
{
	char text[48]; /* two numbers */
	const char *p = text;
	uint64_t pages = 0;

	if (sp_sys_read_file("/proc/thread-self/statm", text, sizeof(text)) <=
	    0)
		return 0;
	while (*p && *p != ' ')
		p++;
	for (p += *p == ' '; *p >= '0' && *p <= '9'; p++)
		pages = pages * 10 + (uint64_t)(*p - '0');
	return pages * sp_sys_page_bytes();
}

/* Record that the limit has changed, with any free lane. */
static void record_limit(uint64_t now_ns, uint64_t bytes)
{
	char key[48] = "limit.memory.", digits[24];
	struct sp_lane *lane = sp_lane_take_for_fact(&sp_thread.lane_hint);

	if (!lane) {
		sp_diag_lose(SP_LOSS_RECORD_DROPPED, 1);
		return;
	}
	strcpy(key + strlen(key), sp_diag_decimal(digits, now_ns));
	sp_diag_decimal(digits, bytes == SP_MEMORY_LIMIT_NONE ? 0 : bytes);
	sp_writer_info(lane, key, digits, strlen(digits));
	sp_lane_give(lane);
}

/* The limit now: read at times, more often from half of it on. */
static __attribute__((noinline)) uint64_t limit_now(
	const struct sp_process *process, uint64_t now_ns, uint64_t rss_bytes)
{
	static _Atomic uint32_t n_calls;
	uint64_t before = atomic_load(&limit_bytes), now;

	if (!before)
		before = process->limit.group_bytes;
	if (atomic_fetch_add(&n_calls, 1) %
	    (rss_bytes < before / 2 ? LIMIT_CALLS : LIMIT_CALLS_HIGH))
		return before;
	now = sp_memory_limit_again(&process->limit);
	if (now != before &&
	    atomic_fetch_add(&limit_changes, 1) < LIMIT_CHANGES_MAX) {
		atomic_store(&limit_bytes, now);
		record_limit(now_ns, now);
	}
	return now;
}

/* From NEAR_LIMIT on until there is a tenth of the limit more room. */
static void watch_limit(const struct sp_process *process, uint64_t now_ns,
			uint64_t rss_bytes)
{
	static atomic_bool is_near;
	const uint64_t percent = process->config.near_limit_percent;
	uint64_t limit, from;

	if (process->limit.group_bytes == SP_MEMORY_LIMIT_NONE)
		return;
	limit = limit_now(process, now_ns, rss_bytes);
	from = limit / 100 * percent;
	if (atomic_load(&is_near))
		from -= from / 10;
	if (!percent || limit == SP_MEMORY_LIMIT_NONE)
		from = UINT64_MAX;
	if (rss_bytes >= limit / 2)
		atomic_store(&next_rss_ns, now_ns + RSS_INTERVAL_HIGH_NS);
	atomic_store(&is_near, rss_bytes >= from);
	sp_period_press(rss_bytes >= from);
}

/* Called last to keep stack use low: the record and the buffer of the kernel's
 * answer are not on the stack at the same time. */
static __attribute__((noinline)) void append_rss(uint64_t now_ns,
						 uint64_t rss_bytes)
{
	const struct sp_record r = {.type = SP_RECORD_RSS,
				    .u.rss = {now_ns, rss_bytes}};

	if (!rss_bytes || !sp_recorder_append(&r))
		sp_diag_lose(SP_LOSS_RSS, 1);
}

void sp_resident_record(const struct sp_process *process)
{
	const uint32_t forks = atomic_load(&process->generation);
	uint64_t now, due, rss_bytes = 0;

	if (atomic_exchange(&generation, forks) != forks) {
		atomic_store(&next_rss_ns, 0);
		atomic_store(&limit_changes, 0);
	}
	due = atomic_load_explicit(&next_rss_ns, memory_order_relaxed);
	if (process->config.rss == SP_CONFIG_RSS_OFF || !sp_writer_is_open())
		return;
	now = sp_writer_time();
	if (now < due || !atomic_compare_exchange_strong(&next_rss_ns, &due,
							 now + RSS_INTERVAL_NS))
		return;
	if (!sp_sys_forbids_files())
		rss_bytes = resident_bytes();
	if (rss_bytes) {
		watch_limit(process, now, rss_bytes);
		sp_look_at_peak(process, rss_bytes);
	}
	append_rss(now, rss_bytes);
}
