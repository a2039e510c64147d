/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "read/load.h"

/* ---- one user's rights ---- */

#define SP_RIGHTS_GROUPS_MAX 1024

struct sp_rights {
	uid_t user;
	gid_t group;
	gid_t groups[SP_RIGHTS_GROUPS_MAX];
	int n_groups;
	char words[96]; /* "user www-data (uid 33)" */
};

/* Of a user that nobody knows: that number, and no group that gives anything
 * away. */
void sp_rights_of(uid_t user, struct sp_rights *ret);

/* Of a user's name or number; false: there is no such user. */
bool sp_rights_find(const char *text, struct sp_rights *ret);

/* Root acts in file systems as that user, or as itself again (NULL).  0; or
 * -EPERM and *err: these rights are not to be had. */
int sp_rights_act(const struct sp_rights *rights, const char *file,
		  struct sp_error *err);

/* ---- work in a process of its own ---- */

/*
 * The work reads files that somebody else may have made to mislead it, to crash
 * it or to let it wait.  So it is done by a child, which gives up root for good
 * and has no other descriptors than those that it needs.  Whatever becomes of
 * the child, this process goes on, within a time that is bounded.
 */
#define SP_APART_ANSWER_MAX 640

/* Of a child that says nothing; and of all. */
#define SP_APART_SILENCE_MS 300000u
#define SP_APART_ALL_NS     (4u * 3600000000000u)

struct sp_apart {
	const char *file; /* what the work is about, for messages */
	const struct sp_rights *rights; /* NULL: those of this process */
	const int *kept;                /* descriptors that the work needs */
	size_t n_kept;
	unsigned int silence_ms;  /* a child that is silent so long is killed */
	uint64_t all_ns;          /* likewise one that has worked so long */
	sp_progress_fn *progress; /* NULL: it is not shown */
	void *progress_arg;
	/* In the child: 0 and the answer, all zero before; or a negative errno
	 * and *err. */
	int (*work)(void *arg, void *answer, struct sp_error *err);
	void *arg;
};

/*
 * 0 and the answer of the work.  What the work returned, with its *err; or
 * -EOWNERDEAD: the child has crashed, or was killed; -ETIME: it was silent, or
 * took too long; -EPERM: the rights are not to be had; or -errno; and *err,
 * whose file lives until the next call.  The answer is whatever that user
 * likes, if the child was misled.
 */
int sp_apart_run(const struct sp_apart *apart, void *answer, size_t bytes,
		 struct sp_error *err);

/* Of the work: it goes on, and how far it has come; total 0: it is not known.
 */
void sp_apart_progress(void *unused, uint64_t done, uint64_t total);
