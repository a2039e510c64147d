/* SPDX-License-Identifier: MIT */
#include "report/export_json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "report/text.h"

/* A writer that knows where commas and line ends go.  While `flat` is not 0,
 * all stays on one line, until the group of that depth is closed. */
struct json {
	FILE *out;
	unsigned int depth;
	unsigned int flat;
	bool is_first; /* in the present object or array */
};

static void put_text(struct json *json, const char *text)
{
	putc('"', json->out);
	while (*text) {
		uint32_t code = 0;
		unsigned int n = sp_text_decode_utf8(text, &code);

		if (!n)
			fputs("\\ufffd", json->out);
		else if (code == '"' || code == '\\')
			fprintf(json->out, "\\%c", (char)code);
		else if (sp_text_is_unsafe(code) || code == '<' ||
			 code == '>' || code == '&')
			fprintf(json->out, "\\u%04" PRIx32, code);
		else
			fwrite(text, 1, n, json->out);
		text += n ? n : 1;
	}
	putc('"', json->out);
}

static void break_line(struct json *json)
{
	if (!json->flat)
		fprintf(json->out, "\n%*s", (int)(2 * json->depth), "");
}

/* Whatever comes before a value; `key` is NULL in an array. */
static void begin(struct json *json, const char *key)
{
	if (!json->is_first)
		fputs(json->flat ? ", " : ",", json->out);
	json->is_first = false;
	if (json->depth)
		break_line(json);
	if (key) {
		put_text(json, key);
		fputs(": ", json->out);
	}
}

static void open_group(struct json *json, const char *key, char bracket)
{
	begin(json, key);
	putc(bracket, json->out);
	json->depth++;
	json->is_first = true;
}

static void open_flat(struct json *json, const char *key, char bracket)
{
	open_group(json, key, bracket);
	if (!json->flat)
		json->flat = json->depth;
}

static void close_group(struct json *json, char bracket)
{
	bool was_flat = json->flat;

	if (json->flat == json->depth)
		json->flat = 0;
	json->depth--;
	if (!was_flat && !json->is_first)
		break_line(json);
	putc(bracket, json->out);
	json->is_first = false;
}

static void put_string(struct json *json, const char *key, const char *text)
{
	begin(json, key);
	if (text)
		put_text(json, text);
	else
		fputs("null", json->out);
}

static void put_u64(struct json *json, const char *key, uint64_t value)
{
	begin(json, key);
	fprintf(json->out, "%" PRIu64, value);
}

static void put_bool(struct json *json, const char *key, bool value)
{
	begin(json, key);
	fputs(value ? "true" : "false", json->out);
}

/* The shortest digits that read back as the same number. */
static void put_double(struct json *json, const char *key, double value)
{
	char digits[40] = "null";

	for (int precision = 15; isfinite(value) && precision <= 17;
	     precision++) {
		snprintf(digits, sizeof(digits) - 2, "%.*g", precision, value);
		if (strtod(digits, NULL) == value)
			break;
	}
	if (isfinite(value) && !strpbrk(digits, ".e"))
		strcat(digits, ".0");
	begin(json, key);
	fputs(digits, json->out);
}

static void put_interval(struct json *json, const char *key,
			 struct sp_interval interval)
{
	open_flat(json, key, '{');
	put_double(json, "value", interval.value);
	put_double(json, "lo", interval.lo);
	put_double(json, "hi", interval.hi);
	close_group(json, '}');
}

static void put_bytes(struct json *json, const char *key,
		      const struct sp_acc *acc)
{
	put_interval(json, key, sp_estimate_bytes(acc, SP_REPORT_CONFIDENCE));
}

static void put_objects(struct json *json, const char *key,
			const struct sp_acc *acc)
{
	put_interval(json, key, sp_estimate_objects(acc, SP_REPORT_CONFIDENCE));
}

static void put_estimate(struct json *json, const struct sp_acc *acc)
{
	open_group(json, "estimate", '{');
	put_bytes(json, "alloc_bytes", acc);
	put_objects(json, "alloc_objects", acc);
	close_group(json, '}');
}

