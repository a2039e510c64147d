/* SPDX-License-Identifier: MIT */
#include "agent/event/look.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "agent/file/mapping.h"
#include "agent/file/writer.h"
#include "agent/sys/allocator.h"
#include "agent/sys/arch.h"
#include "agent/sys/diag.h"
#include "agent/sys/sys.h"
#include "agent/thread/inside.h"
#include "agent/unwind/code.h"
#include "agent/unwind/framewalk.h"
#include "agent/unwind/lane.h"

#include "agent/sys/poison.h"

/* How long the program waits: at its end, or since somebody asked for it; in
 * the middle of its work, where it comes back to that a few times alone, and
 * for names. */
#define WAIT_S      10
#define WAIT_PEAK_S 2
#define LATE_PEAKS  3u
/* Peaks that are looked at: a doubling takes 15 of them. */
#define PEAKS_MAX 400u
/* Below that nobody asks where it is. */
#define PEAK_BYTES_MIN (4u << 20)

static sp_inside_lock busy;
/* Under `busy`, and with no handler on this thread. */
static uint32_t classes[SP_ALLOCATOR_CLASSES];
static char text[SP_LOOK_TEXT_MAX];

static _Atomic uint64_t peak_bytes;
static _Atomic uint32_t peaks;
static _Atomic uint32_t late; /* of these, nobody has answered in time */
static atomic_bool has_ended;
static atomic_bool has_shown_files;

void sp_look_reset(void)
{
	atomic_store(&busy, NULL);
	atomic_store(&peak_bytes, 0);
	atomic_store(&peaks, 0);
	atomic_store(&late, 0);
	atomic_store(&has_ended, false);
	atomic_store(&has_shown_files, false);
}

static long limit_wait(long fd, int option, enum sp_look_why why)
{
	const bool is_short = why == SP_LOOK_PEAK || why == SP_LOOK_FILES;
	const struct timeval wait = {.tv_sec = is_short ? WAIT_PEAK_S : WAIT_S};

	return sp_syscall(SYS_setsockopt, fd, SOL_SOCKET, option, (long)&wait,
			  sizeof(wait), 0);
}

/* The descriptor, or a negative errno. */
static long call_out(const char *name, unsigned int name_bytes,
		     enum sp_look_why why)
{
	static const char prefix[] = SP_LOOK_PREFIX;
	const size_t at = 1 + sizeof(prefix) - 1;
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	long fd, r;

	if (!name_bytes || at + name_bytes > sizeof(to.sun_path))
		return -EINVAL;
	memcpy(to.sun_path + 1, prefix, sizeof(prefix) - 1);
	memcpy(to.sun_path + at, name, name_bytes);
	fd = SP_SYS3(socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	r = limit_wait(fd, SO_SNDTIMEO, why);
	if (r >= 0)
		r = limit_wait(fd, SO_RCVTIMEO, why);
	if (r >= 0)
		r = SP_SYS3(connect, fd, &to,
			    offsetof(struct sockaddr_un, sun_path) + at +
				    name_bytes);
	if (r < 0)
		SP_SYS1(close, fd);
	return r < 0 ? r : fd;
}

/* Bytes of text, or a negative errno. */
static long ask_looker(long fd, const struct sp_look *look)
{
	long r = sp_syscall(SYS_sendto, fd, (long)look, sizeof(*look),
			    MSG_NOSIGNAL, 0, 0);

	return r < 0 ? r
		     : sp_syscall(SYS_recvfrom, fd, (long)text, sizeof(text), 0,
				  0, 0);
}

static void record_look(uint64_t time_ns, uint64_t bytes)
{
	char key[40] = "ledger.";
	struct sp_lane *lane = sp_lane_take_for_fact(&sp_thread.lane_hint);

	if (!lane) {
		sp_diag_lose(SP_LOSS_RECORD_DROPPED, 1);
		return;
	}
	sp_diag_decimal(key + strlen(key), time_ns);
	sp_writer_info(lane, key, text, bytes);
	sp_lane_give(lane);
}

static long be_looked_at(const char *name, unsigned int name_bytes,
			 enum sp_look_why why)
{
	struct sp_look look = {.version = SP_LOOK_VERSION,
			       .why = why,
			       .time_ns = sp_writer_time()};
	struct sp_control_glibc glibc;
	long fd, r;

	if (why != SP_LOOK_END_AT_ONCE) {
		sp_allocator_ask(&look.memory, &glibc);
		sp_allocator_classes(classes);
		look.classes = (uintptr_t)classes;
	}
	look.memory.ranges = (uintptr_t)sp_sys_ranges(&look.memory.n_ranges);
	fd = call_out(name, name_bytes, why);
	if (fd < 0)
		return fd;
	r = ask_looker(fd, &look);
	SP_SYS1(close, fd);
	if (r == -EAGAIN) {
		sp_diag_lose(SP_LOSS_LEDGER, 1);
		if (why == SP_LOOK_PEAK)
			atomic_fetch_add(&late, 1);
	}
	if (r > 0)
		record_look(look.time_ns, (uint64_t)r);
	return r > 0 ? 0 : r < 0 ? r : -ENODATA;
}

static int look_at(const char *name, unsigned int name_bytes,
		   enum sp_look_why why)
{
	uint64_t signals;
	long r = -EPERM;

