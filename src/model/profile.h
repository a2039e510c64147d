/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/blocks.h"
#include "base/error.h"
#include "format/layout.h"

/*
 * What one or several files say, in memory.  Everything is owned by the
 * profile.  Estimates are made from it by selecting samples (stats/sums.h).
 */

/* How the profiled process ended, as far as the file and this machine tell. */
enum sp_profile_end {
	SP_PROFILE_END_CLEAN,    /* our destructor ran: exit() or end of main */
	SP_PROFILE_END_KILLED,   /* killed, _exit: no end was recorded */
	SP_PROFILE_END_EXEC,     /* it executed another program */
	SP_PROFILE_END_RUNNING,  /* the process is still there */
	SP_PROFILE_END_DETACHED, /* it went on without the library */
};

/*
 * Memory of a process that no sample can have seen, because nothing was
 * recorded when it was allocated.  The first of these that is true; what was
 * only discarded is in samples while it is alive.
 */
enum sp_unseen {
	SP_UNSEEN_NONE,
	SP_UNSEEN_FORK,   /* a forked child has it of its parent */
	SP_UNSEEN_ATTACH, /* the process was running before */
	SP_UNSEEN_OFF,    /* sampling was off */
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
	uint32_t innermost;      /* module of the first frame; 0: none */
	struct sp_frame *frames; /* innermost first */
};

/* Whose function it is (symbols/seethrough.h). */
enum sp_role {
	SP_ROLE_OWN,         /* the program's, or of a library of its own */
	SP_ROLE_NAMELESS,    /* likewise, unless a wrapper calls it */
	SP_ROLE_SCRIPT,      /* likewise, in an interpreter's language */
	SP_ROLE_INTERPRETER, /* runs such a function if that calls it; else the
			      * program's own */
	SP_ROLE_LIBRARY,     /* a language's library */
	SP_ROLE_WRAPPER,     /* likewise, but an allocator's wrapper */
	SP_ROLE_ALLOCATOR,   /* only passes the allocation on */
};

/* One of the functions that an address stands for. */
struct sp_symbol {
	const char *function; /* demangled; never NULL: "libx.so+0x1f", the
			       * beginning of the function or at least the
			       * address, if nothing is known */
	const char *identity; /* the same with its parameters, which tells
			       * overloads apart, and its home, which tells
			       * static functions of a name apart
			       * (symbols/home.h); NULL: `function` */
	const char *file;     /* source file or NULL */
	uint32_t line;        /* 0: unknown */
	bool is_inlined;      /* inlined into the next one */
	bool is_fallback;     /* `function` is module+offset */
	bool is_clone;        /* a copy or part by the compiler: f.part.0 */
	bool lacks_inlined;   /* others may be inlined into it: the file that
			       * knows them was not there */
	bool calls_wrapper;   /* of the first: an allocator's, there */
	bool is_embedded;     /* its names come from the profile */
	enum sp_role role;    /* OWN unless a symbolizer says otherwise */
};

/* What one address stands for: innermost (most inlined) first. */
struct sp_symbols {
	const struct sp_symbol *symbol;
	size_t count; /* >= 1 */
};

/* A frame that the file itself has symbols of. */
struct sp_embedded_frame {
	struct sp_frame frame;
	struct sp_symbols symbols;
};

/* How the samples of a profile were drawn (SP_HEADER_* of its file). */
struct sp_law_used {
	bool is_dotnet;    /* p = 1 / R for each byte */
	bool always_large; /* sp_format_always_bytes() or more: for certain */
};

struct sp_acc;
struct sp_peak;
struct sp_selection;

#define SP_NEVER   UINT64_MAX
#define SP_UNKNOWN UINT64_MAX

/* A sampled object and what became of it. */
struct sp_sample {
	uint64_t id;           /* distinct */
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
	uint16_t part;     /* position in `parts` */
	uint8_t entry;     /* enum sp_entry */
	bool free_missed : 1; /* freed_ns is when its address came back */
	uint8_t role : 2;     /* 1 + that of sp_peak_toss(); 0: by its id */
	/* Of a group: it was temporary, by the limits of the plan. */
	bool is_temporary : 1;
};

/*
 * Samples as a stream of events in the order of time.  Each sample is SETTLED
 * once: at its free, or at process end, there in the order of ids.  A sample
 * that lives for at least a nanosecond is BORN before; at one moment, ends come
 * before births.  If no frees were recorded, samples are only settled.
 */
