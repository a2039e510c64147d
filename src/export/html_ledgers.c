/* SPDX-License-Identifier: MIT */
#include "export/html_ledgers.h"

#include <inttypes.h>

#include "export/html_asset.h"
#include "text/text.h"

static void put_row(struct sp_json *json, const struct sp_ledger_row *row)
{
	sp_json_open_flat(json, NULL, '{');
	sp_json_string(json, "name", row->name);
	sp_json_string(json, "label", row->label);
	sp_json_limits(json, row->bytes);
	sp_json_close(json, '}');
}

static void put_ledger(struct sp_json *json, const struct sp_ledger *l)
{
	sp_json_open(json, NULL, '{');
	sp_json_string(json, "why", sp_ledger_why_name(l->why));
	sp_json_string(json, "mark", l->mark);
	sp_json_u64(json, "time_ns", l->time_ns);
	sp_json_u64(json, "rss_bytes", l->rss_bytes);
	sp_json_double(json, "confidence", l->confidence);
	sp_json_open(json, "rows", '[');
	for (size_t i = 0; i < l->n_rows; i++)
		put_row(json, &l->rows[i]);
	sp_json_close(json, ']');
	sp_json_close(json, '}');
}

static void put_ledgers(struct sp_json *json, const struct sp_ledgers *all)
{
	sp_json_open(json, "ledgers", '[');
	for (size_t i = 0; i < all->n; i++)
		put_ledger(json, &all->list[i]);
	sp_json_close(json, ']');
}

void sp_html_ledgers_put(struct sp_json *json, const struct sp_profile *profile)
{
	struct sp_ledgers all = {.n = 0};

	/* Of several processes none is that of all. */
	if (profile->n_parts == 1)
		sp_ledgers_read(profile, &all);
	put_ledgers(json, &all);
	sp_ledgers_free(&all);
}

void sp_html_ledgers_page(FILE *out, const char *program, uint64_t pid,
			  const struct sp_ledgers *ledgers)
{
	struct sp_json json = {.out = out, .is_first = true};
	char facts[40];

	snprintf(facts, sizeof(facts), "process %" PRIu64, pid);
	fputs(sp_html_asset_rss_head, out);
	sp_json_open(&json, NULL, '{');
	sp_json_string(&json, "generator", "sampleprof " SP_VERSION);
	sp_json_string(&json, "program", sp_text_base_name(program));
	sp_json_string(&json, "facts", facts);
	put_ledgers(&json, ledgers);
	sp_json_close(&json, '}');
	fputs(sp_html_asset_rss_tail, out);
}
