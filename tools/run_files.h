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
	pthread_mutex_t lock;
	pthread_cond_t over; /* its clock is the monotonic one */
	bool is_over;
	bool is_running;
};

/* `program` is about to be started, as a child of this process.  Without memory
 * or a thread less is kept. */
void run_files_begin(struct run_files *f, const char *program);

/* The program has ended: look no more. */
void run_files_end(struct run_files *f);

void run_files_free(struct run_files *f);
