/* SPDX-License-Identifier: MIT */
#ifndef SP_PROFILE_PROFILE_H
#define SP_PROFILE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "format/layout.h"
#include "profile/estimator.h"

/*
 * One profile file in memory, aggregated by distinct stack: memory grows with
 * the number of distinct stacks, threads and modules, never with the number of
 * samples.  Everything is owned by the profile.
 */

/* How the profiled process ended, as far as the file and this machine tell. */
enum sp_profile_end {
	SP_PROFILE_END_CLEAN,   /* our destructor ran: exit() or end of main */
	SP_PROFILE_END_KILLED,  /* killed, _exit, exec: no clean end recorded */
	SP_PROFILE_END_RUNNING, /* the process is still there */
};

struct sp_module {
	uint32_t id;       /* 1.. in order of appearance; 0 is "no module" */
	uint64_t start_pc; /* first mapped address */
	uint64_t end_pc;   /* one past the last */
	uint64_t bias;     /* run-time address minus ELF virtual address */
	const char *path;  /* as the loader named it; untrusted text */
	uint8_t build_id[SP_FORMAT_BUILD_ID_MAX];
	uint32_t build_id_len; /* 0: none */
	bool is_main;
};

/* One return address. With module 0 (anonymous code), offset is the absolute
 * address; else the address minus the module's start_pc. */
struct sp_frame {
	uint32_t module;
	uint64_t offset;
};

struct sp_stack {
	uint32_t id;    /* file's id, unique */
	uint32_t flags; /* SP_STACK_* of format/layout.h */
	uint32_t n_frames;
	struct sp_frame *frames; /* innermost first */
	struct sp_acc acc;       /* all samples with this stack */
};

struct sp_thread_info {
	uint32_t index; /* 1.. in order of appearance in the process */
	uint64_t tid;   /* kernel's thread id */
	char name[SP_FORMAT_THREAD_NAME_MAX]; /* untrusted text */
	uint64_t name_time_ns; /* since the start, when it had that name */
	bool has_totals;       /* exact totals of this thread are known */
	bool exited;
	uint64_t exact_alloc_bytes;
	uint64_t exact_alloc_objects;
	struct sp_acc acc;
};

struct sp_info { /* "key=value" facts and settings stored in the file */
	const char *key;
	const char *value; /* untrusted text */
};

struct sp_profile {
	const char *path; /* of the profile file */
	uint32_t format_version;
	uint64_t pid;
	uint64_t start_unix_ns; /* wall clock at start */
	uint64_t duration_ns;   /* until end, last record or publication */
	uint64_t period_bytes;  /* sampling period at start */
	uint64_t seed;
	enum sp_profile_end end;
	const char *program; /* path of the executable; untrusted text */
	const char *command; /* arguments joined for display; untrusted text */
	const char *host;    /* untrusted text */
	uint64_t max_file_bytes;
	uint64_t check_in_bytes; /* a live thread publishes at least that often
				  */

	uint64_t exact_alloc_bytes;
	uint64_t exact_alloc_objects;
	uint64_t threads;               /* threads that allocated */
	struct sp_acc acc;              /* every sample */
	uint64_t losses[SP_LOSS_COUNT]; /* names: sp_loss_name() */

	/* What was left out because the file is damaged or torn; 0 when whole.
	 */
	uint64_t damaged_records; /* chunks cut short at a bad record */
	uint64_t ignored_bytes;
	char damage[256]; /* first damage: offset, field, consequence; or "" */

	struct sp_module *modules; /* in the order of their ids */
	size_t n_modules;
	struct sp_stack *stacks;
	size_t n_stacks;
	struct sp_thread_info *thread_infos;
	size_t n_thread_infos;
	struct sp_info *infos;
	size_t n_infos;
	void *private_storage;
};

/* Called as the reader goes, to show progress: done <= total, in bytes. */
typedef void sp_progress_fn(void *arg, uint64_t done, uint64_t total);

/*
 * Read `path`.  0 and *ret_profile on success (also for a file that was torn
 * by a kill, is still being written, or is damaged after a good beginning: see
 * `damage`); negative errno and *err otherwise.  `progress` may be NULL.
 */
int sp_profile_load(const char *path, sp_progress_fn *progress,
		    void *progress_arg, struct sp_profile **ret_profile,
		    struct sp_error *err);

void sp_profile_free(struct sp_profile *profile);

/* The module with that id, or NULL. */
const struct sp_module *sp_profile_module(const struct sp_profile *profile,
					  uint32_t id);

/* The value of an info key ("setting.period", "exe", ...), or NULL. */
const char *sp_profile_info(const struct sp_profile *profile, const char *key);

#endif
