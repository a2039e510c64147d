/* SPDX-License-Identifier: MIT */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "base/error.h"
#include "model/profile.h"

/* What resident memory is made of, of the processes of a run that want to be
 * looked at: a thread of this process, which is their parent and so may read
 * them where only parents may. */
struct run_ledger {
	int fd, stop[2];
	pthread_t thread;
	bool is_running;
};

/* Before the first process of the run is there.  0; negative errno and *err. */
int run_ledger_begin(struct run_ledger *l, const char *run,
		     struct sp_error *err);

/* After the last one that is waited for has ended. */
void run_ledger_end(struct run_ledger *l);

/* Of a profile of the run, on standard error, or why there is none. */
void run_ledger_print(const struct sp_profile *profile);
