/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * A thread of another process that is run before others for the moment: on a
 * busy machine it would mostly wait for a processor.  Only root may do that;
 * for others nothing changes.  May be in memory that processes share: whoever
 * is left ends it.
 */
struct sp_hurry {
	pid_t tid; /* 0: nobody */
	int nice;  /* what it has otherwise */
	bool is_first, is_changed;
};

/* False: it has a policy of its own, and is let be. */
bool sp_hurry_begin(struct sp_hurry *h, pid_t tid);

/* Before all, until sp_hurry_calm, and before others of its kind, until
 * sp_hurry_end; or until it makes itself what it was, which whoever is killed
 * meanwhile can rely on. */
void sp_hurry_first(struct sp_hurry *h);
void sp_hurry_calm(struct sp_hurry *h);

/* As it was, until sp_hurry_first. */
void sp_hurry_pause(struct sp_hurry *h);
void sp_hurry_end(struct sp_hurry *h);
