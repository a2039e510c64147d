/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/* An answer of a server that is here already: what stands in fleet/http.h for
 * its readers, without fleet/http.c. */
struct sp_http {
	const unsigned char *bytes;
	size_t n, at;
};
