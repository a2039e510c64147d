/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "format/layout.h"

struct sp_size_counts;
struct sp_thread;

/*
 * Exact totals.  A thread owns a slot while it lives and adds what it has
 * allocated whenever it checks in; a slot goes from one thread to the next with
 * its totals, so the sum over all slots is the process's total at any time.
 * Slot 0 has no owner: threads that found no slot, or have ended, add to it.
 *
 * The totals live here and are copied into the profile file when there is one.
 * So are the totals by size class (size_counts.h), which the owner counts by
 * itself in the size counts of the slot.
 */

/* A slot, or 0, for the calling thread: sp_slots_any_owner knows it from now
 * on.  Nothing but that may be done with the slot before sp_slots_claim. */
uint16_t sp_slots_hold(void);

/* Instead of sp_slots_claim; also when sp_slots_reset was called meanwhile. */
void sp_slots_let_go(uint16_t slot);

/* The slot that is held, for thread `index` (loss counted if it is the shared
 * one), until sp_slots_release. */
void sp_slots_claim(uint16_t slot, uint32_t index);

/* The size counts of a slot that the caller owns, since the process began.
 * NULL for slot 0, or if there is no memory (loss counted). */
struct sp_size_counts *sp_slots_size_counts(uint16_t slot);

/* Add to the totals and copy them to the file; and the size counts, too, if
 * much was added since the last time.  Any thread may. */
void sp_slots_add(uint16_t slot, uint64_t bytes, uint64_t objects);

/* Declare that the owner adds to the slot before it has allocated more than
 * step_bytes since the last time.  To be called before it adds. */
void sp_slots_set_step(uint16_t slot, uint64_t step_bytes);

/* The owner checks in: how many ns after the last time?  The threads of slot 0
 * share one clock. */
uint64_t sp_slots_check_in(uint16_t slot, uint64_t now_ns);

/* What is added to the slot from now on was, or was not, allocated by a thread
 * that samples.  The owner calls it, after it has added everything; for slot 0
 * any thread. */
void sp_slots_set_sampling(uint16_t slot, bool is_sampling);

/* The owner ends: the slot is free for another thread.  Returns slot 0. */
uint16_t sp_slots_release(uint16_t slot);

/* The name that the thread with this pthread_t has got: kept with its slot, or
 * until it has one (names.h).  The calling thread's name, "" if unknown; `slot`
 * is its own. */
void sp_slots_set_name(unsigned long pthread, const char *name);
void sp_slots_name(uint16_t slot, char ret[SP_FORMAT_THREAD_NAME_MAX]);

/*
 * The calling thread has left a call by siglongjmp: give back what it held
 * here, also slots whose claim it has left, but for slot `mine`, which it goes
 * on with.  Context: sampled.
 */
void sp_slots_give_left(uint16_t mine);

/* What the owner of slot n has counted, by its size counts, and how much of
 * that it has added; false if the slot has no size counts.  The owner's. */
struct sp_slots_own {
	struct sp_size_counts *counts;
	uint64_t bytes, objects;
	uint64_t added_bytes, added_objects;
};

bool sp_slots_own(uint16_t n, struct sp_slots_own *ret);

/* Is test(thread) true for some thread that owns a slot, or shares slot 0?
 * Stops at the first.  Context: cold. */
bool sp_slots_any_owner(bool (*test)(struct sp_thread *thread));

/* Are these all threads that have counted anything since sp_slots_reset?  No,
 * if there was no memory to note one. */
bool sp_slots_know_all(void);

/* In a forked child, or for another profile: nothing is owned, all totals are
 * zero. */
void sp_slots_reset(void);
