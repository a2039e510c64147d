/* SPDX-License-Identifier: MIT */
#include "tools/run_files.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/family.h"
#include "rss/look.h"

/* What comes and goes is seen if it stays for the first of these.  A look takes
 * a hundredth of the time at most. */
#define FIRST_NS    1000000u
#define INTERVAL_NS 50000000u
#define COST        100u

/* A process waits for its end; it may be anybody's who knows the name. */
static void look_as_asked(const struct run_files *f)
{
	uint64_t pid;
	const int peer = sp_rss_look_meet(f->asked, &pid);

	if (peer < 0)
		return;
	if (sp_family_has((uint64_t)getpid(), pid))
		sp_kept_look(f->kept, pid);
	(void)send(peer, "", 1, MSG_NOSIGNAL);
	close(peer);
}

/* False: the program has ended. */
static bool wait_for(const struct run_files *f, uint64_t ns)
{
	const uint64_t until = sp_clock_ns() + ns;
	struct pollfd wait[] = {{.fd = f->stop, .events = POLLIN},
				{.fd = f->asked, .events = POLLIN}};

	for (uint64_t now; (now = sp_clock_ns()) < until;) {
		const struct timespec left = {
			.tv_sec = (time_t)((until - now) / 1000000000u),
			.tv_nsec = (long)((until - now) % 1000000000u)};

		if (ppoll(wait, 2, &left, NULL) <= 0)
			continue;
		if (wait[0].revents)
			return false;
		look_as_asked(f);
	}
	return true;
}

static void *look_again(void *arg)
{
	const struct run_files *f = arg;
	uint64_t interval = FIRST_NS, pause = FIRST_NS;

	while (wait_for(f, pause)) {
		const uint64_t begin = sp_clock_ns();

		sp_kept_look_below(f->kept);
		if (interval < INTERVAL_NS)
			interval *= 2;
		pause = COST * (sp_clock_ns() - begin);
		if (pause < interval)
			pause = interval;
	}
	return NULL;
}

/* Signals go to the thread that passes them on. */
static bool start_thread(struct run_files *f)
{
	sigset_t all, before;
	bool is_fine;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	is_fine = pthread_create(&f->thread, NULL, look_again, f) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return is_fine;
}

void run_files_begin(struct run_files *f, const char *program, const char *run)
{
	struct sp_error err;

	*f = (struct run_files){.kept = sp_kept_new(), .stop = -1, .asked = -1};
	if (!f->kept)
		return;
	sp_kept_add(f->kept, program);
	f->stop = eventfd(0, EFD_CLOEXEC);
	if (f->stop < 0)
		return;
	f->asked = sp_rss_look_open_for_files(run, &err);
	f->is_running = start_thread(f);
}

void run_files_end(struct run_files *f)
{
	if (f->is_running) {
		sp_kept_stop(f->kept);
		eventfd_write(f->stop, 1);
		pthread_join(f->thread, NULL);
		f->is_running = false;
	}
	if (f->kept && f->asked >= 0)
		close(f->asked);
	if (f->kept && f->stop >= 0)
		close(f->stop);
	f->asked = f->stop = -1;
}

void run_files_free(struct run_files *f)
{
	sp_kept_free(f->kept);
	f->kept = NULL;
}
