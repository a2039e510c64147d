/* SPDX-License-Identifier: MIT */
#include "read/running.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/proc.h"

/* It has the file mapped: another process may have its number by now. */
bool sp_running(const struct sp_file_header *header, int fd)
{
	const int dir = sp_proc_open(header->pid);
	struct sp_proc_file file;
	bool is_written;

	if (dir < 0)
		return false;
	is_written =
		sp_proc_name_file(fd, &file) == 0 && sp_proc_writes(dir, &file);
	close(dir);
	return is_written;
}

/* The wall clock may have been set since the start; what was published is past
 * in any case. */
uint64_t sp_running_now_ns(const struct sp_file_header *header,
			   const struct sp_status *status)
{
	const uint64_t now_ns = sp_clock_unix_ns() - header->start_unix_ns;

	return now_ns > status->time_ns ? now_ns : status->time_ns;
}
