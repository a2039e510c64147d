/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "cli/leaks.h"
#include "text/json.h"
#include "text/lack.h"

static void write_windows(struct sp_json *json, const char *key,
			  const double *windows)
{
	sp_json_open_flat(json, key, '[');
	for (unsigned int i = 0; i < SP_GROWTH_WINDOWS; i++)
		sp_json_double(json, NULL, windows[i]);
	sp_json_close(json, ']');
}

static void write_or_null(struct sp_json *json, const char *key, uint64_t value)
{
	if (value)
		sp_json_u64(json, key, value);
	else
		sp_json_null(json, key);
}

static void write_verdict(struct sp_json *json, const struct sp_leak_site *s)
{
	const struct sp_leak *leak = s->leak;
	const struct sp_growth *g = &leak->growth[SP_LEAK_BY_TIME];

	sp_json_string(json, "verdict", sp_leak_verdict_name(leak->verdict));
	sp_json_bool(json, "grows", leak->grows);
	sp_json_bool(json, "in_steps", leak->in_steps);
	sp_json_bool(json, "tested", leak->is_tested);
	sp_json_double(json, "p", leak->p);
	sp_json_u64(json, "samples", g->samples);
	sp_json_u64(json, "old_samples", g->old);
	sp_json_interval(json, "bytes_per_s", s->per_s);
	sp_json_interval(json, "bytes_per_mib", s->per_mib);
	sp_json_interval(json, "second_half_bytes", leak->half_bytes);
	sp_json_double(json, "level_bytes", sp_growth_level(g));
	sp_json_double(json, "alive_bytes", g->alive_bytes);
	sp_json_double(json, "young_bytes", g->young_bytes);
	write_or_null(json, "longer_ns", s->longer_ns);
	write_or_null(json, "needs_period_bytes", s->period_bytes);
	write_windows(json, "alive", g->alive);
	write_windows(json, "growth", g->growth);
}

static void write_path(struct sp_json *json, const struct sp_aggregate *a,
		       const struct sp_aggregate_function **by_row,
		       const struct sp_leak_site *s)
{
	const uint32_t n = s->stack && by_row ? s->stack->n_rows : 0;

	sp_json_open(json, "path", '[');
	for (uint32_t i = 0; i < n; i++)
		sp_json_string(json, NULL,
			       by_row[a->rows[s->stack->first_row + i]]->name);
	sp_json_close(json, ']');
	sp_json_double(json, "path_share", s->stack_share);
}

static void write_site(struct sp_json *json, const struct sp_aggregate *a,
		       const struct sp_aggregate_function **by_row,
		       const struct sp_leak_site *s)
{
	sp_json_open(json, NULL, '{');
	sp_json_string(json, "function", s->function->name);
	sp_json_string(json, "module", s->function->module);
	sp_json_string(json, "file", s->function->file);
	sp_json_u64(json, "line", s->function->line);
	write_verdict(json, s);
	write_path(json, a, by_row, s);
	sp_json_close(json, '}');
}

void sp_leaks_write_json(FILE *out, const struct sp_aggregate *aggregate,
			 const struct sp_leak_sites *sites)
{
	const struct sp_profile *p = aggregate->analysis->profile;
	const struct sp_leaks *l = sites->leaks;
	const struct sp_whole whole = sp_whole_of(p);
	const struct sp_aggregate_function **by_row =
		sp_aggregate_by_row(aggregate);
	struct sp_json json = {.out = out, .is_first = true};

	sp_json_open(&json, NULL, '{');
	sp_json_string(&json, "program", p->program);
	sp_json_u64(&json, "duration_ns", p->duration_ns);
	sp_json_bool(&json, "running", p->end == SP_PROFILE_END_RUNNING);
	sp_lack_json(&json, &whole);
	sp_json_u64(&json, "from_ns", l->clock.edge_ns[0]);
	sp_json_u64(&json, "judged_from_ns", l->clock.edge_ns[SP_GROWTH_START]);
	sp_json_u64(&json, "to_ns", l->clock.edge_ns[SP_GROWTH_WINDOWS]);
	sp_json_time(&json, "teardown_ns", l->teardown_ns);
	sp_json_bool(&json, "left_idle", l->left_idle);
	sp_json_bool(&json, "uneven", l->is_uneven);
	sp_json_double(&json, "alloc_bytes", l->alloc_bytes);
	sp_json_double(&json, "confidence", 0.95);
	sp_json_double(&json, "false_discovery_rate", SP_LEAK_RATE);
	sp_json_u64(&json, "tested", l->judging.n_tests);
	sp_json_u64(&json, "leaks", l->judging.n_leaks);
	sp_json_open(&json, "all", '{');
	write_verdict(&json, &sites->all);
	sp_json_close(&json, '}');
	sp_json_open(&json, "sites", '[');
	for (size_t i = 0; i < sites->n_sites; i++)
		write_site(&json, aggregate, by_row, &sites->sites[i]);
	sp_json_close(&json, ']');
	sp_json_close(&json, '}');
	putc('\n', out);
	free(by_row);
}
