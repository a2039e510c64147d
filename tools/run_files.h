/* SPDX-License-Identifier: MIT */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "control/kept.h"

/* Keeps the files that the program and its children have mapped as code while
 * they run (control/kept.h), so that their functions have names afterwards. */
struct run_files {
	struct sp_kept *kept; /* NULL: none */
	pthread_t thread;
	int stop;  /* can be read: the program has ended */
	int asked; /* where processes ask to be looked at, or -1 */
	bool is_running;
};

/* `program` is about to be started, as a child of this process, with that
 * SAMPLEPROF_RUN.  Without memory or a thread less is kept. */
void run_files_begin(struct run_files *f, const char *program, const char *run);

/* The program has ended: look no more. */
void run_files_end(struct run_files *f);

void run_files_free(struct run_files *f);
