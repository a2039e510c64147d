/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

/* A line of a log, with the time (UTC) before it, written at once.  What is
 * untrusted in it is cleaned; at most 1,000 bytes. */
void sp_log(FILE *log, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
