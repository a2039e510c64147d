/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

/*
 * The functions that are called without the loader: their first bytes lead to
 * the library, or are as they were.
 *
 * The worker's part: stop all threads of the process, none of them in the
 * middle of what is to be displaced, and write what the library's list has.
 * `arg`: struct sp_attach_job; its command says which way, and it gets the
 * result (-EBUSY: that could not be done in time, and nothing was written),
 * and how many entries were written.
 */
void sp_entries_write(void *arg);

struct sp_attach_job;

/* Is there something to write?  Asked without a stop. */
bool sp_entries_any(const struct sp_attach_job *job);
