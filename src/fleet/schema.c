/* SPDX-License-Identifier: MIT */
#include "fleet/schema.h"

#include <string.h>

static const struct sp_fleet_column processes[] = {
	{"process", SP_FLEET_U64, false},
	{"file_id", SP_FLEET_U64, false},
	{"file", SP_FLEET_TEXT, false},
	{"program", SP_FLEET_TEXT, false},
	{"command", SP_FLEET_TEXT, false},
	{"host", SP_FLEET_TEXT, false},
	{"container", SP_FLEET_TEXT, true},
	{"build_id", SP_FLEET_BYTES, true},
	{"pid", SP_FLEET_U64, false},
	{"start_unix_ns", SP_FLEET_U64, false},
	{"duration_ns", SP_FLEET_U64, false},
	{"ending", SP_FLEET_U64, false},
	{"format_version", SP_FLEET_U64, false},
	{"fraction", SP_FLEET_REAL, false},
	{"draw", SP_FLEET_U64, true},
	{"period_bytes", SP_FLEET_U64, false},
	{"law", SP_FLEET_U64, false},
	{"seed", SP_FLEET_U64, false},
	{"has_frees", SP_FLEET_FLAG, false},
	{"has_classes", SP_FLEET_FLAG, false},
	{"alloc_bytes", SP_FLEET_U64, false},
	{"alloc_objects", SP_FLEET_U64, false},
	{"missing_bytes", SP_FLEET_U64, false},
	{"class_slack_bytes", SP_FLEET_U64, false},
	{"unsampled_bytes", SP_FLEET_U64, false},
	{"unsampled_objects", SP_FLEET_U64, false},
	{"discarded_bytes", SP_FLEET_U64, false},
	{"discarded_objects", SP_FLEET_U64, false},
	{"window_ns", SP_FLEET_U64, false},
	{"check_in_bytes", SP_FLEET_U64, false},
	{"max_file_bytes", SP_FLEET_U64, false},
	{"time_error_ns", SP_FLEET_U64, false},
	{"threads", SP_FLEET_U64, false},
	{"unmatched_frees", SP_FLEET_U64, false},
	{"damaged_records", SP_FLEET_U64, false},
	{"ignored_bytes", SP_FLEET_U64, false},
	{"unfinished_records", SP_FLEET_U64, false},
	{"damage", SP_FLEET_TEXT, true},
	{"samples", SP_FLEET_U64, false},
	{"may_have_rss", SP_FLEET_FLAG, false},
};

/* Facts and labels alike. */
static const struct sp_fleet_column pairs[] = {
	{"process", SP_FLEET_U64, false},
	{"key", SP_FLEET_TEXT, false},
	{"value", SP_FLEET_TEXT, false},
};

static const struct sp_fleet_column totals[] = {
	{"process", SP_FLEET_U64, false},
	{"class", SP_FLEET_U64, false},
	{"bytes", SP_FLEET_U64, false},
	{"objects", SP_FLEET_U64, false},
};

static const struct sp_fleet_column losses[] = {
	{"process", SP_FLEET_U64, false},
	{"kind", SP_FLEET_U64, false},
	{"count", SP_FLEET_U64, false},
};

static const struct sp_fleet_column threads[] = {
	{"process", SP_FLEET_U64, false},
	{"thread", SP_FLEET_U64, false},
	{"number", SP_FLEET_U64, false},
	{"tid", SP_FLEET_U64, false},
	{"name", SP_FLEET_BYTES, false},
	{"has_totals", SP_FLEET_FLAG, false},
	{"exited", SP_FLEET_FLAG, false},
	{"alloc_bytes", SP_FLEET_U64, false},
	{"alloc_objects", SP_FLEET_U64, false},
};

static const struct sp_fleet_column samples[] = {
	{"process", SP_FLEET_U64, false},
	{"sample", SP_FLEET_U64, false},
	{"stack", SP_FLEET_U64, false},
	{"born_ns", SP_FLEET_U64, false},
	{"freed_ns", SP_FLEET_U64, true},
	{"size_bytes", SP_FLEET_U64, false},
	{"offset_bytes", SP_FLEET_U64, false},
	{"period_bytes", SP_FLEET_U64, false},
	{"age_bytes", SP_FLEET_U64, true},
	{"thread", SP_FLEET_U64, true},
	{"freed_by", SP_FLEET_U64, true},
	{"entry", SP_FLEET_U64, false},
	{"free_missed", SP_FLEET_FLAG, false},
};

static const struct sp_fleet_column hours[] = {
	{"process", SP_FLEET_U64, false},
	{"row", SP_FLEET_U64, false},
	{"hour", SP_FLEET_U64, false},
	{"stack", SP_FLEET_U64, false},
	{"size_bytes", SP_FLEET_U64, false},
	{"period_bytes", SP_FLEET_U64, false},
	{"is_alive", SP_FLEET_FLAG, false},
	{"samples", SP_FLEET_U64, false},
	{"tail_bytes", SP_FLEET_U64, false},
};