	if (sp_sys_forbids_files())
		return EPERM;
	if (!sp_inside_hold(&busy))
		return EBUSY;
	if (sp_sys_block_signals(&signals)) {
		r = be_looked_at(name, name_bytes, why);
		sp_sys_restore_signals(signals);
	}
	sp_inside_give(&busy);
	return (int)-r;
}

int sp_look(const char *name, unsigned int name_bytes)
{
	return look_at(name, name_bytes, SP_LOOK_SNAPSHOT);
}

static int look_at_run(const struct sp_process *process, enum sp_look_why why)
{
	const char *run = process->config.run;

	return look_at(run, (unsigned int)strlen(run), why);
}

void sp_look_at_peak(const struct sp_process *process, uint64_t rss_bytes)
{
	const uint64_t before = atomic_load(&peak_bytes);
	uint64_t at = rss_bytes;

	if (process->config.ledger != SP_CONFIG_LEDGER_PEAK ||
	    rss_bytes < PEAK_BYTES_MIN || rss_bytes < before + before / 20 ||
	    atomic_load(&late) >= LATE_PEAKS ||
	    atomic_fetch_add(&peaks, 1) >= PEAKS_MAX)
		return;
	atomic_store(&peak_bytes, rss_bytes);
	/* Nobody has seen it; another thread may have been at a higher one. */
	if (look_at_run(process, SP_LOOK_PEAK))
		atomic_compare_exchange_strong(&peak_bytes, &at, before);
}

/* Not so in a child of vfork, which has our memory.  The kernel is asked where
 * that is wanted alone. */
static bool is_own_process(void)
{
	const struct sp_file_header *header = (void *)sp_mapping_base();

	return header && (uint64_t)SP_SYS0(getpid) == header->pid;
}

/*
 * A signal handler that ends the process may have interrupted malloc on this
 * very thread: then the allocator holds a lock that nobody gives back.  A stack
 * of which the outer frames are not known may have one.
 */
static bool may_be_in_handler(const struct sp_process *process,
			      const struct sp_call_frame *frame)
{
	struct sp_lane *lane = sp_lane_take(&sp_thread.lane_hint);
	const struct sp_walk *walk;
	bool may_be, is_cut;

	if (!lane)
		return true;
	walk = sp_framewalk_tables(
		lane, frame, (unsigned int)process->config.depth, &is_cut);
	may_be = !walk || !walk->n || !walk->is_whole;
	for (unsigned int i = 0; !may_be && i < walk->n; i++) {
		/* Of such a frame one more is recorded than its address. */
		const uintptr_t pc = (uintptr_t)walk->pcs[walk->first + i] - 1;

		/* To the end of its page, which is readable. */
		may_be = sp_code_is_trampoline(
			pc, (pc | (SP_ARCH_PAGE_MIN - 1)) + 1);
	}
	sp_lane_give(lane);
	return may_be;
}

void sp_look_at_end(const struct sp_process *process, bool goes_on,
		    bool is_at_once)
{
	enum sp_look_why why = SP_LOOK_END_AT_ONCE;

	if (goes_on || process->config.ledger == SP_CONFIG_LEDGER_OFF ||
	    !sp_writer_is_open() || !is_own_process() ||
	    atomic_exchange(&has_ended, true))
		return;
	if (!is_at_once && !may_be_in_handler(process, SP_FRAME_HERE))
		why = SP_LOOK_END;
	/* Another thread may be looked at, at its peak. */
	for (int i = 0; i < WAIT_S * 100; i++) {
		const struct timespec step = {.tv_nsec = 10000000};

		if (look_at_run(process, why) != EBUSY)
			break;
		SP_SYS2(nanosleep, &step, NULL);
	}
}

void sp_look_keep_files(const struct sp_process *process)
{
	struct sp_look look = {.version = SP_LOOK_VERSION,
			       .why = SP_LOOK_FILES};
	char name[sizeof(process->config.run) + sizeof(SP_LOOK_FILES_SUFFIX)];
	const size_t n = strlen(process->config.run);
	uint64_t signals;
	long fd;

	if (strcmp(process->config.run, "none") == 0 || !sp_writer_is_open() ||
	    sp_sys_forbids_files() || !is_own_process() ||
	    atomic_exchange(&has_shown_files, true) || !sp_inside_hold(&busy))
		return;
	memcpy(name, process->config.run, n);
	memcpy(name + n, SP_LOOK_FILES_SUFFIX, sizeof(SP_LOOK_FILES_SUFFIX));
	if (sp_sys_block_signals(&signals)) {
		fd = call_out(name, (unsigned int)strlen(name), SP_LOOK_FILES);
		if (fd >= 0) {
			ask_looker(fd, &look);
			SP_SYS1(close, fd);
		}
		sp_sys_restore_signals(signals);
	}
	sp_inside_give(&busy);
}