enum sp_sample_event {
	/* It is alive from now on: until it has ended freed_ns may be
	 * SP_NEVER. */
	SP_SAMPLE_BORN,
	/* All is known of it: it has ended, or the file does not tell more. */
	SP_SAMPLE_SETTLED,
};

/* 0 or negative errno, which ends the stream. */
typedef int sp_sample_fn(void *arg, enum sp_sample_event event,
			 const struct sp_sample *sample);

/*
 * Samples that ended and are alike: `one` of them stands for all.  It has no id
 * and no offset; of its times and its end is known in which stretch it was born
 * and whether that was in the window, and what the plan asked for (struct
 * sp_plan, read/plan.h).
 */
struct sp_sample_group {
	struct sp_sample one;
	uint64_t samples;    /* >= 1 */
	uint64_t tail_bytes; /* sum of their sizes less offsets */
	uint64_t lived_ns;   /* sum of their lifetimes */
};

/* One of the files that a profile was read from. */
struct sp_part {
	const char *path;    /* of the file */
	const char *program; /* as in struct sp_profile */
	const char *command; /* likewise */
	uint64_t file_id;    /* the same in every copy of a file */
	uint64_t seed;       /* of its sampling decisions */
	uint64_t pid;
	uint64_t period_bytes;
	uint64_t exact_alloc_bytes;
	uint64_t exact_alloc_objects;
	uint64_t missing_bytes_max;
	bool has_unseen;
	bool is_cut;
	/* Of several: from then on it is not known what of it is alive, and no
	 * sample is; 0: it is. */
	uint64_t lost_ns;
	enum sp_unseen unseen;
	enum sp_profile_end end;
	uint64_t start_ns; /* when its process began */
	/* When that ended, or was heard of last; SP_NEVER: not before the end
	 * of the profile, or it is running. */
	uint64_t stop_ns;
	/* What was alive then is there, of what had ended nothing: struct
	 * sp_profile. */
	uint64_t window_ns;
	/* What ids, positions of threads and positions of stacks of the file
	 * are in the profile: so much more, and stacks[]. */
	uint64_t first_id;
	uint32_t first_thread;
	uint32_t n_threads;
	const uint32_t *stacks;
	size_t n_stacks;
};

/*
 * A stretch of time in which one process was in one phase and sampled with one
 * period; with the exact totals of what it allocated meanwhile.
 */
struct sp_stretch {
	uint64_t from_ns;
	uint64_t asked_ns;     /* when that was asked for; at most from_ns */
	uint64_t to_ns;        /* SP_NEVER: the last of its process */
	const char *phase;     /* untrusted text; "" before the first */
	uint64_t period_bytes; /* 0: nothing was sampled */
	uint64_t alloc_bytes;
	uint64_t alloc_objects;
	/* Of these: by threads that were not sampling. */
	uint64_t unsampled_bytes;
	uint64_t unsampled_objects;
	uint64_t discarded_bytes; /* of unsampled_bytes: samples were discarded
				   */
	/* At most that many bytes belong to a neighbour, or are missing. */
	uint64_t slack_bytes;
	uint16_t part; /* as in struct sp_sample */
};

/* A moment that the program gave a name to. */
struct sp_snapshot {
	const char *name; /* untrusted text */
	uint64_t time_ns;
	uint64_t asked_ns;    /* when it was asked for; at most time_ns */
	uint64_t alloc_bytes; /* exact totals of its process */
	uint64_t alloc_objects;
	uint16_t part;
};

/* Resident memory at a moment, where the host allowed to ask. */
struct sp_rss {
	uint64_t time_ns;
	uint64_t rss_bytes;
};

/* What the samples of a profile are. */
enum sp_samples_of {
	SP_SAMPLES_ALLOCATED, /* drawn of what malloc returned */
	/* Every anonymous mapping of the program, with a period of 1: what it
	 * could access when it mapped it, or what it could not (PROT_NONE). */
	SP_SAMPLES_MAPPED,
	SP_SAMPLES_RESERVED,
};

