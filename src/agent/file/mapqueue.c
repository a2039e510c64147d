/* SPDX-License-Identifier: MIT */
/*
 * I1  The state of a cell is FREE, the address of the thread that fills it, or
 *     a ticket: then its change waits.  The state is one word.  So a thread
 *     that stops or leaves at any point blocks no other thread, and the cell
 *     that it leaves behind names it.
 * I2  Tickets are unique, and rise.  A change has its ticket before it waits.
 *     So if a change with a ticket of at most T waits, each change that was put
 *     before that ticket was drawn waits too, or was taken.  A thread that
 *     first reads T and then looks at all cells misses none of them.
 * I3  `is_waiting` is set after the state.  It is cleared before the cells are
 *     looked at.
 * I4  Only the holder of the table takes, and makes a ticket FREE.
 */
#include "agent/file/mapqueue.h"

#include <stdatomic.h>
#include <stddef.h>

#include "agent/sys/sys.h"
#include "agent/thread/thread.h"

#include "agent/sys/poison.h"

#define FREE   0ull
#define TICKET 1ull /* a bit that no address of a thread has */
#define BATCH  256u
#define FEW    1024u
#define BLOCKS (SP_MAPQUEUE_MAX / FEW)

struct cells {
	_Atomic uint64_t states[FEW];
	struct sp_mapchange changes[FEW];
};

/* The others are mapped when they are first needed, once, and stay: a child has
 * them too, since what was interrupted there goes on. */
static struct cells few;
static void *_Atomic blocks[BLOCKS] = {&few};
static _Atomic uint64_t last_ticket;
static _Atomic unsigned int n_cells; /* that were ever used: the first ones */
static _Atomic unsigned int hint;    /* where a free one may be */
static _Atomic bool is_waiting;

/* The holder's: the oldest that wait, by their states. */
static struct {
	uint64_t states[BATCH];
	unsigned int cells[BATCH];
	unsigned int n;
} batch;

static struct cells *block_of(unsigned int cell)
{
	return atomic_load_explicit(&blocks[cell / FEW], memory_order_acquire);
}

static _Atomic uint64_t *state_of(unsigned int cell)
{
	return &block_of(cell)->states[cell % FEW];
}

static struct sp_mapchange *change_of(unsigned int cell)
{
	return &block_of(cell)->changes[cell % FEW];
}

/* False: there is no memory. */
static bool have_block(unsigned int cell)
{
	void *none = NULL, *fresh;

	if (block_of(cell))
		return true;
	fresh = sp_sys_map(sizeof(struct cells));
	if (!fresh)
		return false;
	if (!atomic_compare_exchange_strong(&blocks[cell / FEW], &none, fresh))
		sp_sys_unmap(fresh, sizeof(struct cells));
	return true;
}

static uint64_t own_state(void)
{
	return (uintptr_t)&sp_thread;
}

static void raise_cells(unsigned int n)
{
	unsigned int before = atomic_load(&n_cells);

	while (before < n &&
	       !atomic_compare_exchange_weak(&n_cells, &before, n))
		;
}

/* SP_MAPQUEUE_MAX: none is free. */
static unsigned int claim_cell(void)
{
	const unsigned int first =
		atomic_load_explicit(&hint, memory_order_relaxed);

	for (unsigned int i = 0; i < SP_MAPQUEUE_MAX; i++) {
		const unsigned int cell = (first + i) % SP_MAPQUEUE_MAX;
		uint64_t state = FREE;

		if (!have_block(cell))
			break;
		if (atomic_load_explicit(state_of(cell),
					 memory_order_relaxed) != FREE ||
		    !atomic_compare_exchange_strong(state_of(cell), &state,
						    own_state()))
			continue;
		atomic_store_explicit(&hint, cell + 1, memory_order_relaxed);
		raise_cells(cell + 1);
		return cell;
	}
	return SP_MAPQUEUE_MAX;
}

bool sp_mapqueue_put(const struct sp_mapchange *change)
{
	const unsigned int cell = claim_cell();
	uint64_t state = own_state();

	if (cell == SP_MAPQUEUE_MAX)
		return false;
	*change_of(cell) = *change;
	atomic_compare_exchange_strong(
		state_of(cell), &state,
		(1 + atomic_fetch_add(&last_ticket, 1)) << 1 | TICKET);
	atomic_store(&is_waiting, true);
	return true;
}

bool sp_mapqueue_any(void)
{
	return atomic_load(&is_waiting);
}

/* Among the oldest, if it is one of these.  Most come in order. */
static void add_to_batch(unsigned int cell, uint64_t state)
{
	unsigned int i = batch.n;

	if (i == BATCH && state > batch.states[BATCH - 1])
		return;
	if (i == BATCH)
		i--;
	else
		batch.n++;
	for (; i && batch.states[i - 1] > state; i--) {
		batch.states[i] = batch.states[i - 1];
		batch.cells[i] = batch.cells[i - 1];
	}
	batch.states[i] = state;
	batch.cells[i] = cell;
}

/* How many wait that have a ticket up to that one. */
static unsigned int gather_waiting(uint64_t last)
{
	const unsigned int n = atomic_load(&n_cells);
	unsigned int waiting = 0;

	batch.n = 0;
	for (unsigned int cell = 0; cell < n; cell++) {
		const uint64_t state = atomic_load(state_of(cell));

		if (!(state & TICKET) || state >> 1 > last)
			continue;
		waiting++;
		add_to_batch(cell, state);
	}
	return waiting;
}

/* If a signal handler forked in here, the cell may by now be another thread's
 * in the child. */
bool sp_mapqueue_take(sp_mapqueue_fn *fn)
{
	unsigned int waiting;

	if (!atomic_load(&is_waiting))
		return true;
	atomic_store(&is_waiting, false);
	waiting = gather_waiting(atomic_load(&last_ticket));
	for (unsigned int i = 0; i < batch.n; i++) {
		const unsigned int cell = batch.cells[i];
		const struct sp_mapchange change = *change_of(cell);
		uint64_t state = batch.states[i];

		if (atomic_load(state_of(cell)) != state)
			continue;
		fn(&change);
		atomic_compare_exchange_strong(state_of(cell), &state, FREE);
	}
	if (waiting > BATCH) {
		atomic_store(&is_waiting, true);
		return false;
	}
	atomic_store_explicit(&hint, 0, memory_order_relaxed);
	return true;
}

void sp_mapqueue_reset(void)
{
	const unsigned int n = atomic_load(&n_cells);

	atomic_store(&is_waiting, false);
	for (unsigned int cell = 0; cell < n; cell++)
		if (atomic_load(state_of(cell)) != own_state())
			atomic_store(state_of(cell), FREE);
}

unsigned int sp_mapqueue_give_left(void)
{
	const unsigned int n = atomic_load(&n_cells);
	unsigned int lost = 0;

	for (unsigned int cell = 0; cell < n; cell++) {
		uint64_t state = own_state();

		lost += atomic_compare_exchange_strong(state_of(cell), &state,
						       FREE);
	}
	atomic_store(&is_waiting, true);
	return lost;
}
