/* SPDX-License-Identifier: MIT */
#pragma once

#include "fleet/add.h"

/*
 * Files that are added one after the other; an engine may send several at once.
 * For each file exactly one of the callbacks is called, in any order: `done`
 * when it is in the database, `failed` when it could not be added.
 */
#define SP_FLEET_BATCH_MAX 256u

struct sp_fleet_batch {
	struct sp_fleet_db *db;
	/* `item` is that of sp_fleet_batch_add(). */
	void (*done)(void *arg, void *item, enum sp_fleet_added added);
	void (*failed)(void *arg, void *item, int code,
		       const struct sp_error *err);
	void *arg;
	/* Files that wait to be sent. */
	struct sp_fleet_batch_item {
		void *item;
		enum sp_fleet_added added;
	} waiting[SP_FLEET_BATCH_MAX];
	size_t n;
};

/* As sp_fleet_add(); `done` or `failed` is called by this or a later call. 0;
 * negative errno and *err if one of them failed. */
int sp_fleet_batch_add(struct sp_fleet_batch *batch, const char *path,
		       const struct sp_symbolizer_options *symbols, void *item,
		       struct sp_error *err);

/* Send all files that wait. 0; negative errno and *err. */
int sp_fleet_batch_flush(struct sp_fleet_batch *batch, struct sp_error *err);
