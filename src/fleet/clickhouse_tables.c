/* SPDX-License-Identifier: MIT */
#include "fleet/clickhouse_tables.h"

/* Where that is not by their keys, and in a cluster by the first column: how
 * rows are sorted, which is what they are searched by, and which shard has
 * them.  Rows of code that are the same may become one. */
static const struct layout {
	const char *order, *shard;
	bool is_code;
	unsigned int granularity; /* rows that are read for one, at least */
} layouts[SP_FLEET_TABLES] = {
	[SP_FLEET_PROCESSES] = {"file_id, process", "file_id", false, 1024},
	[SP_FLEET_LABELS] = {"key, value, process", NULL, false, 0},
	[SP_FLEET_MODULES] = {"module, path, build_id", NULL, true, 256},
	[SP_FLEET_STACKS] = {"stack, flags, frames", NULL, true, 256},
	[SP_FLEET_NAMES] = {"module, offset, depth, source", "offset", true,
			    1024},
};

#define GRANULARITY 8192u

static void write_columns(FILE *out, const struct sp_fleet_schema *table)
{
	static const char *const types[] = {
		[SP_FLEET_U64] = "UInt64",   [SP_FLEET_FLAG] = "UInt8",
		[SP_FLEET_REAL] = "Float64", [SP_FLEET_TEXT] = "String",
		[SP_FLEET_BYTES] = "String",
	};

	for (size_t i = 0; i < table->n_columns; i++) {
		const struct sp_fleet_column *c = &table->columns[i];

		fprintf(out, c->may_be_null ? "%s%s Nullable(%s)" : "%s%s %s",
			i ? ", " : " (", c->name, types[c->type]);
	}
	putc(')', out);
}

/* The table of one server, or of one shard with its replicas. */
void sp_clickhouse_write_table(FILE *out, const struct sp_clickhouse_url *url,
			       unsigned int i)
{
	const struct sp_fleet_schema *table = &sp_fleet_schema[i];
	const bool is_cluster = *url->cluster;

	fprintf(out, "CREATE TABLE IF NOT EXISTS %s.%s%s%s%s", url->database,
		table->name, is_cluster ? "_local" : "",
		is_cluster ? " ON CLUSTER " : "", url->cluster);
	write_columns(out, table);
	fprintf(out, " ENGINE = %s%sMergeTree", is_cluster ? "Replicated" : "",
		layouts[i].is_code ? "Replacing" : "");
	if (is_cluster)
		fprintf(out,
			"('/clickhouse/tables/{shard}/%s/%s', '{replica}')",
			url->database, table->name);
	else
		fputs("()", out);
	fputs(" ORDER BY (", out);
	if (layouts[i].order)
		fputs(layouts[i].order, out);
	for (size_t k = 0; k < table->n_key && !layouts[i].order; k++)
		fprintf(out, "%s%s", k ? ", " : "", table->columns[k].name);
	fprintf(out, ") SETTINGS index_granularity = %u",
		layouts[i].granularity ? layouts[i].granularity : GRANULARITY);
}

void sp_clickhouse_write_distributed(FILE *out,
				     const struct sp_clickhouse_url *url,
				     unsigned int i)
{
	const struct sp_fleet_schema *table = &sp_fleet_schema[i];

	fprintf(out, "CREATE TABLE IF NOT EXISTS %s.%s ON CLUSTER %s",
		url->database, table->name, url->cluster);
	write_columns(out, table);
	fprintf(out, " ENGINE = Distributed(%s, %s, %s_local, %s)",
		url->cluster, url->database, table->name,
		layouts[i].shard ? layouts[i].shard : table->columns[0].name);
}

static void write_on_cluster(FILE *out, const struct sp_clickhouse_url *url,
			     const char *before, const char *behind)
{
	fprintf(out, "%s%s%s%s", before, *url->cluster ? " ON CLUSTER " : "",
		url->cluster, behind);
}

void sp_clickhouse_write_database(FILE *out,
				  const struct sp_clickhouse_url *url,
				  unsigned int i)
{
	(void)i;
	fprintf(out, "CREATE DATABASE IF NOT EXISTS %s", url->database);
	write_on_cluster(out, url, "", "");
}

void sp_clickhouse_write_mark(FILE *out, const struct sp_clickhouse_url *url,
			      unsigned int i)
{
	(void)i;
	fprintf(out, "CREATE TABLE IF NOT EXISTS %s." SP_CLICKHOUSE_MARK "%d",
		url->database, SP_FLEET_VERSION);
	write_on_cluster(out, url, "", " (version UInt64) ENGINE = Null");
}
