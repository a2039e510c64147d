/* SPDX-License-Identifier: MIT */
#include "tools/run_files.h"

#include <signal.h>
#include <time.h>

#include "base/clock.h"

/* What comes and goes is seen if it stays for the first of these.  A look takes
 * a hundredth of the time at most. */
#define FIRST_NS    1000000u
#define INTERVAL_NS 50000000u
#define COST        100u

/* False: the program has ended. */
static bool wait_for(struct run_files *f, uint64_t ns)
{
	struct timespec until;
	bool is_over;

	ns += sp_clock_ns();
	until.tv_sec = (time_t)(ns / 1000000000u);
	until.tv_nsec = (long)(ns % 1000000000u);
	pthread_mutex_lock(&f->lock);
	while (!f->is_over &&
	       pthread_cond_timedwait(&f->over, &f->lock, &until) == 0)
		;
	is_over = f->is_over;
	pthread_mutex_unlock(&f->lock);
	return !is_over;
}

static void *look_again(void *arg)
{
	struct run_files *f = arg;
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
	pthread_condattr_t monotonic;
	sigset_t all, before;
	bool is_fine;

	pthread_mutex_init(&f->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&f->over, &monotonic);
	pthread_condattr_destroy(&monotonic);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	is_fine = pthread_create(&f->thread, NULL, look_again, f) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return is_fine;
}

void run_files_begin(struct run_files *f, const char *program)
{
	*f = (struct run_files){.kept = sp_kept_new()};
	if (!f->kept)
		return;
	sp_kept_add(f->kept, program);
	f->is_running = start_thread(f);
}

void run_files_end(struct run_files *f)
{
	if (!f->is_running)
		return;
	sp_kept_stop(f->kept);
	pthread_mutex_lock(&f->lock);
	f->is_over = true;
	pthread_cond_signal(&f->over);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->thread, NULL);
	f->is_running = false;
}

void run_files_free(struct run_files *f)
{
	sp_kept_free(f->kept);
	f->kept = NULL;
}
