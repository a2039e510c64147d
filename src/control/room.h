/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * Where a control group has used up its memory, the kernel kills one of its
 * processes when one of them takes a page more.  So it is asked before whether
 * the process may take `bytes` more in its control group and in those above it.
 * Pages of files that the kernel can drop, and swap space, count as free.  0,
 * also if that is not known; or -ENOMEM and *err, which says that `what` needs
 * that much.
 */
int sp_room_check(pid_t pid, uint64_t bytes, const char *what,
		  struct sp_error *err);
