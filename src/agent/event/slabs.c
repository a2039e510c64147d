/* SPDX-License-Identifier: MIT */
#include "agent/event/slabs.h"

#include <errno.h>
#include <stdatomic.h>

#include "agent/file/liveset_each.h"
#include "agent/sys/allocator.h"
#include "agent/sys/sys.h"

#include "agent/sys/poison.h"

/* 64 MiB of answers.  Samples beyond that are left out: to ask for so many
 * takes seconds as it is. */
#define OBJECTS_MAX (4u << 20)
/* For those that come meanwhile, or are found twice. */
#define MORE 1024u

static struct sp_control_object *objects;
static size_t room;

/* A handler may leave this by a jump: rather kept than given back twice, when
 * something else may be there. */
void sp_slabs_forget(void)
{
	struct sp_control_object *const old = objects;
	const size_t bytes = room * sizeof(*old);

	objects = NULL;
	room = 0;
	atomic_signal_fence(memory_order_seq_cst);
	if (old)
		sp_sys_unmap(old, bytes);
}

static void count_one(void *arg, uint64_t address)
{
	size_t *n = arg;

	(void)address;
	++*n;
}

static bool have_room(void)
{
	size_t n = 0;

	sp_slabs_forget();
	sp_liveset_each(count_one, &n);
	if (n > OBJECTS_MAX)
		return false;
	n += n / 4 + MORE;
	objects = sp_sys_map(n * sizeof(*objects));
	room = objects ? n : 0;
	return objects;
}

struct asking {
	struct sp_allocator_slabs slabs;
	struct sp_control_slabs *ret;
	size_t left_out;
};

static void ask_one(void *arg, uint64_t address)
{
	struct asking *a = arg;

	if (a->ret->n_objects < room)
		objects[a->ret->n_objects++] =
			sp_allocator_slab_of(&a->slabs, address);
	else
		a->left_out++;
}

/* Each object is asked for as soon as it is found: a thread that frees it takes
 * it out of the set first. */
static int ask_all(struct asking *a)
{
	if (!sp_allocator_slabs(&a->slabs, a->ret))
		return -EOPNOTSUPP;
	if (!have_room())
		return -ENOMEM;
	sp_liveset_each(ask_one, a);
	a->ret->objects = (uintptr_t)objects;
	return a->left_out ? -EAGAIN : 0;
}

int sp_slabs_ask(struct sp_control_slabs *ret)
{
	struct asking a = {.ret = ret};
	uint64_t signals;
	int r;

	*ret = (struct sp_control_slabs){0};
	/* A handler that leaves by a jump would leave jemalloc's locks. */
	if (!sp_sys_block_signals(&signals))
		return -EAGAIN;
	r = ask_all(&a);
	sp_sys_restore_signals(signals);
	return r;
}
