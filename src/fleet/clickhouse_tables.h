/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

#include "fleet/clickhouse_url.h"
#include "fleet/schema.h"

/* The statements that make a database on a ClickHouse server, or on all of a
 * cluster.  `i` is the table; each leaves alone what is there. */
typedef void sp_clickhouse_write_fn(FILE *out,
				    const struct sp_clickhouse_url *url,
				    unsigned int i);

sp_clickhouse_write_fn sp_clickhouse_write_database;
/* The table of one server, or of one shard with its replicas. */
sp_clickhouse_write_fn sp_clickhouse_write_table;
/* In a cluster, all shards of it. */
sp_clickhouse_write_fn sp_clickhouse_write_distributed;

/* A table of that name and no rows says which version the others are of. */
#define SP_CLICKHOUSE_MARK "sampleprof_fleet_"
sp_clickhouse_write_fn sp_clickhouse_write_mark;
