/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Libraries with known functions, inlines and lines.  Each entry calls the
 * probe, whose return address is the address to symbolize, and notes the
 * lines of the calls that lead there, innermost first.
 */
typedef void fixture_probe_fn(void);
#define FIXTURE_DEPTH 3
typedef void fixture_entry_fn(fixture_probe_fn *probe, int *lines);

/* Run a call and note the line it stands on; the store afterwards keeps it
 * from becoming a jump. */
#define FIXTURE_AT(line, call)                                                 \
	do {                                                                   \
		call;                                                          \
		*(volatile int *)(line) = __LINE__;                            \
	} while (0)
