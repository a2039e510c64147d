/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Files that processes have mapped as code, kept while that is so: at the end
 * of a program they may be deleted, replaced or unmounted.  What is on a file
 * system that was mounted later is copied into memory, so that it can be
 * unmounted; all else is kept open.  How files are opened: control/mapped.h.
 *
 * For one thread at a time, but for sp_kept_stop().
 */
struct sp_kept;

/* Free it; NULL: no memory. */
struct sp_kept *sp_kept_new(void);
void sp_kept_free(struct sp_kept *kept);

/* The file at `path`, before a program is started from it. */
void sp_kept_add(struct sp_kept *kept, const char *path);

/* What the process has mapped now; what cannot be opened is left out, and what
 * is not seen within SP_KEPT_LOOK_NS. */
#define SP_KEPT_LOOK_NS 1000000000u
void sp_kept_look(struct sp_kept *kept, uint64_t pid);

/* The same for all processes that descend from this one; that time is for all
 * of them. */
void sp_kept_look_below(struct sp_kept *kept);

/* From any thread: nothing more is to be kept, and a look that is under way
 * ends soon. */
void sp_kept_stop(struct sp_kept *kept);

/*
 * The files that cannot be found any more by their names, as this process sees
 * them when it asks for the first time: for the i-th, a name that leads a child
 * of this process there (ret_file), and what the kernel called it, without "
 * (deleted)".  NULL: there are no more.  They are open in every child from now
 * on.
 */
#define SP_KEPT_FILE_BYTES 32
const char *sp_kept_gone(struct sp_kept *kept, size_t i,
			 char ret_file[SP_KEPT_FILE_BYTES]);

/* Of the files that cannot be found any more, those that there was no room or
 * no time for: files of processes of this user alone.  If there were so many
 * that not all are known, one more. */
size_t sp_kept_left_out(struct sp_kept *kept);
