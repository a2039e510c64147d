/* SPDX-License-Identifier: MIT */
#include "agent/file/names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>

#include "agent/thread/inside.h"

#include "agent/sys/poison.h"

struct entry {
	sp_inside_lock busy; /* of all below */
	uint64_t tid;        /* 0: none, or its holder has left */
	char name[SP_FORMAT_THREAD_NAME_MAX];
};

static struct entry entries[SP_NAMES_MAX];
static char of_all[SP_FORMAT_THREAD_NAME_MAX];
static _Atomic bool are_alike; /* nobody was named: of_all is right */

/* Thread ids follow one another. */
static struct entry *take_entry(uint64_t tid)
{
	struct entry *e = &entries[tid % SP_NAMES_MAX];

	return tid && sp_inside_hold(&e->busy) ? e : NULL;
}

static void give_entry(struct entry *e)
{
	sp_inside_give(&e->busy);
}

static void copy_name(char *to, const char *name)
{
	size_t n = 0;

	for (; name[n] && n + 1 < SP_FORMAT_THREAD_NAME_MAX; n++)
		to[n] = name[n];
	memset(to + n, 0, SP_FORMAT_THREAD_NAME_MAX - n);
}

void sp_names_begin(const char *name)
{
	if (!atomic_load(&are_alike))
		memset(entries, 0, sizeof(entries));
	copy_name(of_all, name);
	atomic_store(&are_alike, true);
}

void sp_names_begin_program(const char *path)
{
	/* By what the kernel was told: a script, and not what runs it. */
	const char *told = (const char *)getauxval(AT_EXECFN);
	const char *name;

	if (told)
		path = told;
	name = path;
	for (; *path; path++)
		if (*path == '/')
			name = path + 1;
	sp_names_begin(name);
}

void sp_names_put(uint64_t tid, const char *name)
{
	struct entry *e = take_entry(tid);

	if (e) {
		e->tid = 0;
		atomic_signal_fence(memory_order_seq_cst);
		copy_name(e->name, name);
		atomic_signal_fence(memory_order_seq_cst);
		e->tid = tid;
		give_entry(e);
	}
	atomic_store(&are_alike, false);
}

void sp_names_give_left(void)
{
	for (unsigned int i = 0; i < SP_NAMES_MAX; i++)
		sp_inside_give_left(&entries[i].busy);
}

void sp_names_forget(uint64_t tid)
{
	struct entry *e = take_entry(tid);

	if (!e)
		return;
	if (e->tid == tid)
		e->tid = 0;
	give_entry(e);
}

void sp_names_get(uint64_t tid, char ret[SP_FORMAT_THREAD_NAME_MAX])
{
	struct entry *e = take_entry(tid);
	bool is_there = e && e->tid == tid;

	copy_name(ret, is_there                  ? e->name
		       : atomic_load(&are_alike) ? of_all
						 : "");
	if (e)
		give_entry(e);
}
