/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

/*
 * The shadow log of test_kills.py: what happened, in a file that is mapped
 * shared, so that it is there whenever the process is killed.  One page of
 * head, then a region for each thread.  All little-endian 64-bit words.
 */
#define KILL_LOG_HEAD_BYTES   4096
#define KILL_LOG_THREADS      64
#define KILL_LOG_REGION_BYTES (32u << 20)
#define KILL_LOG_FREE         UINT64_MAX

/* Its first allocation: what came before was not logged. */
#define KILL_LOG_MARK_BYTES 77777

struct kill_log_head {
	_Atomic uint64_t threads; /* regions handed out */
	_Atomic uint64_t ticket;
	_Atomic uint64_t overflows; /* calls that were not logged */
};

/*
 * Tickets are in the order in which an address was had and given back: that of
 * a free is taken before the call, that of an allocation after it.
 */
struct kill_log_entry {
	uint64_t ticket;
	uint64_t address;
	uint64_t size; /* KILL_LOG_FREE, or bytes asked for */
};

struct kill_log_region {
	uint64_t tid;
	_Atomic uint64_t count; /* entries that count, stored after them */
	struct kill_log_entry entries[];
};
