/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "compare/format.h"
#include "text/json.h"

static void put_culprit(struct sp_json *json, const struct sp_culprit *c)
{
	sp_json_open(json, NULL, '{');
	sp_json_string(json, c->is_path ? "path" : "function", c->name);
	sp_json_interval(json, "old", c->old);
	sp_json_interval(json, "new", c->new);
	sp_json_interval(json, "change", c->change);
	sp_json_bool(json, "is_certain", c->is_certain);
	sp_json_bool(json, "is_comparable", c->is_comparable);
	if (!c->is_path)
		sp_json_double(json, "p", c->p);
	sp_json_close(json, '}');
}

static void put_interval(struct sp_json *json, const char *key,
			 struct sp_interval i, double below, double above)
{
	i.lo -= below;
	i.hi += above;
	sp_json_interval(json, key, i);
}

static void put_figures(struct sp_json *json, const struct sp_finding *f)
{
	if (f->has_figures)
		put_interval(json, "new", f->new, 0, f->new_missing);
	else
		sp_json_null(json, "new");
	if (f->has_figures && f->has_old) {
		put_interval(json, "old", f->old, 0, f->old_missing);
		put_interval(json, "change", f->change, f->old_missing,
			     f->new_missing);
	} else {
		sp_json_null(json, "old");
		sp_json_null(json, "change");
	}
}

static void put_finding(struct sp_json *json, const struct sp_finding *f)
{
	sp_json_open(json, NULL, '{');
	sp_json_string(json, "limit", f->limit->text);
	sp_json_string(json, "file", f->limit->file);
	sp_json_u64(json, "line", f->limit->line);
	sp_json_string(json, "verdict", sp_verdict_name(f->verdict));
	sp_json_string(json, "why", f->why);
	sp_json_string(json, "unit",
		       sp_limit_is_bytes(f->limit) ? "bytes" : "objects");
	put_figures(json, f);
	/* null where nothing could be found */
	sp_json_double(json, "detectable_growth", f->detectable);
	sp_json_u64_if(json, "period_needed_bytes", f->period_needed != 0,
		       f->period_needed);
	if (f->n_tests) {
		sp_json_u64(json, "functions_compared", f->n_tests);
		sp_json_u64(json, "functions_beyond", f->n_rejected);
		sp_json_u64(json, "functions_undecided", f->n_undecided);
		sp_json_u64(json, "functions_moved", f->n_moved);
		sp_json_double(json, "undecided_share", f->undecided_share);
		sp_json_double(json, "detectable_new_bytes",
			       f->new_site_bytes > 0 ? f->new_site_bytes
						     : INFINITY);
	}
	sp_json_open(json, "explained_by", '[');
	for (size_t i = 0; i < f->n_culprits; i++)
		put_culprit(json, &f->culprits[i]);
	sp_json_close(json, ']');
	sp_json_close(json, '}');
}

static void put_amounts(struct sp_json *json, const struct sp_result *r)
{
	sp_json_open(json, "figures", '[');
	for (size_t i = 0; i < r->n_amounts; i++) {
		sp_json_open_flat(json, NULL, '{');
		sp_json_string(json, "name", r->amounts[i].name);
		sp_json_string(json, "unit",
			       r->amounts[i].is_bytes ? "bytes" : "objects");
		sp_json_interval(json, "mean", r->amounts[i].value);
		sp_json_open_flat(json, "runs", '[');
		for (size_t run = 0; run < r->n_new; run++)
			sp_json_double(json, NULL,
				       r->amounts[i].runs[run].value);
		sp_json_close(json, ']');
		sp_json_close(json, '}');
	}
	sp_json_close(json, ']');
}

int sp_check_json_write(FILE *out, const struct sp_result *result)
{
	const struct sp_check *check = result->check;
	struct sp_json json = sp_json_begin(out);

	sp_json_string(&json, "schema", "sampleprof-check");
	sp_json_u64(&json, "version", 1);
	sp_json_string(&json, "verdict", sp_verdict_name(check->verdict));
	sp_json_string(&json, "undecided",
		       sp_undecided_name(result->undecided));
	sp_json_string(&json, "program", result->program);
	sp_json_u64(&json, "new_runs", result->n_new);
	sp_json_u64(&json, "old_runs", result->n_old);
	sp_json_u64(&json, "period_bytes", result->period_bytes);
	sp_json_double(&json, "confidence", check->level);
	sp_json_double(&json, "false_discovery_rate", 1 - check->level);
	sp_json_double(&json, "power", SP_CHECK_POWER);
	sp_json_open(&json, "notes", '[');
	for (size_t i = 0; i < check->caveats.n_notes; i++)
		sp_json_string(&json, NULL, check->caveats.note[i]);
	sp_json_close(&json, ']');
	sp_json_open(&json, "renamed", '[');
	for (size_t i = 0; i < check->n_renamed; i++) {
		sp_json_open_flat(&json, NULL, '{');
		sp_json_string(&json, "old", check->renamed[i].old);
		sp_json_string(&json, "new", check->renamed[i].new);
		sp_json_close(&json, '}');
	}
	sp_json_close(&json, ']');
	sp_json_open(&json, "limits", '[');
	for (size_t i = 0; i < check->n_findings; i++)
		put_finding(&json, &check->findings[i]);
	sp_json_close(&json, ']');
	put_amounts(&json, result);
	sp_json_string(&json, "evidence", result->evidence);
	sp_json_end(&json);
	return 0;
}
