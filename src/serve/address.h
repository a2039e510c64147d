/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/place.h"

/* Where a server listens: HOST:PORT or [HOST]:PORT, a number each, or
 * unix:PATH. */

/* Is that an address? */
bool sp_address_check(const char *text);

bool sp_address_is_unix(const char *text);

/* Can only this host reach it? */
bool sp_address_is_local(const char *text);

/* A socket that listens.  A Unix socket is for its owner alone. */
struct sp_listener {
	int fd;
	unsigned int port;     /* 0 of a Unix socket */
	struct sp_place place; /* of a Unix socket; else without directory */
};

/*
 * Listen at an address that sp_address_check() takes.  A Unix socket of ours
 * at which nobody listens is replaced.  0, or negative errno and *err.
 */
int sp_listener_open(const char *address, struct sp_listener *ret,
		     struct sp_error *err);

/* Remove a Unix socket.  The descriptor stays open. */
void sp_listener_done(struct sp_listener *listener);