/* Anonymous memory that the program has mapped by itself. */
struct sp_mapped {
	bool is_known;           /* there are records of it */
	uint64_t bytes;          /* at the end */
	uint64_t live;           /* mappings at the end, or parts of some */
	uint64_t made;           /* mappings, and their bytes, in all */
	uint64_t made_bytes;     /* stops at UINT64_MAX */
	uint64_t peak_bytes;     /* the most at any time; 0: of several files */
	uint64_t peak_ns;        /* the first such time */
	uint64_t reserved_bytes; /* at the end, without access; in none of the
				    others */
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
	/* Sums over its samples: it has allocated no less. */
	struct sp_class_total sampled;
};

struct sp_info { /* "key=value" facts and settings stored in the file */
	const char *key;
	const char *value; /* untrusted text */
};

/* Less has no rates: the start of the library takes half of that. */
#define SP_PROFILE_RATE_NS 1000000

struct sp_profile {
	const char *path; /* of the profile file, or words for several */
	uint32_t owner;   /* the user whose file that is, if it is one */
	uint64_t file_id; /* of the first part */
	uint32_t format_version;
	uint64_t pid;
	uint64_t start_unix_ns; /* wall clock at start */
	uint64_t duration_ns;   /* until end, last record or publication */
	uint64_t period_bytes;  /* the largest sampling period in force */
	uint64_t seed;
	enum sp_profile_end end;
	uint64_t end_kind;   /* of one file: enum sp_end_kind, or unknown */
	const char *program; /* path of the executable; untrusted text */
	const char *command; /* arguments joined for display; untrusted text */
	const char *host;    /* untrusted text */
	uint64_t max_file_bytes;
	uint64_t check_in_bytes; /* a live thread publishes at least that often
				  */
	/* Times of samples and frees are right to within that; 0: exactly. */
	uint64_t time_error_ns;

	/* Exact totals: what the process has allocated for certain, and at most
	 * that much more (sp_profile_is_exact()). */
	uint64_t exact_alloc_bytes;
	uint64_t exact_alloc_objects;
	uint64_t missing_bytes_max;
	/* Not all of what allocates came by the library: INFO `unseen`, or...
	 */
	bool has_unseen;
	/* An allocator that a file brings along, and which maps memory, is not
	 * seen: "jemalloc in FILE"; else NULL. */
	const char *brought;
	uint64_t threads; /* threads that allocated */
	/* Exact totals by size class.  They may lag behind the process totals
	 * when the process was killed or runs: see class_slack_bytes. */
	bool has_classes;
	struct sp_class_total classes[SP_FORMAT_CLASSES];
	/* At most that much of what was allocated is in no class above: what
	 * classes lack of the totals, and what these may lack.
	 */
	uint64_t class_slack_bytes;
	struct sp_law_used law; /* how samples were drawn */
	bool has_frees;         /* frees of samples were recorded */
	/* Samples have no times and no threads, and those that were alive at
	 * the end are in groups too: there is no peak, and no moment. */
	bool is_timeless;
	bool has_addresses; /* of all objects, by their addresses */
	bool has_no_code;   /* stacks have no frames: nobody wants them */
	/* Of samples that are not there, or that ended already.  While the
	 * process runs also of those that came after their chunk was read. */
	uint64_t unmatched_frees;
	uint64_t losses[SP_LOSS_COUNT]; /* names: sp_loss_name() */

	/* What was left out because the file is damaged; 0 when whole. */
	uint64_t damaged_records; /* chunks cut short at a bad record */
	uint64_t ignored_bytes;
	bool is_cut; /* the file is shorter than its writer made it */
	/* Of a file that is cut or damaged (model/whole.h): what was alive is
	 * known until then; 0: not at all. */
	uint64_t known_ns;
	/* From then on nothing of it had room: of every allocation that was to
	 * be recorded.  0: it had. */
	uint64_t full_ns;
	bool is_unordered; /* it has chunks that are not in the order of time */
	char damage[256];  /* first damage: offset, field, consequence; or "" */
	/* Records and publications of totals that the process was writing when
	 * it ended, which is no damage: all before them is there. */
	uint64_t unfinished_records;

