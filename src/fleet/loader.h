/* SPDX-License-Identifier: MIT */
#pragma once

#include "fleet/choose.h"
#include "fleet/load.h"
#include "fleet/load_code.h"

/* What the parts of sp_fleet_load() have in common. */

/* Where a part's samples and threads are among those of the profile. */
struct place {
	size_t first_sample, n_samples; /* so many it has */
	size_t filled;                  /* so many are there by now */
	uint64_t last_sample;           /* its number, if any is there */
	size_t first_thread, n_threads;
	bool may_have_rss;
};

/* A part by the number of its process. */
struct numbered {
	uint64_t process;
	size_t part;
};

/*
 * What is read for one profile.  Or a group, whose rows go to a loader of each
 * process by itself: it has no profile of its own but for code.
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
	struct sp_fleet_code code;
	struct loader *each; /* of a group */
	size_t n_each;       /* 0: no group */
	struct sp_error *err;
};

/* The loader that a row is for, by its first column; NULL: there is none. */
struct loader *sp_fleet_load_whose(struct loader *l,
				   struct sp_fleet_rows *rows);

/* fn() of the loader, or of each of the group, until one fails. */
typedef int sp_fleet_load_fn(struct loader *l);
int sp_fleet_load_finish(struct loader *l, sp_fleet_load_fn *fn);

int sp_fleet_load_fail_memory(struct loader *l);
/* The database changed meanwhile, or has not all: -EAGAIN. */
int sp_fleet_load_fail_changed(struct loader *l);

/* A row is of a process that nobody asked for. */
int sp_fleet_load_fail_number(struct loader *l);

/* The order of struct numbered. */
int sp_fleet_load_compare(const void *a, const void *b);

/* Some of the chosen processes, from that one on: a list of them. */
struct sp_fleet_value sp_fleet_load_list(const struct loader *l, size_t from);

/* Takes a row of what was asked for. */
typedef int sp_fleet_take_fn(struct loader *l, struct sp_fleet_rows *rows);

/* Asks for the rows of all chosen processes, list by list. */
int sp_fleet_load_table(struct loader *l, const char *sql,
			sp_fleet_take_fn *take);

/* Processes, and of a group facts: the part that is done before code. */
int sp_fleet_load_processes(struct loader *l);
int sp_fleet_load_each_facts(struct loader *l);

/* What the profile is called, at the end. */
int sp_fleet_load_name(struct loader *l);

/* The part of the process in the first column; negative errno and *err. */
int sp_fleet_load_find_part(struct loader *l, struct sp_fleet_rows *rows,
			    size_t *ret);

/* Resident memory, phases and snapshots of all parts. */
int sp_fleet_load_times(struct loader *l);

/* What was sampled, as groups of no time. */
int sp_fleet_load_hours(struct loader *l);

/* Exact totals, losses, threads and, unless hours do, samples of all parts,
 * which have their places. */
int sp_fleet_load_rows(struct loader *l);
