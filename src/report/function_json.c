/* SPDX-License-Identifier: MIT */
#include "report/function_json.h"

#include <stdlib.h>
#include <string.h>

#include "symbols/home.h"

/* Its home, which identifies it with the full name. */
static void put_home(struct sp_json *json, const char *identity)
{
	const struct sp_home home = sp_home_of(identity);
	char *text = home.text ? strndup(home.text, home.bytes) : NULL;

	sp_json_string(json, "defined_in", text);
	free(text);
}

void sp_function_json_identity(struct sp_json *json,
			       const struct sp_aggregate_function *f)
{
	char *full = sp_home_without(f->identity);

	sp_json_string(json, "name", f->name);
	sp_json_string(json, "full_name", full ? full : f->identity);
	free(full);
	put_home(json, f->identity);
	sp_json_string(json, "module", *f->module ? f->module : NULL);
	sp_json_string(json, "file", f->file);
	sp_json_u64(json, "line", f->line);
}

void sp_function_json(struct sp_json *json,
		      const struct sp_aggregate_function *f)
{
	sp_function_json_identity(json, f);
	sp_json_u64(json, "samples", f->flat.all.samples);
	sp_json_u64(json, "cum_samples", f->cum.all.samples);
}

void sp_function_json_path(struct sp_json *json, const struct sp_aggregate *a,
			   const struct sp_aggregate_stack *stack, double share)
{
	const uint32_t n = stack ? stack->n_rows : 0;

	sp_json_open(json, "path", '[');
	for (uint32_t i = 0; i < n; i++)
		sp_json_string(json, NULL,
			       sp_aggregate_in_path(a, stack, i)->name);
	sp_json_close(json, ']');
	sp_json_double(json, "path_share", share);
}
