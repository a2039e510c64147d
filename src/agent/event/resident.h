/* SPDX-License-Identifier: MIT */
#pragma once

#include "agent/process/process.h"

/*
 * Resident memory over time, and how near it is to the limit (memory_limit.h):
 * from SAMPLEPROF_NEAR_LIMIT on the period is shorter (period.h).
 */

/*
 * Record it, if it is wanted and 100 ms have passed, or 10 ms where it is more
 * than half of the limit: opens, reads and closes a file of the kernel, and at
 * times that of the limit, if there is one; unless sp_sys_forbids_files().
 */
void sp_resident_record(const struct sp_process *process);