static void put_exact(struct json *json, uint64_t bytes, uint64_t objects)
{
	open_flat(json, "exact", '{');
	put_u64(json, "alloc_bytes", bytes);
	put_u64(json, "alloc_objects", objects);
	close_group(json, '}');
}

static const char *end_name(enum sp_profile_end end)
{
	switch (end) {
	case SP_PROFILE_END_CLEAN:
		return "clean";
	case SP_PROFILE_END_KILLED:
		return "killed";
	case SP_PROFILE_END_RUNNING:
		return "running";
	}
	return NULL;
}

static void put_run(struct json *json, const struct sp_profile *p)
{
	char seed[24];

	snprintf(seed, sizeof(seed), "%" PRIu64, p->seed);
	put_u64(json, "format_version", p->format_version);
	put_string(json, "file", p->path);
	put_string(json, "program", p->program);
	put_string(json, "command", p->command);
	put_string(json, "host", p->host);
	put_u64(json, "pid", p->pid);
	put_u64(json, "start_unix_ns", p->start_unix_ns);
	put_u64(json, "duration_ns", p->duration_ns);
	put_string(json, "end", end_name(p->end));
	put_u64(json, "period_bytes", p->period_bytes);
	put_string(json, "seed", seed);
	put_u64(json, "check_in_bytes", p->check_in_bytes);
	put_u64(json, "max_file_bytes", p->max_file_bytes);
	put_u64(json, "samples", p->acc.samples);
	put_u64(json, "threads", p->threads);
	put_exact(json, p->exact_alloc_bytes, p->exact_alloc_objects);
	put_estimate(json, &p->acc);
	put_double(json, "confidence", SP_REPORT_CONFIDENCE);
}

static void put_health(struct json *json, const struct sp_profile *p)
{
	open_group(json, "losses", '{');
	for (unsigned int i = 0; i < SP_LOSS_COUNT; i++)
		put_u64(json, sp_loss_name(i), p->losses[i]);
	close_group(json, '}');
	open_group(json, "damage", '{');
	put_u64(json, "records", p->damaged_records);
	put_u64(json, "ignored_bytes", p->ignored_bytes);
	put_string(json, "text", p->damage);
	close_group(json, '}');
}

static int compare_infos(const void *a, const void *b)
{
	const struct sp_info *ia = *(const struct sp_info *const *)a;
	const struct sp_info *ib = *(const struct sp_info *const *)b;
	int c = strcmp(ia->key, ib->key);

	return c ? c : (ia > ib) - (ia < ib);
}

/* By key, the first of several with one key: a JSON object has no doubles. */
static const struct sp_info **sort_infos(const struct sp_profile *p)
{
	const struct sp_info **infos = calloc(p->n_infos + 1, sizeof(*infos));

	if (!infos)
		return NULL;
	for (size_t i = 0; i < p->n_infos; i++)
		infos[i] = &p->infos[i];
	qsort(infos, p->n_infos, sizeof(*infos), compare_infos);
	return infos;
}

static void put_settings(struct json *json, const struct sp_info **infos,
			 size_t n_infos)
{
	open_group(json, "settings", '{');
	for (size_t i = 0; i < n_infos; i++)
		if (!i || strcmp(infos[i]->key, infos[i - 1]->key))
			put_string(json, infos[i]->key, infos[i]->value);
	close_group(json, '}');
}

static void put_problem(void *arg, const struct sp_module *module,
			const char *reason)
{
	struct json *json = arg;

	open_flat(json, NULL, '{');
	put_string(json, "module", module->path);
	put_string(json, "reason", reason);
	close_group(json, '}');
}

static void put_function(struct json *json,
			 const struct sp_aggregate_function *f)
{
	open_group(json, NULL, '{');
	put_string(json, "name", f->name);
	put_string(json, "module", *f->module ? f->module : NULL);
	put_string(json, "file", f->file);
	put_u64(json, "line", f->line);
	put_u64(json, "samples", f->flat.samples);
	put_u64(json, "cum_samples", f->cum.samples);
	put_bytes(json, "flat_bytes", &f->flat);
	put_bytes(json, "cum_bytes", &f->cum);
	put_objects(json, "flat_objects", &f->flat);
	close_group(json, '}');
}

