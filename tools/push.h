/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "serve/receiver.h"

/* The command line of sampleprof push. */
struct push_options {
	const char *pyroscope, *otlp; /* URLs; NULL: not said */
	const char *token_file;       /* likewise */
	struct sp_receiver_options to;
	uint64_t interval_ns;
};
