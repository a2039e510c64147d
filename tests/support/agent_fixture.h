/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "format/layout.h"

/*
 * The agent's modules without the agent: a directory of the test's own, and the
 * writer open on a file in it.  The process id in that file is nobody's, so
 * that a reader takes the writer for dead.
 */
#define FIXTURE_PERIOD  4096u
#define FIXTURE_TICKS   123u
#define FIXTURE_FILE_ID 0x5eed5eed5eed5eedull

/* A fresh directory below TMPDIR or /tmp, and its removal with what is in it.
 * The text stays until the next call; failures end the program. */
const char *agent_fixture_dir(void);
void agent_fixture_remove_dir(void);

/* DIR/NAME, in a buffer that the next call but three overwrites. */
const char *agent_fixture_path(const char *name);

/* The same as cmocka's group fixtures, and what leaves nothing open to the next
 * test after one that failed. */
int agent_fixture_begin(void **state);
int agent_fixture_end(void **state);
int agent_fixture_teardown(void **state);

/* All that the loss counters say, summed. */
uint64_t agent_fixture_losses(void);

/* A slot for the calling thread, which thread `index` owns then. */
uint16_t agent_fixture_claim(uint32_t index);

/* Open the writer on a file of at most max_file_bytes in the directory; returns
 * its path.  Nothing may be open. */
const char *agent_fixture_open(uint64_t max_file_bytes);

/* The newer whole copy of a slot's totals by size class in the file at path;
 * false, and *ret is zero, if there is none. */
bool agent_fixture_read_classes(const char *path, uint64_t slot,
				struct sp_class_page *ret);

/* Nothing is open any more, and all modules are as in a process that has just
 * started; the file stays as it would after a kill. */
void agent_fixture_close(void);
