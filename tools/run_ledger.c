/* SPDX-License-Identifier: MIT */
#include "tools/run_ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "rss/look.h"
#include "rss/stored.h"

#define PROGRAM "sampleprof"

/* Those that ask when the program has ended have so much time. */
#define LAST_NS 2000000000u

/* Whoever asks could do so for ever. */
static bool is_over(const struct run_ledger *l, uint64_t *ended_ns)
{
	struct pollfd stop = {.fd = l->stop[0], .events = POLLIN};

	if (!*ended_ns && poll(&stop, 1, 0) > 0)
		*ended_ns = sp_clock_ns();
	return *ended_ns && sp_clock_ns() - *ended_ns >= LAST_NS;
}

/* One that cannot be looked at has no ledger, and the others go on. */
static void *look_at_process(void *arg)
{
	const struct run_ledger *l = arg;
	struct sp_rss_ledger ledger;
	uint64_t ended_ns = 0;
	struct sp_error err;

	while (!is_over(l, &ended_ns) &&
	       sp_rss_look_serve(l->fd, l->stop[0], 0, NULL, UINT64_MAX,
				 &ledger, &err) != -ETIMEDOUT)
		;
	return NULL;
}

/* Signals go to the thread that passes them on. */
static int start_thread(struct run_ledger *l)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&l->thread, NULL, look_at_process, l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -r;
}

static int fail_to_begin(int r, struct sp_error *err)
{
	return sp_error_set(err, r, NULL,
			    "ledgers of resident memory cannot be made: %s",
			    strerror(-r));
}

int run_ledger_begin(struct run_ledger *l, const char *run,
		     struct sp_error *err)
{
	int r = sp_rss_look_open(run, err);

	*l = (struct run_ledger){.fd = r};
	if (r < 0)
		return r;
	if (pipe2(l->stop, O_CLOEXEC) != 0) {
		r = -errno;
		close(l->fd);
		return fail_to_begin(r, err);
	}
	r = start_thread(l);
	l->is_running = r == 0;
	if (r == 0)
		return 0;
	run_ledger_end(l);
	return fail_to_begin(r, err);
}

void run_ledger_end(struct run_ledger *l)
{
	close(l->stop[1]);
	if (l->is_running)
		pthread_join(l->thread, NULL);
	close(l->stop[0]);
	close(l->fd);
}

static const char *reason_without_ledger(const struct sp_profile *p)
{
	switch (p->end) {
	case SP_PROFILE_END_EXEC:
		return "it executed another program";
	case SP_PROFILE_END_CLEAN:
		return "its sockets are of another namespace, or it filters "
		       "its system calls";
	default:
		return "it was killed, or filters its system calls; "
		       "--rss-at-peak looks at it while it runs";
	}
}

void run_ledger_print(const struct sp_profile *profile)
{
	const struct sp_ledger *stored;
	struct sp_rss_ledger ledger;
	struct sp_ledgers all;

	if (sp_ledgers_read(profile, &all) < 0)
		return;
	stored = sp_ledgers_find(&all, NULL);
	if (stored && sp_rss_ledger_read(stored, &ledger) == 0) {
		putc('\n', stderr);
		sp_rss_print(stderr, &ledger);
	} else {
		fprintf(stderr, PROGRAM ": no ledger of resident memory: %s\n",
			reason_without_ledger(profile));
	}
	sp_ledgers_free(&all);
}