static void put_frames(struct json *json, const struct sp_aggregate *a,
		       const struct sp_stack *stack)
{
	open_group(json, "frames", '[');
	for (uint32_t i = 0; i < stack->n_frames; i++) {
		struct sp_frame frame = stack->frames[i];
		struct sp_symbols symbols = sp_aggregate_symbols(a, frame);
		const char *module = sp_aggregate_module_path(a, frame);

		for (size_t k = 0; k < symbols.count; k++) {
			const struct sp_symbol *symbol = &symbols.symbol[k];

			open_flat(json, NULL, '{');
			put_string(json, "function", symbol->function);
			put_string(json, "file", symbol->file);
			put_u64(json, "line", symbol->line);
			put_string(json, "module", *module ? module : NULL);
			put_u64(json, "offset", frame.offset);
			put_bool(json, "inlined", symbol->is_inlined);
			close_group(json, '}');
		}
	}
	close_group(json, ']');
}

static void put_stack(struct json *json, const struct sp_aggregate *a,
		      const struct sp_stack *stack)
{
	open_group(json, NULL, '{');
	put_frames(json, a, stack);
	put_u64(json, "samples", stack->acc.samples);
	put_bytes(json, "flat_bytes", &stack->acc);
	/* Nothing is called from inside a whole stack. */
	put_bytes(json, "cum_bytes", &stack->acc);
	put_bool(json, "truncated", stack->flags & SP_STACK_TRUNCATED);
	put_bool(json, "caller_only", stack->flags & SP_STACK_CALLER_ONLY);
	close_group(json, '}');
}

static void put_thread(struct json *json, const struct sp_thread_info *thread)
{
	char name[SP_FORMAT_THREAD_NAME_MAX + 1] = "";

	memcpy(name, thread->name, sizeof(thread->name));
	open_group(json, NULL, '{');
	put_u64(json, "index", thread->index);
	put_u64(json, "tid", thread->tid);
	put_string(json, "name", name);
	put_bool(json, "exited", thread->exited);
	if (thread->has_totals)
		put_exact(json, thread->exact_alloc_bytes,
			  thread->exact_alloc_objects);
	else
		put_string(json, "exact", NULL);
	put_u64(json, "samples", thread->acc.samples);
	put_estimate(json, &thread->acc);
	close_group(json, '}');
}

int sp_export_json_write(FILE *out, const struct sp_aggregate *aggregate,
			 struct sp_error *err)
{
	const struct sp_profile *p = aggregate->profile;
	struct json json = {.out = out, .is_first = true};
	const struct sp_info **infos = sort_infos(p);

	if (!infos)
		return sp_error_set(err, -ENOMEM, p->path,
				    "not enough memory for %zu settings",
				    p->n_infos);
	open_group(&json, NULL, '{');
	put_run(&json, p);
	put_health(&json, p);
	put_settings(&json, infos, p->n_infos);
	free(infos);

	open_group(&json, "symbol_problems", '[');
	sp_symbolizer_problems(aggregate->symbolizer, put_problem, &json);
	close_group(&json, ']');
	open_group(&json, "functions", '[');
	for (size_t i = 0; i < aggregate->n_functions; i++)
		put_function(&json, &aggregate->functions[i]);
	close_group(&json, ']');
	open_group(&json, "stacks", '[');
	for (size_t i = 0; i < aggregate->n_stacks; i++)
		put_stack(&json, aggregate, aggregate->stacks[i]);
	close_group(&json, ']');
	open_group(&json, "thread_infos", '[');
	for (size_t i = 0; i < p->n_thread_infos; i++)
		put_thread(&json, &p->thread_infos[i]);
	close_group(&json, ']');
	close_group(&json, '}');
	putc('\n', out);
	return 0;
}
