/* SPDX-License-Identifier: MIT */
/*
 * Included before a source of the agent that is to be stopped in the middle:
 * atomic_step(), which the includer defines, is called between its atomic
 * operations.  Not by those that fetch and modify in one.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

static void atomic_step(void);

static inline bool and_step(bool result)
{
	atomic_step();
	return result;
}

/* What the compilers' own macros are made of. */
#ifdef __clang__
#define RAW_CAS(strong, p, old, new, yes, no)                                  \
	__c11_atomic_compare_exchange_##strong(p, old, new, yes, no)
#define RAW_LOAD(p, order) __c11_atomic_load(p, order)
#else
#define RAW_LOAD(p, order) __atomic_load_n(p, order)
#define RAW_CAS(strong, p, old, new, yes, no)                                  \
	__atomic_compare_exchange_n(p, old, new, IS_##strong, yes, no)
#define IS_strong 0
#define IS_weak   1
#endif

#undef atomic_load_explicit
#undef atomic_load
#undef atomic_store
#undef atomic_compare_exchange_strong
#undef atomic_compare_exchange_weak
#undef atomic_compare_exchange_strong_explicit
#undef atomic_compare_exchange_weak_explicit
#define atomic_load_explicit(p, order)                                         \
	__extension__({                                                        \
		__auto_type loaded = RAW_LOAD(p, order);                       \
		atomic_step();                                                 \
		loaded;                                                        \
	})
#define atomic_load(p) atomic_load_explicit(p, memory_order_seq_cst)
#define atomic_store(p, v)                                                     \
	(atomic_step(), atomic_store_explicit(p, v, memory_order_seq_cst))
#define atomic_compare_exchange_strong_explicit(p, old, new, yes, no)          \
	(atomic_step(), and_step(RAW_CAS(strong, p, old, new, yes, no)))
#define atomic_compare_exchange_weak_explicit(p, old, new, yes, no)            \
	(atomic_step(), and_step(RAW_CAS(weak, p, old, new, yes, no)))
#define atomic_compare_exchange_strong(p, old, new)                            \
	atomic_compare_exchange_strong_explicit(                               \
		p, old, new, memory_order_seq_cst, memory_order_seq_cst)
#define atomic_compare_exchange_weak(p, old, new)                              \
	atomic_compare_exchange_weak_explicit(                                 \
		p, old, new, memory_order_seq_cst, memory_order_seq_cst)
/* The filter is published by it. */
#define __atomic_store_n(p, v, order)                                          \
	(atomic_step(), __atomic_store_n(p, v, order))
