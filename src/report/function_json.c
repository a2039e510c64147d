/* SPDX-License-Identifier: MIT */
#include "report/function_json.h"

void sp_function_json_identity(struct sp_json *json,
			       const struct sp_aggregate_function *f)
{
	sp_json_string(json, "name", f->name);
	sp_json_string(json, "full_name", f->identity);
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
