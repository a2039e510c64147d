/* SPDX-License-Identifier: MIT */
#include "read/running.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/* It has the file mapped: another process may have its number by now. */
bool sp_running(const struct sp_file_header *header, ino_t inode)
{
	char path[64], line[4096], number[32];
	bool mapped = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/maps", header->pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	snprintf(number, sizeof(number), " %" PRIuMAX " ", (uintmax_t)inode);
	while (!mapped && fgets(line, sizeof(line), f))
		mapped = strstr(line, number) != NULL &&
			 strstr(line, " rw-s ") != NULL;
	fclose(f);
	return mapped;
}

/* The wall clock may have been set since the start; what was published is past
 * in any case. */
uint64_t sp_running_now_ns(const struct sp_file_header *header,
			   const struct sp_status *status)
{
	const uint64_t now_ns = sp_clock_unix_ns() - header->start_unix_ns;

	return now_ns > status->time_ns ? now_ns : status->time_ns;
}
