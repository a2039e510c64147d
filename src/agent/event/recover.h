/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

/*
 * The thread has left the agent for good, by siglongjmp or by ending in a
 * signal handler: give back what it held.  Its counts go on from what its slab
 * has, if they are of this process.  Context: sampled.
 */
void sp_recover_left(bool is_of_process);
