/* SPDX-License-Identifier: MIT */
#pragma once

#include "format/layout.h"

/*
 * What jemalloc says of each sampled object that is alive, for another process
 * that asks for it (`sampleprof rss --pins`).  0; -EOPNOTSUPP: the allocator is
 * not jemalloc, or is a jemalloc that does not say; -ENOMEM; -EAGAIN: so many
 * objects came meanwhile that some are missing.  Context: an order; one thread
 * at a time.
 */
int sp_slabs_ask(struct sp_control_slabs *ret);

/* The objects of the last answer are not needed any more.  Context: likewise,
 * or as sp_remote_reset(). */
void sp_slabs_forget(void);
