/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

/*
 * The request of `sampleprof attach` or `detach`, and the answer of the
 * library. The command writes the request into memory of the process, makes a
 * thread call SP_ATTACH_FUNCTION with its address, and reads the answer there.
 */
#define SP_ATTACH_VERSION  4u
#define SP_ATTACH_FUNCTION "sampleprof_agent_attach"
#define SP_ATTACH_SETTINGS 4096u /* bytes */

enum sp_attach_command {
	/* Begin a profile, and redirect the program's calls to the library. */
	SP_ATTACH_BEGIN = 1,
	/* Redirect the calls to the allocator again, and end the profile. */
	SP_ATTACH_END = 2,
};

/* The result; `error` has a negative errno where a comment says so. */
enum sp_attach_result {
	SP_ATTACH_DONE = 0,
	/* The program was started under the library. */
	SP_ATTACH_IS_PRELOADED = 1,
	/* No allocator was found whose calls can be redirected. */
	SP_ATTACH_NO_ALLOCATOR = 2,
	/* A setting is not valid, or the process is set-uid. */
	SP_ATTACH_REFUSED = 3,
	/* The profile could not be created: `error` says why. */
	SP_ATTACH_NO_FILE = 4,
	/* Nothing is attached. */
	SP_ATTACH_NOT_THERE = 5,
	/* A thread has not left the library yet: send the request again. */
	SP_ATTACH_BUSY = 6,
	/* The words to change could not be made writable: `error` says why. */
	SP_ATTACH_NO_WRITE = 7,
	/* The library in the process is of another version. */
	SP_ATTACH_OTHER_VERSION = 8,
	/* The library is there, and was told not to record this process. */
	SP_ATTACH_IS_OFF = 9,
	/* The command has given up: nothing is recorded, and no file is left.
	 */
	SP_ATTACH_GIVEN_UP = 10,
	/* Another command has attached before: `attached_by`. */
	SP_ATTACH_IS_ATTACHED = 11,
};

/*
 * A word that the library would change, in memory that may be executed.  The
 * library makes no such memory writable: the command writes the word, by
 * ptrace, if it has the value `from`.
 */
struct sp_attach_word {
	uint64_t at, from, to;
};

#define SP_ATTACH_WORDS 64u
struct sp_attach_words {
	struct sp_attach_word list[SP_ATTACH_WORDS];
	uint64_t n;
};

struct sp_attach_request {
	uint32_t version; /* SP_ATTACH_VERSION */
	uint32_t command; /* enum sp_attach_command */
	/* Address of the main thread's control block; 1: not known. */
	uint64_t main_thread;
	uint64_t age_ms; /* since the process was started; 0: not known */
	/* 1: a seccomp filter is in force, so the library must not open files
	 * later. */
	uint32_t is_filtered;
	/* 1: glibc_bytes is known, the bytes that glibc's malloc had allocated
	 * before. */
	uint32_t knows_glibc;
	uint64_t glibc_bytes;
	/* "NAME=VALUE" texts, each with its final 0; an empty one ends them. */
	char settings[SP_ATTACH_SETTINGS];
	/* The answer, which is at the same place in all versions. */
	uint32_t result; /* enum sp_attach_result */
	int32_t error;   /* 0, or a negative errno */
	uint64_t places; /* pointers and symbols that were changed */
	/*
	 * The command sets the first one if the call takes too long, and then
	 * reads the second one.  The library sets the second one before it
	 * reads the first, and what it has begun is undone if that is set.  So
	 * nothing is recorded if the second one was 0; if it was 1, the call
	 * is about to end, and the result says it.
	 */
	uint32_t given_up, answered;
	struct sp_attach_words words;
	/* Process id of the command; in the answer SP_ATTACH_IS_ATTACHED, of
	 * the one that began the profile. */
	uint64_t attached_by;
};

/*
 * The first bytes of functions that are called without the loader, which lead
 * to the library while it is attached: the library lists them in the object
 * SP_ATTACH_LIST, and the command writes them while all threads are stopped.
 * Families are written whole, or not at all; the functions of one follow each
 * other.
 */
#define SP_ATTACH_ENTRY_BYTES 5u
struct sp_attach_entry {
	uint64_t at;
	uint32_t family;
	/* So many are displaced: a thread may be at the first one, at no other.
	 */
	uint8_t displaced;
	uint8_t before[SP_ATTACH_ENTRY_BYTES];
	uint8_t after[SP_ATTACH_ENTRY_BYTES];
};

#define SP_ATTACH_ENTRIES 800u
#define SP_ATTACH_LIST    "sampleprof_agent_entries"
struct sp_attach_entries {
	uint32_t is_changing; /* a thread is just changing the list */
	uint32_t n;
	struct sp_attach_entry list[SP_ATTACH_ENTRIES];
};
