/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

/* The command line of sampleprof push. */
struct push_options {
	const char *pyroscope;  /* URL; NULL: not said */
	const char *token_file; /* likewise */
	uint64_t interval_ns;
};
