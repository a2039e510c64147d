/* SPDX-License-Identifier: MIT */
/*
 * What looks like libunwind to the one that maps it, and aborts at its third
 * step; and what else an image can have.
 */
#include <stddef.h>

void abort(void);
void *calloc(size_t n, size_t bytes);
long false_given(long n);
long false_absent(void) __attribute__((weak));

static long steps = 40;
/* A word that says where another one is. */
static long *const volatile at_steps = &steps;
static long zeros[3000];
static _Thread_local long own;

long false_add(long n);
long *false_own(void);
long false_steps(void);
long false_has_absent(void);
void *_Ux86_64_create_addr_space(void *accessors, int order);
int _Ux86_64_init_remote(void *cursor, void *space, void *arg);
int _Ux86_64_step(void *cursor);
int _Ux86_64_get_reg(void *cursor, int i, unsigned long *value);
int _Ux86_64_is_signal_frame(void *cursor);
int _Ux86_64_dwarf_search_unwind_table(void);

long false_add(long n)
{
	zeros[2999]++;
	return *at_steps + false_given(n) + zeros[2999];
}

long *false_own(void)
{
	return &own;
}

long false_steps(void)
{
	return *at_steps;
}

long false_has_absent(void)
{
	return false_absent ? false_absent() : 0;
}

void *_Ux86_64_create_addr_space(void *accessors, int order)
{
	(void)accessors;
	return calloc(1, 64 + (size_t)order);
}

int _Ux86_64_init_remote(void *cursor, void *space, void *arg)
{
	(void)cursor;
	(void)space;
	(void)arg;
	return 0;
}

int _Ux86_64_step(void *cursor)
{
	(void)cursor;
	if (++*at_steps > 42)
		abort();
	return 1;
}

int _Ux86_64_get_reg(void *cursor, int i, unsigned long *value)
{
	(void)cursor;
	*value = (unsigned long)i;
	return 0;
}

int _Ux86_64_is_signal_frame(void *cursor)
{
	(void)cursor;
	return 0;
}

int _Ux86_64_dwarf_search_unwind_table(void)
{
	return -1;
}