static const struct sp_fleet_column rss[] = {
	{"process", SP_FLEET_U64, false},
	{"row", SP_FLEET_U64, false},
	{"time_ns", SP_FLEET_U64, false},
	{"rss_bytes", SP_FLEET_U64, false},
};

static const struct sp_fleet_column stretches[] = {
	{"process", SP_FLEET_U64, false},
	{"row", SP_FLEET_U64, false},
	{"from_ns", SP_FLEET_U64, false},
	{"asked_ns", SP_FLEET_U64, false},
	{"to_ns", SP_FLEET_U64, true},
	{"phase", SP_FLEET_TEXT, false},
	{"period_bytes", SP_FLEET_U64, false},
	{"alloc_bytes", SP_FLEET_U64, false},
	{"alloc_objects", SP_FLEET_U64, false},
	{"unsampled_bytes", SP_FLEET_U64, false},
	{"unsampled_objects", SP_FLEET_U64, false},
	{"discarded_bytes", SP_FLEET_U64, false},
	{"slack_bytes", SP_FLEET_U64, false},
};

static const struct sp_fleet_column snapshots[] = {
	{"process", SP_FLEET_U64, false},
	{"row", SP_FLEET_U64, false},
	{"name", SP_FLEET_TEXT, false},
	{"time_ns", SP_FLEET_U64, false},
	{"asked_ns", SP_FLEET_U64, false},
	{"alloc_bytes", SP_FLEET_U64, false},
	{"alloc_objects", SP_FLEET_U64, false},
};

static const struct sp_fleet_column modules[] = {
	{"module", SP_FLEET_U64, false},     {"path", SP_FLEET_TEXT, false},
	{"build_id", SP_FLEET_BYTES, false}, {"start_pc", SP_FLEET_U64, false},
	{"end_pc", SP_FLEET_U64, false},     {"bias", SP_FLEET_U64, false},
	{"is_main", SP_FLEET_FLAG, false},
};

static const struct sp_fleet_column stacks[] = {
	{"stack", SP_FLEET_U64, false},
	{"flags", SP_FLEET_U64, false},
	{"frames", SP_FLEET_BYTES, false},
};

static const struct sp_fleet_column names[] = {
	{"module", SP_FLEET_U64, false},
	{"offset", SP_FLEET_U64, false},
	{"depth", SP_FLEET_U64, false},
	{"function", SP_FLEET_TEXT, false},
	{"file", SP_FLEET_TEXT, true},
	{"line", SP_FLEET_U64, false},
	{"is_inlined", SP_FLEET_FLAG, false},
	{"is_fallback", SP_FLEET_FLAG, false},
	{"source", SP_FLEET_U64, false},
};

#define TABLE(name, columns, key)                                              \
	{                                                                      \
		name, columns, sizeof(columns) / sizeof(*(columns)), key       \
	}

const struct sp_fleet_schema sp_fleet_schema[SP_FLEET_TABLES] = {
	[SP_FLEET_PROCESSES] = TABLE("processes", processes, 1),
	[SP_FLEET_FACTS] = TABLE("facts", pairs, 2),
	[SP_FLEET_LABELS] = TABLE("labels", pairs, 2),
	[SP_FLEET_TOTALS] = TABLE("totals", totals, 2),
	[SP_FLEET_LOSSES] = TABLE("losses", losses, 2),
	[SP_FLEET_THREADS] = TABLE("threads", threads, 2),
	[SP_FLEET_SAMPLES] = TABLE("samples", samples, 2),
	[SP_FLEET_HOURS] = TABLE("hours", hours, 2),
	[SP_FLEET_RSS] = TABLE("rss", rss, 2),
	[SP_FLEET_STRETCHES] = TABLE("stretches", stretches, 2),
	[SP_FLEET_SNAPSHOTS] = TABLE("snapshots", snapshots, 2),
	[SP_FLEET_MODULES] = TABLE("modules", modules, 1),
	[SP_FLEET_STACKS] = TABLE("stacks", stacks, 1),
	[SP_FLEET_NAMES] = TABLE("names", names, 3),
};

const struct sp_fleet_schema *sp_fleet_table_asked(const char *sql)
{
	static const char from[] = "FROM ";

	while ((sql = strstr(sql, from)) != NULL) {
		sql += sizeof(from) - 1;
		sql += *sql == '{';
		for (size_t i = 0; i < SP_FLEET_TABLES; i++) {
			const char *name = sp_fleet_schema[i].name;

			if (strlen(name) == strcspn(sql, "} )") &&
			    strncmp(name, sql, strlen(name)) == 0)
				return &sp_fleet_schema[i];
		}
	}
	return NULL;
}

void sp_fleet_write_columns(FILE *out, const struct sp_fleet_schema *table)
{
	for (size_t i = 0; i < table->n_columns; i++)
		fprintf(out, "%s%s", i ? ", " : "", table->columns[i].name);
}
