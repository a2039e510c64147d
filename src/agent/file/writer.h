/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/unwind/lane.h"
#include "agent/unwind/modules.h"
#include "format/encode.h"

/*
 * Records into the mapped profile file, and the status page beside them.  The
 * layout is docs/format.md's; every record is committed by the store of its
 * first byte, so that a kill at any instant leaves a readable file.
 */

struct sp_writer_options {
	uint64_t pid;
	uint64_t process_start_ticks;
	uint64_t start_unix_ns;
	uint64_t start_clock_ns; /* CLOCK_MONOTONIC at the same moment */
	uint64_t period_bytes;
	uint64_t seed;
	uint64_t file_id; /* random */
	uint64_t max_file_bytes;
	uint32_t room_share; /* as of struct sp_outfile_limit */
	uint64_t check_in_bytes;
	uint32_t flags; /* SP_HEADER_* */
};

/*
 * Create the file and write its header.  0, -EBUSY while another thread does
 * it, or another negative errno; a failure is final.  Context: see
 * sp_outfile_create.
 */
int sp_writer_open(const struct sp_writer_options *options);
bool sp_writer_is_open(void);
bool sp_writer_has_failed(void);

/* The calling thread has left one of these for good (inside.h): the next one
 * begins it again, also the making of the file. */
void sp_writer_give_left(void);

/* In a forked child: there is no file; what is mapped belongs to the parent and
 * is not inherited. */
void sp_writer_reset(void);

/* In a child that was forked in the middle of one of these functions: what it
 * still stores goes nowhere.  Before sp_writer_reset. */
void sp_writer_detach(void);

/* Nanoseconds since the start, as records have them. */
uint64_t sp_writer_time(void);

/* The same of a time that sp_clock_now_ns() gave. */
uint64_t sp_writer_time_of(uint64_t clock_ns);

/* When it was `since_start_ns` by the wall clock, as it goes now; the present
 * if that makes no sense. */
uint64_t sp_writer_time_of_wall(uint64_t since_start_ns);

/*
 * Append one record with the caller's lane: to the current segment of the ring
 * (ring.h), or, if it has to stay, to a permanent chunk.  False if there is no
 * room (the caller counts what that means).  Context: sampled.
 */
bool sp_writer_append(struct sp_lane *lane, const struct sp_record *record);

/* Conveniences: the record of an object unless this file has it; a fact. */
void sp_writer_module(struct sp_lane *lane, struct sp_module_entry *e);
void sp_writer_info(struct sp_lane *lane, const char *key, const char *value,
		    uint64_t value_bytes);

/* Publish losses, number of threads and the present time; nothing happens if
 * another thread is doing so.  Context: sampled. */
void sp_writer_publish(uint64_t threads);

/* The same for a process, or a child of vfork, that ends without a destructor,
 * or executes another program (which may fail).  Context: any. */
void sp_writer_leave(uint64_t threads, bool is_exec);

/* The final publication: the process ends in an orderly way.  `may_shorten`:
 * cut the file to the length that it needs; the system calls for that are ones
 * that a sandbox may kill for.  May be called again.  Context: cold. */
void sp_writer_end(uint64_t threads, bool may_shorten);

/* Slot i of the thread slots, backed by storage, or NULL.  Context: sampled. */
struct sp_slot *sp_writer_slot(unsigned int i);
uint64_t sp_writer_file_id(void);

/* The control block of the file, or NULL: there is no file. */
struct sp_control *sp_writer_control(void);

/* May it be stored to now?  False: the disk is full.  Context: sampled. */
bool sp_writer_hold_control(struct sp_control *block);

/* The two pages for the class totals of slot i, backed by storage; NULL if
 * there is no file, no room in it (loss counted), or if another thread is just
 * making some.  Context: sampled. */
uint8_t *sp_writer_class_pages(unsigned int i);
