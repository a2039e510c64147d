/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

/*
 * From here on standard output goes through $PAGER, or through less, if it is a
 * terminal: as git does.  An empty PAGER, "cat", TERM=dumb, or a pager that
 * cannot be run: it stays as it is.
 */
void sp_pager_start(void);

/* Does standard output go to a pager? */
bool sp_pager_is_on(void);

/* Once standard output is closed: until the reader has left the pager. */
void sp_pager_wait(void);
