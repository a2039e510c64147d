/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/file/filter.h"
#include "agent/file/liveset.h"
#include "agent/process/process.h"
#include "agent/sys/arch.h"
#include "agent/thread/thread.h"
#include "format/encode.h"

/*
 * What happens to the program, as records in its file: samples with their
 * stacks, the frees of samples, threads.  Creates the file
 * when the first sample needs it.
 *
 * A record that cannot be written is a loss of its own kind, and counted.
 */

/* The process whose file it is; borrowed for good.  `complete` is called with
 * the free of a sample after which all that is alive was rewritten into the
 * current segment (marks.h); an event finds that out by itself.  Context: cold.
 */
void sp_recorder_init(struct sp_process *process, void (*complete)(void));

/* In a forked child: nothing is recorded or alive yet. */
void sp_recorder_reset(void);

/* Create the file if it is not there; false: it is not to be had, and
 * process->file_error says why.  t is suspended.  Context: see sp_writer_open.
 */
bool sp_recorder_open_file(struct sp_thread *t);

/* The facts that are known after construction, if there is a file. */
void sp_recorder_describe_late(struct sp_thread *t);

/* What is alive takes much of the file: the period is longer from now on. */
void sp_recorder_crowded(void);

/* Likewise those that are known at the end: of the process, or only of the
 * recording. */
void sp_recorder_describe_end(struct sp_thread *t, bool is_detached);

/* An allocation that is to be recorded. */
struct sp_event {
	void *p;
	uint64_t size_bytes;
	uint64_t offset_bytes; /* of the hit byte */
	enum sp_entry entry;
	const struct sp_call_frame *frame; /* of what the program called */
};

/* t is suspended, and its clock stands behind the object.  Context: sampled. */
void sp_recorder_sample(struct sp_thread *t, const struct sp_event *event);

/* The record of a thread, into the file that is there.  t is suspended. */
struct sp_lane;
void sp_recorder_thread(struct sp_thread *t, struct sp_lane *lane);

/* A mark, into a file that is made if it is not there; false: it could not be
 * written.  t is suspended. */
bool sp_recorder_mark(struct sp_thread *t, const struct sp_record_mark *mark);

/* When a mark that is in the file was asked for.  t is suspended. */
void sp_recorder_asked(const struct sp_record_asked *asked);

/* The totals of a thread that the file knows.  t is suspended. */
void sp_recorder_thread_end(struct sp_thread *t);

/* Any record, with whatever lane is free: the thread may hold one already.
 * False: it could not be written.  Context: any. */
bool sp_recorder_append(const struct sp_record *record);

/*
 * An object is about to be freed: call this before its memory goes back, if
 * sp_filter_may_have(p).  Context: any, also in a signal handler that
 * interrupted the agent.  Errno is preserved.
 */
void sp_recorder_free(const void *p);

/* The same where freeing may fail: begin before the call, then either commit or
 * cancel, which leaves the object alive with its old identity. */
struct sp_recorder_end {
	const void *p;
	struct sp_live live;
	uint64_t time_ns;
	uint64_t age_bytes;
	uint32_t thread;    /* that frees; 0 unknown */
	uint32_t segment;   /* of the file; 0: of which samples are rewritten */
	bool is_by_address; /* every free is recorded */
	bool is_sample;
	bool has_age;
};

void sp_recorder_free_begin(const void *p, struct sp_recorder_end *end);
void sp_recorder_free_commit(const struct sp_recorder_end *end);
void sp_recorder_free_cancel(const void *p, const struct sp_recorder_end *end);
