/* SPDX-License-Identifier: MIT */
#ifndef SP_AGENT_SLOTS_H
#define SP_AGENT_SLOTS_H

#include <stdint.h>

/*
 * Exact totals.  A thread owns a slot while it lives and adds what it has
 * allocated whenever it checks in; a slot goes from one thread to the next with
 * its totals, so the sum over all slots is the process's total at any time.
 * Slot 0 is nobody's: threads that found no other, or have ended, add to it.
 *
 * The totals live here and are copied into the profile file when there is one.
 */
struct sp_slot_owner;

/* A slot for thread `index` (loss counted if it is the shared one). */
struct sp_slot_owner *sp_slots_claim(uint32_t index);

/* Add to the totals and copy them to the file.  Any thread may. */
void sp_slots_add(struct sp_slot_owner *slot, uint64_t bytes, uint64_t objects);

/* The owner ends: the slot is free for another thread.  Returns slot 0. */
struct sp_slot_owner *sp_slots_release(struct sp_slot_owner *slot);

/* The name that the program gave to the thread with this pthread_t: kept with
 * its slot.  The present thread's name, "" if unknown. */
void sp_slots_set_name(unsigned long pthread, const char *name);
const char *sp_slots_name(const struct sp_slot_owner *slot);

/* Kernel's id of the calling thread as its C library knows it: no system call.
 */
uint64_t sp_slots_tid(void);

/* Copy every slot into a file that was just made, or is about to end. */
void sp_slots_flush_all(void);

/* Sum over all slots. */
void sp_slots_total(uint64_t *ret_bytes, uint64_t *ret_objects);

/* In a forked child: nothing is owned, all totals are zero. */
void sp_slots_reset(void);

#endif
