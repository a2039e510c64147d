/* SPDX-License-Identifier: MIT */
#pragma once

#include "fleet/choose.h"
#include "fleet/load.h"
#include "fleet/load_code.h"

/* What the modules behind sp_fleet_load() share. */

/* Where a part's samples and threads are in the arrays of the profile. */
struct place {
	size_t first_sample, n_samples; /* of the part */
	size_t filled;                  /* read so far */
	uint64_t last_sample; /* the number of the last one that was read */
	size_t first_thread, n_threads;
	bool may_have_rss;
};

/* A part by the number of its process. */
struct numbered {
	uint64_t process;
	size_t part;
};

/*
 * The state of reading one profile.  Or a group: its rows go to one loader for
 * each process, and its own profile has only code.
 */
struct loader {
	struct sp_fleet_db *db;
	const struct sp_fleet_chosen *chosen;
	const struct sp_fleet_span *hours; /* NULL: every sample */
	struct sp_profile *p;
	struct sp_fleet_part *parts;
	struct place *places;        /* of each part */
	struct numbered *by_process; /* sorted */
	size_t parts_room, ours_room, places_room, threads_room, groups_room;
	size_t infos_room;
	struct items *items; /* of load_times.c, while it reads a table */
	struct sp_fleet_code code;
	struct loader *each; /* of a group */
	size_t n_each;       /* 0: no group */
	struct sp_error *err;
};

/* The loader of the process in the row's first column; NULL if there is none.
 */
struct loader *sp_fleet_load_whose(struct loader *l,
				   struct sp_fleet_rows *rows);

/* Call fn() for the loader, or for each of the group, until one fails. */
typedef int sp_fleet_load_fn(struct loader *l);
int sp_fleet_load_finish(struct loader *l, sp_fleet_load_fn *fn);

int sp_fleet_load_fail_memory(struct loader *l);
#ifdef __clang_analyzer__ /* as in base/error.h */
#define sp_fleet_load_fail_memory(l) (sp_fleet_load_fail_memory(l), -ENOMEM)
#endif
/* The database changed meanwhile, or rows are missing: -EAGAIN. */
int sp_fleet_load_fail_changed(struct loader *l);

/* The text of column `i`, in the profile's memory; NULL: no memory. */
const char *sp_fleet_load_text(struct loader *l, struct sp_fleet_rows *rows,
			       int i);

/* A row has a process that the query did not ask for. */
int sp_fleet_load_fail_number(struct loader *l);

/* The order of struct numbered. */
int sp_fleet_load_compare(const void *a, const void *b);

/* A list of some of the chosen processes, from position `from` on. */
struct sp_fleet_value sp_fleet_load_list(const struct loader *l, size_t from);

/* Handles a row of the result. */
typedef int sp_fleet_take_fn(struct loader *l, struct sp_fleet_rows *rows);

/* Query the rows of all chosen processes, list by list. */
int sp_fleet_load_table(struct loader *l, const char *sql,
			sp_fleet_take_fn *take);

/* Load the processes, and for a group their facts.  This comes before code. */
int sp_fleet_load_processes(struct loader *l);
int sp_fleet_load_each_facts(struct loader *l);

/* Name the profile.  This comes last. */
int sp_fleet_load_name(struct loader *l);

/* The part of the process in the first column; negative errno and *err. */
int sp_fleet_load_find_part(struct loader *l, struct sp_fleet_rows *rows,
			    size_t *ret);

/* Resident memory, phases and snapshots of all parts. */
int sp_fleet_load_times(struct loader *l);

/* Load the rollup, as groups without times. */
int sp_fleet_load_hours(struct loader *l);

/* Load exact totals, losses and threads of all parts, and their samples unless
 * the rollup has them.  `places` must be set. */
int sp_fleet_load_rows(struct loader *l);
