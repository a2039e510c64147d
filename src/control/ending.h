/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* For programs that go on until SIGINT or SIGTERM, and end between two steps of
 * their work. */

/* Once, before threads are made. */
void sp_ending_block(void);

/* Has one of them come?  It stays. */
bool sp_ending_has_come(void);

/* Has one of them come?  It is taken.  Waits for it at most so long. */
bool sp_ending_wait(uint64_t wait_ns);
