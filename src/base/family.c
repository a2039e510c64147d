/* SPDX-License-Identifier: MIT */
#include "base/family.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bisect.h"
#include "base/clock.h"
#include "base/order.h"
#include "base/parse.h"
#include "base/proc.h"

/* The list, which is also the queue of those whose children are not known yet.
 */
struct found {
	uint64_t *pids; /* the first is the one that was asked about */
	size_t n, room;
	uint64_t until_ns;
};

static bool is_time_over(const struct found *f)
{
	return sp_clock_ns() >= f->until_ns;
}

static int add_pid(struct found *f, uint64_t pid)
{
	if (sp_array_reserve((void **)&f->pids, &f->room, f->n,
			     sizeof(*f->pids)))
		return -ENOMEM;
	f->pids[f->n++] = pid;
	return 0;
}

/* Takes the list over. */
static int end_list(struct found *f, int r, struct sp_family *ret)
{
	*ret = (struct sp_family){.pids = f->pids};
	if (r < 0) {
		sp_family_free(ret);
		return r;
	}
	ret->n = f->n - 1;
	for (size_t i = 0; i < ret->n; i++)
		ret->pids[i] = ret->pids[i + 1];
	return 0;
}

void sp_family_free(struct sp_family *family)
{
	free(family->pids);
	*family = (struct sp_family){0};
}

/* ---- by the children of every thread ---- */

static int add_children_of_thread(struct found *f, uint64_t pid,
				  const char *tid)
{
	char path[300];
	uint64_t child;
	FILE *in;
	int r = 0;

	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/task/%s/children", pid,
		 tid);
	in = fopen(path, "re");
	while (in && r == 0 && !is_time_over(f) &&
	       fscanf(in, "%" SCNu64, &child) == 1)
		r = add_pid(f, child);
	if (in)
		fclose(in);
	return r;
}

static int add_children(struct found *f, uint64_t pid)
{
	char path[64];
	struct dirent *entry;
	uint64_t tid;
	DIR *tasks;
	int r = 0;

	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/task", pid);
	tasks = opendir(path);
	while (tasks && r == 0 && !is_time_over(f) &&
	       (entry = readdir(tasks)) != NULL)
		if (sp_parse_u64(entry->d_name, &tid))
			r = add_children_of_thread(f, pid, entry->d_name);
	if (tasks)
		closedir(tasks);
	return r;
}

int sp_family_by_children(uint64_t pid, uint64_t until_ns,
			  struct sp_family *ret)
{
	struct found f = {.until_ns = until_ns};
	char own[64];
	int r;

	snprintf(own, sizeof(own), "/proc/self/task/%ld/children",
		 (long)getpid());
	*ret = (struct sp_family){0};
	if (access(own, R_OK) != 0)
		return -ENOSYS;
	r = add_pid(&f, pid);
	for (size_t i = 0; i < f.n && r == 0 && !is_time_over(&f); i++)
		r = add_children(&f, f.pids[i]);
	return end_list(&f, r, ret);
}

/* ---- by the parent of every process ---- */

struct process {
	uint64_t parent, pid;
};

SP_ORDER(compare_parents, struct process, SP_UP(parent) || SP_UP(pid));

static int list_processes(const struct found *f, struct process **ret_list,
			  size_t *ret_n)
{
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	size_t room = 0;
	uint64_t pid;
	int r = 0;

	while (proc && r == 0 && !is_time_over(f) &&
	       (entry = readdir(proc)) != NULL) {
		if (!sp_parse_u64(entry->d_name, &pid))
			continue;
		r = sp_array_reserve((void **)ret_list, &room, *ret_n,
				     sizeof(**ret_list));
		if (r == 0)
			(*ret_list)[(*ret_n)++] =
				(struct process){sp_proc_parent(pid), pid};
	}
	if (proc)
		closedir(proc);
	return r;
}

/* The first of those with that parent in a sorted list. */
static size_t find_children(const struct process *list, size_t n,
			    uint64_t parent)
{
	size_t at;

	SP_LOWER_BOUND(at, n, list[at].parent < parent);
	return at;
}

int sp_family_by_parents(uint64_t pid, uint64_t until_ns, struct sp_family *ret)
{
	struct found f = {.until_ns = until_ns};
	struct process *list = NULL;
	size_t n = 0;
	int r = list_processes(&f, &list, &n);

	if (n)
		qsort(list, n, sizeof(*list), compare_parents);
	if (r == 0)
		r = add_pid(&f, pid);
	/* Each process is in the list once, so each is added once at most. */
	for (size_t i = 0; i < f.n && r == 0; i++)
		for (size_t k = find_children(list, n, f.pids[i]);
		     r == 0 && k < n && list[k].parent == f.pids[i]; k++)
			r = list[k].pid == pid ? 0 : add_pid(&f, list[k].pid);
	free(list);
	return end_list(&f, r, ret);
}

int sp_family_find(uint64_t pid, uint64_t until_ns, struct sp_family *ret)
{
	const int r = sp_family_by_children(pid, until_ns, ret);

	return r == -ENOSYS ? sp_family_by_parents(pid, until_ns, ret) : r;
}

bool sp_family_has(uint64_t from, uint64_t pid)
{
	/* A number that is used again meanwhile may not make a ring. */
	for (int i = 0; i < 1000 && pid; i++) {
		pid = sp_proc_parent(pid);
		if (pid == from)
			return pid != 0;
	}
	return false;
}
