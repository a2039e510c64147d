/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * All questions of the fleet, in one place (fleet/db.h says in which SQL).
 *
 * Of a file that is there in several states {processes} has the latest.  Other
 * tables may have rows of processes that {processes} does not have, and the
 * same row twice, where an engine keeps what it is to forget: they are asked by
 * the number of a process, or by what a row stands for.
 */

extern const char sp_fleet_find_file[];    /* file_id */
extern const char sp_fleet_find_modules[]; /* list of modules */
extern const char sp_fleet_find_stacks[];  /* list of stacks */
extern const char sp_fleet_find_names[];   /* module, list of offsets */

extern const char sp_fleet_count_processes[];
/* First the moments from and to, and then any of the next three; the order is
 * last. */
extern const char sp_fleet_choose_running[];
extern const char sp_fleet_choose_host[];    /* host */
extern const char sp_fleet_choose_label[];   /* key, value */
extern const char sp_fleet_choose_without[]; /* key, value */
extern const char sp_fleet_choose_order[];

/* Of each a list of processes. */
extern const char sp_fleet_get_processes[];
extern const char sp_fleet_get_facts[]; /* list, and how many it has */
extern const char sp_fleet_get_each_facts[];
extern const char sp_fleet_get_lacks[]; /* of each its own */
extern const char sp_fleet_get_totals[];
extern const char sp_fleet_get_losses[];
extern const char sp_fleet_get_threads[];
extern const char sp_fleet_get_samples[];
extern const char sp_fleet_get_stacks[];
extern const char sp_fleet_get_hours[]; /* list, and hours: from, to */
extern const char sp_fleet_get_hour_stacks[];
extern const char sp_fleet_get_rss[];
extern const char sp_fleet_get_stretches[];
extern const char sp_fleet_get_snapshots[];

extern const char sp_fleet_get_modules[]; /* list of modules */
extern const char sp_fleet_get_names[];   /* module, list of offsets */