	struct sp_module *modules; /* in the order of their ids */
	size_t n_modules;
	struct sp_stack *stacks;
	size_t n_stacks;
	/* Every sample is either one of `samples`, by ascending ids, or one of
	 * a group.  Those that were alive at the end are in no group. */
	struct sp_sample *samples;
	size_t n_samples;
	/* Of each of them, if it was asked for: the share of its bytes in pages
	 * that are resident (0 to 1), by which the live view weighs it; or
	 * NULL. */
	float *resident;
	uint64_t resident_at_ns; /* then; SP_NEVER: now, or at the end */
	struct sp_sample_group *groups;
	size_t n_groups;
	uint64_t n_grouped; /* samples in all groups */
	/* Reads the files again, and tells of every sample: model/walk.h.  Not
	 * NULL if there are groups. */
	int (*read_again)(const struct sp_profile *profile, sp_sample_fn *fn,
			  void *arg, struct sp_error *err);
	/* The peak of what `found_of` selects by birth (its view and at_ns
	 * take no part), and what was alive of it at the points where
	 * sp_timeline() places them, as far as they were found while the file
	 * was read; else NULL and 0. */
	const struct sp_selection *found_of;
	const struct sp_peak *peak;
	const struct sp_class_sums *curve;
	size_t n_curve;
	/* By part and time; none where no phase and no change of the sampling
	 * was recorded. */
	struct sp_stretch *stretches;
	size_t n_stretches;
	struct sp_snapshot *snapshots; /* by part and time */
	size_t n_snapshots;
	/* Of the exact totals: what was allocated while nothing was sampled,
	 * so that no estimate speaks of it. */
	uint64_t unsampled_bytes;
	uint64_t unsampled_objects;
	/* To keep the file to its size, the samples that had ended by then were
	 * discarded: what was allocated before counts as unsampled, what was
	 * alive then is there.  0: none were, or it is of several processes. */
	uint64_t window_ns;
	uint64_t discarded_bytes; /* of unsampled_bytes: for that reason */
	uint64_t discarded_objects;
	struct sp_rss *rss; /* by time */
	size_t n_rss;
	struct sp_mapped mapped;
	enum sp_samples_of samples_of;
	struct sp_thread_info *thread_infos;
	size_t n_thread_infos;
	struct sp_info *infos;
	size_t n_infos;
	struct sp_embedded_frame *embedded; /* by module and offset */
	size_t n_embedded;
	struct sp_part *parts; /* at least one */
	size_t n_parts;
	struct sp_blocks storage; /* what all of that points to */
};

/* The end of the process of a part, as far as it is known. */
static inline uint64_t sp_part_stop_ns(const struct sp_profile *profile,
				       uint16_t part)
{
	const uint64_t stop_ns = profile->parts[part].stop_ns;

	return stop_ns < profile->duration_ns ? stop_ns : profile->duration_ns;
}

/* That of the sampled object's process. */
static inline uint64_t sp_sample_stop_ns(const struct sp_profile *profile,
					 const struct sp_sample *sample)
{
	return sp_part_stop_ns(profile, sample->part);
}

/*
 * From when on the sampled object is no more: freed_ns, or the end of its
 * process, if other processes went on, or of what is known of it; else
 * SP_NEVER.
 */
static inline uint64_t sp_sample_gone_ns(const struct sp_profile *profile,
					 const struct sp_sample *sample)
{
	const struct sp_part *part = &profile->parts[sample->part];

	if (sample->freed_ns != SP_NEVER)
		return sample->freed_ns;
	if (!part->lost_ns || part->lost_ns >= part->stop_ns)
		return part->stop_ns;
	return part->lost_ns > sample->born_ns ? part->lost_ns
					       : sample->born_ns;
}

/* Were samples discarded?  Then live bytes may have been higher before what is
 * left than ever after. */
static inline bool sp_profile_has_forgotten(const struct sp_profile *profile)
{
	return profile->discarded_bytes > 0;
}

/* Was it born when samples were discarded that ended soon, so that it says
 * nothing about what was allocated? */
static inline bool sp_sample_is_survivor(const struct sp_profile *profile,
					 const struct sp_sample *sample)
{
	return sample->born_ns < profile->parts[sample->part].window_ns;
}

/* Did the library have the last word, so that it told all it had counted? */
static inline bool sp_profile_has_ended(enum sp_profile_end end)
{
	return end == SP_PROFILE_END_CLEAN || end == SP_PROFILE_END_DETACHED;
}

/* Are the exact totals all that was allocated?  Else they are the least that
 * it can be. */
static inline bool sp_profile_is_exact(const struct sp_profile *profile)
{
	return sp_profile_has_ended(profile->end) &&
	       !profile->missing_bytes_max && !profile->has_unseen &&
	       !profile->is_cut;
}

/* Samples of the profile, by themselves and in groups. */
static inline uint64_t sp_profile_samples(const struct sp_profile *profile)
{
	return profile->n_samples + profile->n_grouped;
}

