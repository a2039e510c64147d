/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "format/layout.h"

/* Is the process still there that writes the open file? */
bool sp_running(const struct sp_file_header *header, int fd);

/* The present moment, on the clock of its records. */
uint64_t sp_running_now_ns(const struct sp_file_header *header,
			   const struct sp_status *status);
