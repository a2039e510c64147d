/* SPDX-License-Identifier: MIT */
#pragma once

#include "fleet/add.h"

/*
 * Files that are added one after the other, and of which an engine may send
 * several at once.  Of each the caller is told once what became of it, in any
 * order: `done` when it is there, `failed` when it is not.
 */
#define SP_FLEET_BATCH_MAX 256u

struct sp_fleet_batch {
	struct sp_fleet_db *db;
	/* `item` is what was given with the file. */
	void (*done)(void *arg, void *item, enum sp_fleet_added added);
	void (*failed)(void *arg, void *item, int code,
		       const struct sp_error *err);
	void *arg;
	/* Those that wait to be sent. */
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

/* All that waits is there, or failed.  0; negative errno and *err. */
int sp_fleet_batch_flush(struct sp_fleet_batch *batch, struct sp_error *err);
