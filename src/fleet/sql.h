/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * All SQL of the fleet, in one place: the schema of docs/fleet.md, and the
 * statements over it.  Values are bound, never written into a statement.
 *
 * 64-bit numbers are stored as the integers of the same bits, so those from
 * 2^63 on are negative; SQL adds up none of them.
 */

#define SP_FLEET_APPLICATION_ID 0x53504654 /* "SPFT" */
#define SP_FLEET_VERSION        1

/* The tables of an empty database. */
extern const char sp_fleet_schema[];

enum sp_fleet_statement {
	SP_FLEET_BEGIN,
	SP_FLEET_COMMIT,
	SP_FLEET_ROLLBACK,
	SP_FLEET_FIND_FILE,
	SP_FLEET_PUT_PROCESS,
	SP_FLEET_DROP_PROCESS, /* and, of the same process: */
	SP_FLEET_DROP_FACTS,
	SP_FLEET_DROP_LABELS,
	SP_FLEET_DROP_TOTALS,
	SP_FLEET_DROP_LOSSES,
	SP_FLEET_DROP_THREADS,
	SP_FLEET_DROP_SAMPLES,
	SP_FLEET_PUT_FACT,
	SP_FLEET_PUT_LABEL,
	SP_FLEET_PUT_TOTAL,
	SP_FLEET_PUT_LOSS,
	SP_FLEET_PUT_THREAD,
	SP_FLEET_FIND_MODULE,
	SP_FLEET_PUT_MODULE,
	SP_FLEET_FIND_STACK,
	SP_FLEET_PUT_STACK,
	SP_FLEET_HAS_NAMES,
	SP_FLEET_DROP_NAMES,
	SP_FLEET_PUT_NAME,
	SP_FLEET_PUT_SAMPLE,
	SP_FLEET_CHOOSE_NONE,
	SP_FLEET_CHOOSE_ALL,
	SP_FLEET_KEEP_LABEL,
	SP_FLEET_DROP_LABEL,
	SP_FLEET_KEEP_HOST,
	SP_FLEET_KEEP_TIME,
	SP_FLEET_CHOOSE_ONE,
	SP_FLEET_GET_CHOSEN,
	SP_FLEET_COUNT_CHOSEN,
	SP_FLEET_GET_PROCESSES,
	SP_FLEET_GET_FACTS,
	SP_FLEET_GET_TOTALS,
	SP_FLEET_GET_LOSSES,
	SP_FLEET_GET_THREADS,
	SP_FLEET_GET_STACKS,
	SP_FLEET_GET_MODULE,
	SP_FLEET_GET_NAMES,
	SP_FLEET_GET_SAMPLES,
	SP_FLEET_STATEMENTS
};

extern const char *const sp_fleet_sql[SP_FLEET_STATEMENTS];
