/* SPDX-License-Identifier: MIT */
#pragma once

#include "agent/file/stack.h"

/*
 * The lines of a program that is interpreted, as frames of a stack, which the
 * file explains once.
 */

/*
 * Put the Python frames of a resolved walk behind the C frames that run them,
 * as if they called these, in lane->frames[0..walk->n), and their names into
 * the file.  What is then beyond `depth` is left out, and a frame without a
 * name or without room in the file (loss counted).  Context: sampled.
 */
void sp_places_merge(struct sp_lane *lane, unsigned int depth,
		     struct sp_stack_walk *walk);

/* Into the file, once: a version of Python that was met and cannot be read.
 * Context: sampled. */
void sp_places_say_unread(struct sp_lane *lane);

/* In a forked child: its file knows none yet. */
void sp_places_reset(void);
