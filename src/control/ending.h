/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* For programs that run until SIGINT or SIGTERM, and end between two steps of
 * their work. */

/* Block both signals.  Call it once, before threads are created. */
void sp_ending_block(void);

/* Is one of them pending?  It stays pending. */
bool sp_ending_has_come(void);

/* Wait at most wait_ns for one of them, which stays pending.  False: none came.
 */
bool sp_ending_wait(uint64_t wait_ns);
