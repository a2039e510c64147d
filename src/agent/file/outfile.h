/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * The profile file as an object of the file system: its name, its creation, its
 * mapping.  The file is created exclusively, sized to its limit at once (it is
 * sparse), mapped shared, and its descriptor is closed before anything else
 * happens, so that nothing the program does to descriptors can reach it.
 */

#define SP_OUTFILE_PATH_MAX 4096

/*
 * Remember where the file goes: `pattern` (SAMPLEPROF_OUT) made absolute, since
 * the program may change its directory before the file is needed.  False: the
 * name is too long.  Context: cold.
 */
bool sp_outfile_prepare(const char *pattern, const char *exe_path,
			const char *host, uint64_t start_unix_s);

struct sp_outfile {
	uint8_t *base;   /* first `mapped` bytes of the file */
	uint64_t mapped; /* at most what was asked for */
	uint64_t limit;  /* size of the file */
	bool moves;      /* a page that was backed may need storage again */
};

/* What the file may have. */
struct sp_outfile_limit {
	uint64_t bytes;
	uint32_t room_share; /* 1 / this of the free room of its disk; 0: all */
};

/*
 * Create the file with the bytes of its limit (less if RLIMIT_FSIZE or the file
 * system says so) and map the first `window` of them.  If the name is taken, a
 * number goes into it; but if it is taken by what this process (pid,
 * start_ticks; 0: not known) was before it executed another program, that file
 * gets the number.  0, or a negative errno.  Context: cold for the program that
 * was started with us; for its descendants the first sample.
 */
int sp_outfile_create(uint64_t pid, uint64_t start_ticks,
		      const struct sp_outfile_limit *limit, uint64_t window,
		      struct sp_outfile *ret);

/* Remove the file: nothing could be written to it, or nobody wants it.
 * Context: cold, and where system calls are not filtered. */
void sp_outfile_discard(void);

/*
 * Cut the file to `bytes`, if its name still leads to it and it may be opened.
 * The caller makes sure that no thread stores behind that.  Context: cold, and
 * where system calls are not filtered.
 */
void sp_outfile_shorten(uint64_t bytes);

/* Children that are forked from now on do not have this part of the file
 * mapped.
 */
void sp_outfile_keep_from_children(uint8_t *at, uint64_t bytes);

/* A second mapping of the file: `bytes` from where `at` (the beginning of a
 * mapped chunk) is in it, not inherited by children.  NULL on failure. Context:
 * sampled. */
uint8_t *sp_outfile_map_more(uint8_t *at, uint64_t bytes);

/*
 * Have the first `bytes` of a new file at `at` backed by storage, and find out
 * how that is done here.  0; -ENOSPC: the disk is full; -EOPNOTSUPP: the kernel
 * has no way in which a full disk is not a signal; or another negative errno.
 * Context: as sp_outfile_create.
 */
int sp_outfile_begin(uint8_t *at, uint64_t bytes);

/* Have `bytes` at `at` backed by storage: false if the disk is full.  Context:
 * sampled. */
bool sp_outfile_populate(uint8_t *at, uint64_t bytes);

/* No thread needs `bytes` at `at` for now: they stay in the file, but no longer
 * count as memory of the program.  Context: sampled. */
void sp_outfile_release(uint8_t *at, uint64_t bytes);

/*
 * In a file that `moves`: have what was populated before backed again, so that
 * it can be stored to now.  False if the disk is full; true, too, if the system
 * does not answer (a sandbox).  Context: sampled.
 */
bool sp_outfile_hold(uint8_t *at, uint64_t bytes);

/*
 * Does a slow yes of sp_outfile_hold() count?  Not if the file system may have
 * had to search for room: it writes out what it can meanwhile, and that may be
 * what it was asked for, which needs room once more then.  It need not search
 * if the disk has 16 MiB, as it was when it could be asked last: not in a
 * sandbox, nor where the file's name leads elsewhere.  On XFS what is written
 * out has left what it shared with a copy, and stays.  Context: sampled.
 */
bool sp_outfile_may_be_slow(void);

/* From now on a system call about the disk may be the program's end. */
void sp_outfile_enter_sandbox(void);

/* Is the file made last on tmpfs, whose pages count as memory of the control
 * group that first touched them? */
bool sp_outfile_is_in_memory(void);

/* The absolute pattern, and the name of the file made last ("" if none). */
const char *sp_outfile_pattern(void);
const char *sp_outfile_name(void);
