/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Files that a process may serve (FUSE), which are not to be kept open
 * (base/patience.h), and copies of them.  All of these take descriptors by
 * O_PATH too, and ask nobody but for the copies.  Offline code only.
 *
 * `dir` is the process (sp_proc_open()) whose mounts they may be on, or
 * negative: only ours.
 */

/* A mount that we do not know counts as served. */
bool sp_served_is(int dir, int fd);

/* Is it in memory, or on a mount that we have too and no process serves? */
bool sp_served_answers_always(int dir, int fd);

/* The number in mountinfo of the mount that an open file was reached through;
 * 0: not known. */
uint64_t sp_served_mount(int fd);

/* A copy in memory of so many bytes of an open file.  -ETIMEDOUT: there is no
 * room for it, no answer, no time any more, or *is_over (may be NULL) has
 * become true; or -errno: no copy can be made. */
int sp_served_copy(int fd, off_t bytes, uint64_t until_ns,
		   const atomic_bool *is_over);

/* What is left for copies: first 1 GiB and 10 s. */
struct sp_served_room {
	uint64_t bytes, until_ns;
};
struct sp_served_room sp_served_room(void);

/* The open file itself or, if a process serves it, a copy that takes of the
 * room.  Closes `fd` if it is another.
 * Errors are those of sp_served_copy(). */
int sp_served_keep(int fd, struct sp_served_room *room);

/* The same for the files that profiles, and what these name, have named: 1 GiB
 * and 30 s of each minute, for all of them together.  What takes of it says so:
 * the time since then, and bytes. */
struct sp_served_room sp_served_room_named(void);
void sp_served_use_named(uint64_t since_ns, uint64_t bytes);
