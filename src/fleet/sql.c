/* SPDX-License-Identifier: MIT */
#include "fleet/sql.h"

const char sp_fleet_schema[] =
	"CREATE TABLE processes ("
	" process INTEGER PRIMARY KEY,"
	" file_id INTEGER NOT NULL UNIQUE,"
	" file TEXT NOT NULL,"
	" program TEXT NOT NULL,"
	" command TEXT NOT NULL,"
	" host TEXT NOT NULL,"
	" container TEXT,"
	" build_id BLOB,"
	" pid INTEGER NOT NULL,"
	" start_unix_ns INTEGER NOT NULL,"
	" duration_ns INTEGER NOT NULL,"
	" ending INTEGER NOT NULL,"
	" format_version INTEGER NOT NULL,"
	" fraction REAL NOT NULL,"
	" draw INTEGER,"
	" period_bytes INTEGER NOT NULL,"
	" law INTEGER NOT NULL,"
	" seed INTEGER NOT NULL,"
	" has_frees INTEGER NOT NULL,"
	" has_classes INTEGER NOT NULL,"
	" alloc_bytes INTEGER NOT NULL,"
	" alloc_objects INTEGER NOT NULL,"
	" missing_bytes INTEGER NOT NULL,"
	" class_slack_bytes INTEGER NOT NULL,"
	" unsampled_bytes INTEGER NOT NULL,"
	" unsampled_objects INTEGER NOT NULL,"
	" discarded_bytes INTEGER NOT NULL,"
	" discarded_objects INTEGER NOT NULL,"
	" window_ns INTEGER NOT NULL,"
	" check_in_bytes INTEGER NOT NULL,"
	" max_file_bytes INTEGER NOT NULL,"
	" time_error_ns INTEGER NOT NULL,"
	" threads INTEGER NOT NULL,"
	" unmatched_frees INTEGER NOT NULL,"
	" damaged_records INTEGER NOT NULL,"
	" ignored_bytes INTEGER NOT NULL,"
	" unfinished_records INTEGER NOT NULL,"
	" damage TEXT,"
	" samples INTEGER NOT NULL);"
	"CREATE INDEX processes_start ON processes (start_unix_ns);"
	"CREATE TABLE facts ("
	" process INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,"
	" PRIMARY KEY (process, key)) WITHOUT ROWID;"
	"CREATE TABLE labels ("
	" process INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,"
	" PRIMARY KEY (process, key)) WITHOUT ROWID;"
	"CREATE INDEX labels_value ON labels (key, value, process);"
	"CREATE TABLE totals ("
	" process INTEGER NOT NULL, class INTEGER NOT NULL,"
	" bytes INTEGER NOT NULL, objects INTEGER NOT NULL,"
	" PRIMARY KEY (process, class)) WITHOUT ROWID;"
	"CREATE TABLE losses ("
	" process INTEGER NOT NULL, kind INTEGER NOT NULL,"
	" count INTEGER NOT NULL,"
	" PRIMARY KEY (process, kind)) WITHOUT ROWID;"
	"CREATE TABLE threads ("
	" process INTEGER NOT NULL, thread INTEGER NOT NULL,"
	" number INTEGER NOT NULL, tid INTEGER NOT NULL, name BLOB NOT NULL,"
	" has_totals INTEGER NOT NULL, exited INTEGER NOT NULL,"
	" alloc_bytes INTEGER NOT NULL, alloc_objects INTEGER NOT NULL,"
	" PRIMARY KEY (process, thread)) WITHOUT ROWID;"
	"CREATE TABLE modules ("
	" module INTEGER PRIMARY KEY, path TEXT NOT NULL,"
	" build_id BLOB NOT NULL, start_pc INTEGER NOT NULL,"
	" end_pc INTEGER NOT NULL, bias INTEGER NOT NULL,"
	" is_main INTEGER NOT NULL);"
	"CREATE TABLE stacks ("
	" stack INTEGER PRIMARY KEY, flags INTEGER NOT NULL,"
	" frames BLOB NOT NULL);"
	"CREATE TABLE names ("
	" module INTEGER NOT NULL, offset INTEGER NOT NULL,"
	" depth INTEGER NOT NULL, function TEXT NOT NULL,"
	" file TEXT, line INTEGER NOT NULL, is_inlined INTEGER NOT NULL,"
	" is_fallback INTEGER NOT NULL,"
	" PRIMARY KEY (module, offset, depth)) WITHOUT ROWID;"
	"CREATE TABLE samples ("
	" process INTEGER NOT NULL, sample INTEGER NOT NULL,"
	" stack INTEGER NOT NULL, born_ns INTEGER NOT NULL, freed_ns INTEGER,"
	" size_bytes INTEGER NOT NULL, offset_bytes INTEGER NOT NULL,"
	" period_bytes INTEGER NOT NULL, age_bytes INTEGER, thread INTEGER,"
	" freed_by INTEGER, entry INTEGER NOT NULL,"
	" free_missed INTEGER NOT NULL,"
	" PRIMARY KEY (process, sample)) WITHOUT ROWID;";

#define CHOSEN "process IN (SELECT process FROM temp.chosen)"