/* Are flags and frames the same?  The hash is of these. */
bool sp_stack_is_same(const struct sp_stack *a, const struct sp_stack *b);
uint64_t sp_stack_hash(uint64_t key, const struct sp_stack *stack);

void sp_profile_free(struct sp_profile *profile);

/* Did the process run on this machine, as far as is known? */
bool sp_profile_is_of_this_host(const struct sp_profile *profile);

/* The module with that id, or NULL. */
const struct sp_module *sp_profile_module(const struct sp_profile *profile,
					  uint32_t id);

/* Are there other builds of the module (NULL: no)?  Then addresses in it
 * identify nothing. */
bool sp_profile_has_builds(const struct sp_profile *profile,
			   const struct sp_module *module);

/* The stretch in which something of that part happened, or NULL. */
const struct sp_stretch *sp_stretch_at(const struct sp_profile *profile,
				       uint16_t part, uint64_t time_ns);

/* The symbols of a frame in the profile, or NULL. */
const struct sp_embedded_frame *sp_embedded_find(
	const struct sp_profile *profile, struct sp_frame frame);

/* The value of an info key ("setting.period", "exe", ...), or NULL. */
const char *sp_profile_info(const struct sp_profile *profile, const char *key);

/* The n-th of the profile's labels (base/labels.h), from 0: its key, and *ret
 * its value, both untrusted text; NULL: there are no more. */
const char *sp_profile_label(const struct sp_profile *profile, size_t n,
			     const char **ret);

/* The probability with which the process was recorded, in (0, 1]: 1 unless the
 * file says otherwise. */
double sp_profile_fraction(const struct sp_profile *profile);

/* The limit of memory of the process's control group that was in force last, in
 * bytes; SP_NEVER: none, or the file does not say. */
uint64_t sp_profile_memory_limit(const struct sp_profile *profile);

/* Was it killed, by the kernel for memory or with 90 % and more of that limit
 * resident?  Of one file. */
bool sp_profile_is_killed_for_memory(const struct sp_profile *profile);

/* Parts that have the seed of another one before them: where they allocate the
 * same, their samples are the same, too.  0 without memory to look. */
size_t sp_profile_repeated_seeds(const struct sp_profile *profile);

/* The target of samples per second that the period followed, as text like
 * "500/s", untrusted; NULL if there was none: period_bytes is then what was
 * asked for, and not the largest that was in force. */
const char *sp_profile_rate(const struct sp_profile *profile);

/* Every frame of the stacks once, by module and offset: for the caller to free;
 * NULL without memory. */
struct sp_frame *sp_profile_frames(const struct sp_profile *profile,
				   size_t *ret_n);

/* That order, for qsort() and bsearch(). */
int sp_profile_compare_frames(const void *a, const void *b);

/* Samples that are alike: one by itself, or those of a group. */
struct sp_alike {
	const struct sp_sample *one;         /* stands for all */
	const struct sp_sample_group *group; /* NULL: there is only that one */
	uint64_t samples;
	uint64_t tail_bytes; /* sum of their sizes less offsets */
};

static inline struct sp_alike sp_alike_one(const struct sp_sample *s)
{
	return (struct sp_alike){s, NULL, 1, s->size_bytes - s->offset_bytes};
}

/* All samples of a profile: number i of sp_alike_n() of these. */
static inline size_t sp_alike_n(const struct sp_profile *profile)
{
	return profile->n_samples + profile->n_groups;
}

static inline struct sp_alike sp_alike_at(const struct sp_profile *profile,
					  size_t i)
{
	const struct sp_sample_group *g;

	if (i < profile->n_samples)
		return sp_alike_one(&profile->samples[i]);
	g = &profile->groups[i - profile->n_samples];
	return (struct sp_alike){&g->one, g, g->samples, g->tail_bytes};
}

/* Add `n` samples of one size to those of their thread (as in struct
 * sp_sample). */
void sp_profile_count_samples(struct sp_profile *profile, uint32_t thread,
			      uint64_t size_bytes, uint64_t n);

/* Samples by their ids: chunks were filled side by side. */
void sp_profile_sort_samples(struct sp_profile *profile);

/* Of facts with the same key only the first stays, which is the one that is
 * meant.  0 or -ENOMEM. */
int sp_profile_drop_infos(struct sp_profile *profile);
