/* SPDX-License-Identifier: MIT */

#include "cli/leaks.h"
#include "report/function_json.h"
#include "text/json.h"
#include "text/lack.h"
#include "text/table.h"
#include "view/view_json_head.h"

static void write_windows(struct sp_json *json, const char *key,
			  const double *windows)
{
	sp_json_open_flat(json, key, '[');
	for (unsigned int i = 0; i < SP_GROWTH_WINDOWS; i++)
		sp_json_double(json, NULL, windows[i]);
	sp_json_close(json, ']');
}

struct row {
	const char *name, *module, *file, *verdict;
	uint64_t line, samples, old, longer_ns, period_bytes;
	bool grows, in_steps, is_tested;
	double p, level, alive, young;
	struct sp_interval per_s, per_mib, half;
};

#define SITE(kind, key, member) SP_TABLE_COLUMN(struct row, kind, key, member)
#define OF_SITES                4 /* columns in front, not of all together */

static const struct sp_table_column columns[] = {
	SITE(TEXT, "function", name),
	SITE(TEXT, "module", module),
	SITE(TEXT, "file", file),
	SITE(U64, "line", line),
	SITE(TEXT, "verdict", verdict),
	SITE(BOOL, "grows", grows),
	SITE(BOOL, "in_steps", in_steps),
	SITE(BOOL, "tested", is_tested),
	SITE(DOUBLE, "p", p),
	SITE(U64, "samples", samples),
	SITE(U64, "old_samples", old),
	SITE(INTERVAL, "bytes_per_s", per_s),
	SITE(INTERVAL, "bytes_per_mib", per_mib),
	SITE(INTERVAL, "second_half_bytes", half),
	SITE(DOUBLE, "level_bytes", level),
	SITE(DOUBLE, "alive_bytes", alive),
	SITE(DOUBLE, "young_bytes", young),
	SITE(NONZERO, "longer_ns", longer_ns),
	SITE(NONZERO, "needs_period_bytes", period_bytes),
	{0},
};

/* The function is NULL for all together. */
static struct row row_of(const struct sp_leak_site *s)
{
	const struct sp_aggregate_function *f = s->function;
	const struct sp_leak *leak = s->leak;
	const struct sp_growth *g = &leak->growth[SP_LEAK_BY_TIME];

	return (struct row){
		.name = f ? f->name : NULL,
		.module = f ? f->module : NULL,
		.file = f ? f->file : NULL,
		.line = f ? f->line : 0,
		.verdict = sp_leak_verdict_name(leak->verdict),
		.grows = leak->grows,
		.in_steps = leak->in_steps,
		.is_tested = leak->is_tested,
		.p = leak->p,
		.samples = g->samples,
		.old = g->old,
		.per_s = s->per_s,
		.per_mib = s->per_mib,
		.half = leak->half_bytes,
		.level = sp_growth_level(g),
		.alive = g->alive_bytes,
		.young = g->young_bytes,
		.longer_ns = s->longer_ns,
		.period_bytes = s->period_bytes,
	};
}

/* From that column on. */
static void write_verdict(struct sp_json *json, const struct sp_leak_site *s,
			  unsigned int first)
{
	const struct sp_growth *g = &s->leak->growth[SP_LEAK_BY_TIME];
	const struct row row = row_of(s);

	sp_table_json_row(json, columns + first, &row);
	write_windows(json, "alive", g->alive);
	write_windows(json, "growth", g->growth);
}

static void write_site(struct sp_json *json, const struct sp_aggregate *a,
		       const struct sp_leak_site *s)
{
	sp_json_open(json, NULL, '{');
	write_verdict(json, s, 0);
	sp_function_json_path(json, a, s->stack, s->stack_share);
	sp_json_close(json, '}');
}

void sp_leaks_write_json(FILE *out, const struct sp_aggregate *aggregate,
			 const struct sp_leak_sites *sites)
{
	const struct sp_profile *p = aggregate->analysis->profile;
	const struct sp_leaks *l = sites->leaks;
	const struct sp_whole whole = sp_whole_of(p);
	struct sp_json json = sp_json_begin(out);

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
	sp_view_json_filter(&json, aggregate->analysis->filter);
	sp_json_open(&json, "all", '{');
	write_verdict(&json, &sites->all, OF_SITES);
	sp_json_close(&json, '}');
	sp_json_open(&json, "sites", '[');
	for (size_t i = 0; i < sites->n_sites; i++)
		write_site(&json, aggregate, &sites->sites[i]);
	sp_json_close(&json, ']');
	sp_json_end(&json);
}

void sp_leaks_write_csv(FILE *out, const struct sp_leak_sites *sites)
{
	sp_table_csv_head(out, columns);
	for (size_t i = 0; i < sites->n_sites; i++) {
		const struct row row = row_of(&sites->sites[i]);

		sp_table_csv_row(out, columns, &row);
	}
}
