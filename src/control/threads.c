/* SPDX-License-Identifier: MIT */
#include "control/threads.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/proc.h"

static int add_thread(struct sp_threads *threads, size_t *room, pid_t tid)
{
	if (threads->n == *room) {
		const size_t more = 2 * *room + 16;
		pid_t *grown = realloc(threads->tids, more * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		threads->tids = grown;
		*room = more;
	}
	threads->tids[threads->n++] = tid;
	return 0;
}

int sp_threads_list(pid_t pid, struct sp_threads *ret)
{
	struct dirent *entry;
	char path[64];
	size_t room = 0;
	uint64_t tid;
	int r = 0;
	DIR *dir;

	*ret = (struct sp_threads){NULL, 0};
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	r = add_thread(ret, &room, pid);
	while (r == 0 && (entry = readdir(dir)) != NULL)
		if (sp_parse_u64(entry->d_name, &tid) && (pid_t)tid != pid)
			r = add_thread(ret, &room, (pid_t)tid);
	closedir(dir);
	if (r < 0)
		sp_threads_free(ret);
	return r;
}

void sp_threads_free(struct sp_threads *threads)
{
	free(threads->tids);
	*threads = (struct sp_threads){NULL, 0};
}

struct sp_threads_state sp_threads_look(pid_t pid, pid_t tid)
{
	struct sp_threads_state ret = {.is_ending = true};
	struct sp_proc_lines l = {
		.in = sp_proc_open_file("/proc/%d/task/%d/status", pid, tid)};
	char state;

	while (sp_proc_next(&l)) {
		if (sscanf(l.line, "State: %c", &state) == 1) {
			ret.is_ending = strchr("ZXx", state);
			ret.is_held = state == 'D';
		}
		sscanf(l.line, "TracerPid: %d", &ret.tracer);
	}
	return ret;
}
