/* SPDX-License-Identifier: MIT */
#include "fleet/batch.h"

#include <errno.h>

/* The files that waited are in the database, or the engine failed: `code` and
 * *err. */
static void settle_batch(struct sp_fleet_batch *b, int code,
			 const struct sp_error *err)
{
	const size_t n = b->n;

	b->n = 0;
	for (size_t i = 0; i < n; i++)
		if (code < 0)
			b->failed(b->arg, b->waiting[i].item, code, err);
		else
			b->done(b->arg, b->waiting[i].item,
				b->waiting[i].added);
}

int sp_fleet_batch_flush(struct sp_fleet_batch *b, struct sp_error *err)
{
	int r = sp_fleet_flush(b->db, err);

	settle_batch(b, r, err);
	return r;
}

static int add_file(struct sp_fleet_batch *b, const char *path,
		    const struct sp_symbolizer_options *symbols,
		    enum sp_fleet_added *ret, struct sp_error *err)
{
	int r = sp_fleet_add(b->db, path, symbols, ret, err);

	if (r != -EALREADY)
		return r;
	/* A copy of it waits. */
	r = sp_fleet_batch_flush(b, err);
	return r < 0 ? r : sp_fleet_add(b->db, path, symbols, ret, err);
}

int sp_fleet_batch_add(struct sp_fleet_batch *b, const char *path,
		       const struct sp_symbolizer_options *symbols, void *item,
		       struct sp_error *err)
{
	enum sp_fleet_added added;
	int r = add_file(b, path, symbols, &added, err);

	if (r < 0) {
		b->failed(b->arg, item, r, err);
		/* The engine gave up the others, too. */
		if (!sp_fleet_waiting(b->db))
			settle_batch(b, r, err);
		return r;
	}
	if (sp_fleet_waiting(b->db) == b->n) {
		b->done(b->arg, item, added);
		return 0;
	}
	b->waiting[b->n++] = (struct sp_fleet_batch_item){item, added};
	return b->n == SP_FLEET_BATCH_MAX ? sp_fleet_batch_flush(b, err) : 0;
}
