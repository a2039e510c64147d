/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

/* The command line of sampleprof serve. */
struct serve_options {
	const char *listen; /* NULL: not said */
	uint64_t keep_ns;
};
