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
 * One profile file in memory.  Everything is owned by the profile.  Estimates
 * are made from it by selecting samples (profile/table.h).
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
};

#define SP_NEVER   UINT64_MAX
#define SP_UNKNOWN UINT64_MAX

/* A sampled object and what became of it. */
struct sp_sample {
	uint64_t id;           /* of the file, distinct */
	uint64_t born_ns;      /* since the start; not SP_NEVER */
	uint64_t freed_ns;     /* >= born_ns; SP_NEVER: alive at the end */
	uint64_t size_bytes;   /* >= 1 */
	uint64_t offset_bytes; /* of the hit byte, < size_bytes */
	uint64_t period_bytes; /* in force, >= 1 */
	/* What its thread allocated between its birth and its end; SP_UNKNOWN
	 * if it is alive or another thread freed it. */
	uint64_t age_bytes;
	uint32_t stack;    /* position in `stacks` */
	uint32_t thread;   /* position in `thread_infos`; UINT32_MAX unknown */
	uint32_t freed_by; /* likewise; UINT32_MAX unknown or not freed */
	uint8_t entry;     /* enum sp_entry */
	bool free_missed;  /* freed_ns is when its address came back */
};

/* Resident memory at a moment, where the host allowed to ask. */
struct sp_rss {
	uint64_t time_ns;
	uint64_t rss_bytes;
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
	uint64_t threads; /* threads that allocated */
	/* Exact totals by size class.  They may lag behind the process totals
	 * when the process was killed or runs: see class_slack_bytes. */
	bool has_classes;
	struct sp_class_total classes[SP_FORMAT_CLASSES];
	/* At most that much of what was allocated is in no class above: what
	 * classes lack of the totals, and what live threads had not published.
	 */
	uint64_t class_slack_bytes;
	struct sp_law_used law; /* how samples were drawn */
	bool has_frees;         /* frees of samples were recorded */
	/* Of samples that are not there, or that ended already.  While the
	 * process runs also of those that came after their chunk was read. */
	uint64_t unmatched_frees;
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
	struct sp_sample *samples; /* by ascending ids */
	size_t n_samples;
	struct sp_rss *rss; /* by time */
	size_t n_rss;
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
