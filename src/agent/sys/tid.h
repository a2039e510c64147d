/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

/*
 * The kernel's id of a thread as its C library knows it: no system call, which
 * a sandboxed program might not survive.  0 before sp_tid_find, and with glibc
 * before 2.34 in a program without libpthread.
 */

/* Find the function that tells.  Called once, before there are threads. */
void sp_tid_find(void);

/* Of the calling thread. */
uint64_t sp_tid_own(void);

/* Of another thread, by its pthread_t. */
uint64_t sp_tid_of(unsigned long pthread);
