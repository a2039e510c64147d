/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

/*
 * What `sampleprof attach` and the library in a running process say to each
 * other: a block of memory of that process, which the command writes, has the
 * library called with, and reads again.
 */
#define SP_ATTACH_VERSION  2u
#define SP_ATTACH_FUNCTION "sampleprof_agent_attach"
#define SP_ATTACH_SETTINGS 4096u /* bytes */

enum sp_attach_command {
	/* Begin a profile, and have the program's calls come in.  Said again
	 * while it is so: take in calls that a thread was just binding. */
	SP_ATTACH_BEGIN = 1,
	/* Let no call come in any more, and end the profile. */
	SP_ATTACH_END = 2,
};

/* In results: what the library can say besides a negative errno. */
enum sp_attach_result {
	SP_ATTACH_DONE = 0,
	/* The program was started under the library. */
	SP_ATTACH_IS_PRELOADED = 1,
	/* No allocator was found whose calls could come in. */
	SP_ATTACH_NO_ALLOCATOR = 2,
	/* A setting is not valid, or the process is set-uid. */
	SP_ATTACH_REFUSED = 3,
	/* There is no profile: `error` says why. */
	SP_ATTACH_NO_FILE = 4,
	/* Nothing is attached. */
	SP_ATTACH_NOT_THERE = 5,
	/* A thread has not left the library yet: ask again. */
	SP_ATTACH_BUSY = 6,
	/* Memory could not be made writable: `error` says why. */
	SP_ATTACH_NO_WRITE = 7,
	/* The library in the process is of another version. */
	SP_ATTACH_OTHER_VERSION = 8,
	/* The library is there, and was told not to record this process. */
	SP_ATTACH_IS_OFF = 9,
};

struct sp_attach_request {
	uint32_t version; /* SP_ATTACH_VERSION */
	uint32_t command; /* enum sp_attach_command */
	/* The main thread's control block (fs base). */
	uint64_t main_thread;
	uint64_t age_ms; /* since the process began */
	/* Its system calls are: the library opens no file later. */
	uint32_t is_filtered;
	/* Whether it is known how many bytes glibc's malloc had given. */
	uint32_t knows_glibc;
	uint64_t glibc_bytes;
	/* NAME=VALUE, each with a 0 behind it; another 0 ends them. */
	char settings[SP_ATTACH_SETTINGS];
	/* The answer. */
	uint32_t result; /* enum sp_attach_result */
	int32_t error;   /* 0, or a negative errno */
	uint64_t places; /* pointers and symbols that were written */
};
