/* SPDX-License-Identifier: MIT */
#include "report/ledgers.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/array.h"
#include "base/order.h"
#include "base/parse.h"

static const char *const whys[] = {
	[SP_LEDGER_NOW] = "now",
	[SP_LEDGER_SNAPSHOT] = "snapshot",
	[SP_LEDGER_PEAK] = "peak",
	[SP_LEDGER_END] = "end",
};

const char *sp_ledger_why_name(enum sp_ledger_why why)
{
	return whys[why];
}

/* ---- from JSON ---- */

static double read_number(const json_t *object, const char *key,
			  double otherwise)
{
	const json_t *value = json_object_get(object, key);
	const double n =
		json_is_number(value) ? json_number_value(value) : otherwise;

	return isfinite(n) && n >= 0 && n < 0x1p63 ? n : otherwise;
}

static void read_text(const json_t *object, const char *key,
		      char ret[SP_LEDGER_TEXT_MAX])
{
	const char *value = json_string_value(json_object_get(object, key));

	snprintf(ret, SP_LEDGER_TEXT_MAX, "%s", value ? value : "");
}

static void read_row(const json_t *json, struct sp_ledger_row *ret)
{
	const double bytes = read_number(json, "bytes", 0);

	read_text(json, "name", ret->name);
	read_text(json, "label", ret->label);
	if (!*ret->label)
		memcpy(ret->label, ret->name, sizeof(ret->label));
	ret->bytes = (struct sp_interval){
		bytes, fmin(bytes, read_number(json, "lo", bytes)),
		fmax(bytes, read_number(json, "hi", bytes))};
	ret->swap_bytes = (uint64_t)read_number(json, "swap_bytes", 0);
}

static bool read_json(const json_t *json, struct sp_ledger *ret)
{
	const json_t *rows = json_object_get(json, "rows"), *row;
	const char *why = json_string_value(json_object_get(json, "why"));
	size_t i;

	if (!json_is_array(rows) ||
	    json_array_size(rows) > SP_LEDGER_ROWS_MAX || !why)
		return false;
	ret->why = SP_LEDGER_NOW;
	for (size_t k = 0; k < sizeof(whys) / sizeof(*whys); k++)
		if (strcmp(why, whys[k]) == 0)
			ret->why = (enum sp_ledger_why)k;
	read_text(json, "mark", ret->mark);
	ret->rss_bytes = (uint64_t)read_number(json, "rss_bytes", 0);
	ret->confidence = read_number(json, "confidence", 0.95);
	ret->n_rows = 0;
	json_array_foreach(rows, i, row)
		read_row(row, &ret->rows[ret->n_rows++]);
	return true;
}

#define PREFIX "ledger."

bool sp_ledger_is_one(const struct sp_info *info)
{
	return strncmp(info->key, PREFIX, sizeof(PREFIX) - 1) == 0;
}

bool sp_ledger_read(const char *text, struct sp_ledger *ret)
{
	json_t *json = json_loads(text, 0, NULL);
	const bool is_read = json && read_json(json, ret);

	ret->text = text;
	json_decref(json);
	return is_read;
}

static bool read_info(const struct sp_info *info, struct sp_ledger *ret)
{
	return sp_ledger_is_one(info) &&
	       sp_parse_u64(info->key + sizeof(PREFIX) - 1, &ret->time_ns) &&
	       sp_ledger_read(info->value, ret);
}

/* ---- all ---- */

const char *sp_ledger_name(const struct sp_ledger *l)
{
	return l->why == SP_LEDGER_SNAPSHOT ? l->mark : whys[l->why];
}

SP_ORDER(compare_times, struct sp_ledger, SP_UP(time_ns));

static bool is_replaced(const struct sp_ledgers *all, size_t i)
{
	for (size_t k = i + 1; k < all->n; k++)
		if (all->list[k].why == all->list[i].why &&
		    strcmp(all->list[k].mark, all->list[i].mark) == 0)
			return true;
	return false;
}

static void keep_last(struct sp_ledgers *all)
{
	size_t kept = 0;

	for (size_t i = 0; i < all->n; i++)
		if (!is_replaced(all, i))
			all->list[kept++] = all->list[i];
	all->n = kept;
}

int sp_ledgers_read(const struct sp_profile *profile, struct sp_ledgers *ret)
{
	size_t room = 0;
	struct sp_ledger l;

	*ret = (struct sp_ledgers){.n = 0};
	for (size_t i = 0; i < profile->n_infos; i++) {
		if (!read_info(&profile->infos[i], &l))
			continue;
		if (sp_array_reserve((void **)&ret->list, &room, ret->n,
				     sizeof(l)))
			return -ENOMEM;
		ret->list[ret->n++] = l;
	}
	if (ret->n)
		qsort(ret->list, ret->n, sizeof(l), compare_times);
	keep_last(ret);
	return 0;
}

void sp_ledgers_free(struct sp_ledgers *ledgers)
{
	free(ledgers->list);
	*ledgers = (struct sp_ledgers){.n = 0};
}

const struct sp_ledger *sp_ledgers_find(const struct sp_ledgers *ledgers,
					const char *which)
{
	const struct sp_ledger *found = NULL;

	for (size_t i = 0; i < ledgers->n; i++) {
		const struct sp_ledger *l = &ledgers->list[i];

		if (which ? strcmp(sp_ledger_name(l), which) == 0
			  : !found || found->why != SP_LEDGER_END)
			found = l;
	}
	return found;
}
