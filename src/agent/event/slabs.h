/* SPDX-License-Identifier: MIT */
#pragma once

#include "format/layout.h"

/*
 * What jemalloc says of each sampled object that is alive, for who asks from
 * outside.  0; -EOPNOTSUPP: it is not jemalloc, or one that does not say;
 * -ENOMEM; -EAGAIN: so many objects came meanwhile that not all are there.
 * Context: an order, which nobody else carries out at the same time.
 */
int sp_slabs_ask(struct sp_control_slabs *ret);

/* The objects of the last answer are not needed any more.  Context: likewise,
 * or as sp_remote_reset(). */
void sp_slabs_forget(void);
