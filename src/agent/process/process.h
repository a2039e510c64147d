/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/process/config.h"
#include "agent/process/memory_limit.h"
#include "agent/process/origin.h"
#include "agent/thread/sampler.h"

/* Of a program that was running before the library was loaded into it. */
struct sp_process_attached {
	bool is_it;
	uintptr_t main_thread; /* its control block; 0: the calling one's */
	uint64_t age_ms;       /* since the process began */
	/* What was alive, as the allocator counts it. */
	bool knows_before;
	uint64_t before_bytes;
};

/* ENDED: as NOTHING, and only attaching begins it again. */
enum sp_process_phase {
	SP_PROCESS_NOTHING,
	SP_PROCESS_STARTING,
	SP_PROCESS_RUNNING,
	SP_PROCESS_OFF,
	SP_PROCESS_ENDED,
};

/*
 * What there is to know about the process: settings, identity, and the facts
 * that the profile has.  Written while the process starts; afterwards only
 * a forked child changes its seed, and the atomics count.
 */
struct sp_process {
	_Atomic int phase; /* enum sp_process_phase; lifecycle.c changes it */
	/* Changes in a forked child; 1.. */
	_Atomic uint32_t generation;
	_Atomic uint32_t threads; /* seen so far, in this generation */
	struct sp_process_attached attached;
	struct sp_config config;
	struct sp_law law;
	bool follows_frees; /* there is a live set */
	bool records_all;   /* or every free is recorded, by its address */
	bool has_no_file;   /* on request: the samples are for probes alone */
	uint64_t seed;
	uint64_t start_unix_ns;
	uint64_t start_clock_ns;
	char exe_path[4096];
	char host[SP_ORIGIN_HOST_BYTES];
	char container[SP_ORIGIN_CONTAINER_BYTES];
	struct sp_memory_limit limit; /* at the start */
	/* Of a process that was drawn, which its forked children share. */
	uint64_t draw;
	/* No ancestor is profiled: the user started this very process under the
	 * profiler, so that it leaves a file in any case. */
	bool is_root;
	bool is_child;            /* it was forked under us */
	bool follows_forks;       /* its forked children are to be recorded */
	_Atomic bool constructed; /* the late facts are known */
	_Atomic bool is_ending;   /* it is past our destructor */
	/* Files may not be opened any more: it filters system calls. */
	bool is_sandboxed;
	int file_error; /* why there is no file, negative errno */
	char diagnosis[512];
	char linked[256]; /* mallocs of the program that are diverted */
	char missed[256]; /* those of them that may have been called before */
	char unseen[256]; /* the functions of bypass.c, by name */
	/* A page that a forked child does not have as it was: it is zero there
	 * (`is_wiped`), or not there.  NULL: there is none. */
	uint32_t *alive;
	bool is_wiped;
};

/* This one. */
extern struct sp_process sp_process __attribute__((visibility("hidden")));

/* Is anything being counted in it? */
static inline bool sp_process_is_running(void)
{
	return atomic_load(&sp_process.phase) == SP_PROCESS_RUNNING;
}

/*
 * Settings from the environment and facts from the kernel.  False: this process
 * is to be left alone (set-uid, not drawn, unusable settings, nowhere to
 * write); the last two have been said on standard error unless quiet.
 * Context: cold.
 */
bool sp_process_init(struct sp_process *process, char *const *environment);

/* Is this process recorded, if so many millionths of all processes are?
 * `random` is uniform over 64 bits. */
bool sp_process_is_drawn(uint64_t random, uint64_t fraction_millionths);

/* Create the profile file.  0, -EBUSY, or a negative errno. */
int sp_process_open_file(struct sp_process *process);

/* Say on standard error why there is no file. */
void sp_process_explain_file(const struct sp_process *process);

typedef void sp_process_emit(void *arg, const char *key, const char *value,
			     uint64_t value_bytes);

/* Facts for the file; the late ones are known after construction. */
void sp_process_describe(const struct sp_process *process,
			 sp_process_emit *emit, void *arg);
void sp_process_describe_late(const struct sp_process *process,
			      sp_process_emit *emit, void *arg);
/* Facts that are known at the end; files are opened for them. */
void sp_process_describe_end(sp_process_emit *emit, void *arg);

/* Say on standard error, and keep for the file, why the profile may be empty or
 * poor: three parts, concatenated. */
void sp_process_diagnose(struct sp_process *process, const char *a,
			 const char *b, const char *c);

/* Find the functions that allocate and do not come by this library, in
 * `unseen`, and say why (bypass.c).  What is allocated meanwhile is not to be
 * counted.  Context: cold, with a preloaded library. */
void sp_process_explain_bypass(struct sp_process *process);

/* The same for the allocators of the program's that were found since the last
 * time.  False: none was. */
bool sp_process_explain_linked(struct sp_process *process);

/* Are we in a forked child that has not been noticed yet?  A system
 * call where memory is not wiped in a child (`is_wiped`), else none. */
bool sp_process_is_new(const struct sp_process *process);
void sp_process_mark_seen(struct sp_process *process);

/* A forked child draws other samples than its parent. */
void sp_process_reseed(struct sp_process *process);