const char *const sp_fleet_sql[SP_FLEET_STATEMENTS] = {
	[SP_FLEET_BEGIN] = "BEGIN IMMEDIATE",
	[SP_FLEET_COMMIT] = "COMMIT",
	[SP_FLEET_ROLLBACK] = "ROLLBACK",
	[SP_FLEET_FIND_FILE] =
		"SELECT process, ending, samples, alloc_bytes, duration_ns"
		" FROM processes WHERE file_id = ?",
	[SP_FLEET_PUT_PROCESS] =
		"INSERT INTO processes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8,"
		" ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,"
		" ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32,"
		" ?33, ?34, ?35, ?36, ?37, ?38, ?39)",
	[SP_FLEET_DROP_PROCESS] = "DELETE FROM processes WHERE process = ?",
	[SP_FLEET_DROP_FACTS] = "DELETE FROM facts WHERE process = ?",
	[SP_FLEET_DROP_LABELS] = "DELETE FROM labels WHERE process = ?",
	[SP_FLEET_DROP_TOTALS] = "DELETE FROM totals WHERE process = ?",
	[SP_FLEET_DROP_LOSSES] = "DELETE FROM losses WHERE process = ?",
	[SP_FLEET_DROP_THREADS] = "DELETE FROM threads WHERE process = ?",
	[SP_FLEET_DROP_SAMPLES] = "DELETE FROM samples WHERE process = ?",
	[SP_FLEET_PUT_FACT] = "INSERT OR IGNORE INTO facts VALUES (?, ?, ?)",
	[SP_FLEET_PUT_LABEL] = "INSERT OR IGNORE INTO labels VALUES (?, ?, ?)",
	[SP_FLEET_PUT_TOTAL] = "INSERT INTO totals VALUES (?, ?, ?, ?)",
	[SP_FLEET_PUT_LOSS] = "INSERT INTO losses VALUES (?, ?, ?)",
	[SP_FLEET_PUT_THREAD] =
		"INSERT INTO threads VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[SP_FLEET_FIND_MODULE] = "SELECT path, build_id, end_pc - start_pc,"
				 " start_pc - bias FROM modules"
				 " WHERE module = ?",
	[SP_FLEET_PUT_MODULE] =
		"INSERT INTO modules VALUES (?, ?, ?, ?, ?, ?, ?)",
	[SP_FLEET_FIND_STACK] = "SELECT flags, frames FROM stacks"
				" WHERE stack = ?",
	[SP_FLEET_PUT_STACK] = "INSERT INTO stacks VALUES (?, ?, ?)",
	[SP_FLEET_HAS_NAMES] =
		"SELECT 1 FROM names WHERE module = ? AND offset = ?"
		" AND depth = 0 AND is_fallback = 0 AND line > 0",
	[SP_FLEET_DROP_NAMES] = "DELETE FROM names WHERE module = ?"
				" AND offset = ?",
	[SP_FLEET_PUT_NAME] =
		"INSERT INTO names VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
	[SP_FLEET_PUT_SAMPLE] =
		"INSERT INTO samples VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
		" ?, ?)",
	[SP_FLEET_CHOOSE_NONE] = "DELETE FROM temp.chosen",
	[SP_FLEET_CHOOSE_ALL] = "INSERT INTO temp.chosen"
				" SELECT process FROM processes",
	[SP_FLEET_KEEP_LABEL] =
		"DELETE FROM temp.chosen WHERE process NOT IN"
		" (SELECT process FROM labels WHERE key = ? AND value = ?)",
	[SP_FLEET_DROP_LABEL] =
		"DELETE FROM temp.chosen WHERE process IN"
		" (SELECT process FROM labels WHERE key = ? AND value = ?)",
	[SP_FLEET_KEEP_HOST] = "DELETE FROM temp.chosen WHERE process NOT IN"
			       " (SELECT process FROM processes"
			       " WHERE host = ?)",
	[SP_FLEET_KEEP_TIME] = "DELETE FROM temp.chosen WHERE process NOT IN"
			       " (SELECT process FROM processes"
			       " WHERE start_unix_ns + duration_ns >= ?1"
			       " AND start_unix_ns < ?2)",
	[SP_FLEET_CHOOSE_ONE] = "INSERT INTO temp.chosen VALUES (?)",
	[SP_FLEET_GET_CHOSEN] = "SELECT process FROM processes WHERE " CHOSEN
				" ORDER BY start_unix_ns, file_id",
	[SP_FLEET_COUNT_CHOSEN] = "SELECT count(*) FROM temp.chosen",
	[SP_FLEET_GET_PROCESSES] = "SELECT * FROM processes WHERE " CHOSEN
				   " ORDER BY start_unix_ns, file_id",
	[SP_FLEET_GET_FACTS] = "SELECT key, value FROM facts WHERE " CHOSEN
			       " GROUP BY key, value HAVING count(*) ="
			       " (SELECT count(*) FROM temp.chosen)",
	[SP_FLEET_GET_TOTALS] = "SELECT class, bytes, objects FROM totals"
				" WHERE process = ?",
	[SP_FLEET_GET_LOSSES] = "SELECT kind, count FROM losses"
				" WHERE process = ?",
	[SP_FLEET_GET_THREADS] = "SELECT * FROM threads WHERE process = ?"
				 " ORDER BY thread",
	[SP_FLEET_GET_STACKS] =
		"SELECT stack, flags, frames FROM stacks WHERE stack IN"
		" (SELECT stack FROM samples WHERE " CHOSEN ")"
		" ORDER BY stack",
	[SP_FLEET_GET_MODULE] =
		"SELECT path, build_id, start_pc, end_pc, bias, is_main"
		" FROM modules WHERE module = ?",
	[SP_FLEET_GET_NAMES] =
		"SELECT function, file, line, is_inlined,"
		" is_fallback FROM names WHERE module = ? AND offset = ?"
		" ORDER BY depth",
	[SP_FLEET_GET_SAMPLES] = "SELECT * FROM samples WHERE process = ?"
				 " ORDER BY sample",
};
