/* SPDX-License-Identifier: MIT */
#include "fleet/sql.h"

/* ---- what is there ---- */

const char sp_fleet_find_file[] =
	"SELECT process, ending, samples, alloc_bytes, duration_ns"
	" FROM {processes} WHERE file_id = ?";
const char sp_fleet_find_modules[] =
	"SELECT module, path, build_id, start_pc, end_pc, bias"
	" FROM modules WHERE module IN ?";
const char sp_fleet_find_stacks[] =
	"SELECT stack, flags, frames FROM stacks WHERE stack IN ?";
const char sp_fleet_find_names[] =
	"SELECT offset, is_fallback, line FROM names"
	" WHERE module = ? AND offset IN ? AND depth = 0";

/* ---- which processes ---- */

const char sp_fleet_count_processes[] = "SELECT count(*) FROM {processes}";
const char sp_fleet_choose_running[] =
	"SELECT process, samples FROM {processes}"
	" WHERE start_unix_ns + duration_ns >= ? AND start_unix_ns < ?";
const char sp_fleet_choose_host[] = " AND host = ?";
const char sp_fleet_choose_label[] =
	" AND process {in}"
	" (SELECT process FROM labels WHERE key = ? AND value = ?)";
const char sp_fleet_choose_without[] =
	" AND NOT process {in}"
	" (SELECT process FROM labels WHERE key = ? AND value = ?)";
const char sp_fleet_choose_order[] = " ORDER BY start_unix_ns, file_id";

/* ---- what they have ---- */

const char sp_fleet_get_processes[] =
	"SELECT * FROM {processes} WHERE process IN ?"
	" ORDER BY start_unix_ns, file_id";
const char sp_fleet_get_facts[] =
	"SELECT key, value FROM facts WHERE process IN ?"
	" GROUP BY key, value HAVING count(DISTINCT process) = ?"
	" ORDER BY key, value";
const char sp_fleet_get_each_facts[] =
	"SELECT {unique} process, key, value FROM facts WHERE process IN ?"
	" ORDER BY process, key, value";
/* What differs between processes, and is said of all together. */
const char sp_fleet_get_lacks[] =
	"SELECT {unique} process, key, value FROM facts WHERE process IN ?"
	" AND key IN ('attached.age_ms', 'forked', 'full_ns', 'unseen')"
	" ORDER BY process, key, value";
const char sp_fleet_get_totals[] =
	"SELECT {unique} process, class, bytes, objects FROM totals"
	" WHERE process IN ? ORDER BY process, class";
const char sp_fleet_get_losses[] =
	"SELECT {unique} process, kind, count FROM losses"
	" WHERE process IN ? ORDER BY process, kind";
const char sp_fleet_get_threads[] =
	"SELECT {unique} * FROM threads WHERE process IN ?"
	" ORDER BY process, thread";
const char sp_fleet_get_samples[] =
	"SELECT * FROM samples WHERE process IN ? ORDER BY process, sample";
const char sp_fleet_get_stacks[] =
	"SELECT stack, flags, frames FROM stacks WHERE stack {in}"
	" (SELECT stack FROM samples WHERE process IN ?) ORDER BY stack";
const char sp_fleet_get_hours[] =
	"SELECT stack, size_bytes, period_bytes, is_alive, sum(samples),"
	" sum(tail_bytes) FROM (SELECT {unique} * FROM hours"
	" WHERE process IN ? AND hour >= ? AND hour < ?)"
	" GROUP BY stack, size_bytes, period_bytes, is_alive";
const char sp_fleet_get_hour_stacks[] =
	"SELECT stack, flags, frames FROM stacks WHERE stack {in}"
	" (SELECT stack FROM hours WHERE process IN ?) ORDER BY stack";
const char sp_fleet_get_rss[] = "SELECT {unique} * FROM rss WHERE process IN ?"
				" ORDER BY process, row";
const char sp_fleet_get_stretches[] =
	"SELECT {unique} * FROM stretches WHERE process IN ?"
	" ORDER BY process, row";
const char sp_fleet_get_snapshots[] =
	"SELECT {unique} * FROM snapshots WHERE process IN ?"
	" ORDER BY process, row";

const char sp_fleet_get_modules[] =
	"SELECT module, path, build_id, start_pc, end_pc, bias, is_main"
	" FROM modules WHERE module IN ?";
const char sp_fleet_get_names[] =
	"SELECT offset, source, function, file, line, is_inlined, is_fallback,"
	" depth FROM names WHERE module = ? AND offset IN ?"
	" ORDER BY offset, source, depth";
