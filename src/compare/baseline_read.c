/* SPDX-License-Identifier: MIT */
/* A baseline file is text that anybody may have edited: what is used of it is
 * checked, here and once. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "compare/baseline.h"
#include "format/layout.h"

#define BYTES_MAX  (256ull << 20)
#define RUNS_MAX   1000
#define FRAMES_MAX 4096
#define PATHS_MAX  1000000
#define PHASES_MAX 10000

struct reading {
	const char *path;
	struct sp_paths *paths;
	struct sp_error *err;
	struct sp_summary **runs;
	size_t n;
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct reading *r,
							const char *format, ...)
{
	char message[200];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	return sp_error_set(r->err, -EINVAL, r->path, "%s", message);
}
#ifdef __clang_analyzer__ /* as in base/error.h */
#define refuse(r, ...) (refuse(r, __VA_ARGS__), -EINVAL)
#endif

static int no_memory(const struct reading *r)
{
	return sp_error_set(r->err, -ENOMEM, r->path,
			    "not enough memory for this baseline");
}

/* ---- values ---- */

static int get_u64(const struct reading *r, const json_t *object,
		   const char *key, uint64_t *ret)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return refuse(r, "\"%s\" is not an integer of 0 or more", key);
	*ret = (uint64_t)json_integer_value(value);
	return 0;
}

/* Finite and not negative. */
static bool is_amount(const json_t *value)
{
	return json_is_number(value) && isfinite(json_number_value(value)) &&
	       json_number_value(value) >= 0;
}

static int get_interval(const struct reading *r, const json_t *object,
			const char *key, struct sp_interval *ret)
{
	const json_t *interval = json_object_get(object, key);
	const json_t *value = json_object_get(interval, "value");
	const json_t *lo = json_object_get(interval, "lo");
	const json_t *hi = json_object_get(interval, "hi");

	if (!is_amount(value) || !is_amount(lo) || !is_amount(hi))
		return refuse(r, "\"%s\" has no \"value\", \"lo\" and \"hi\"",
			      key);
	if (json_number_value(lo) > json_number_value(value) ||
	    json_number_value(value) > json_number_value(hi))
		return refuse(r, "\"%s\": its value is not from lo to hi", key);
	*ret = sp_interval_around(json_number_value(value),
				  json_number_value(lo), json_number_value(hi));
	return 0;
}

/* ---- the head and the runs ---- */

static int check_version(const struct reading *r, const json_t *root)
{
	const char *schema = json_string_value(json_object_get(root, "schema"));
	const json_t *version = json_object_get(root, "version");

	if (!schema || strcmp(schema, "sampleprof-baseline") != 0)
		return refuse(r, "this is no baseline: \"schema\" is not "
				 "\"sampleprof-baseline\"");
	if (!json_is_integer(version) || json_integer_value(version) < 1)
		return refuse(r, "\"version\" is no number of a version");
	if (json_integer_value(version) > SP_BASELINE_VERSION)
		return refuse(r,
			      "a baseline of version %lld: this program knows "
			      "%d; use a later one, or write the baseline "
			      "anew with --update-baseline",
			      (long long)json_integer_value(version),
			      SP_BASELINE_VERSION);
	return 0;
}

/* Those that --confidence has. */
static bool is_level(double level)
{
	static const double levels[] = {0.9, 0.95, 0.99, 0.999};

	for (size_t i = 0; i < sizeof(levels) / sizeof(*levels); i++)
		if (fabs(level - levels[i]) < 1e-9)
			return true;
	return false;
}

static int get_head(const struct reading *r, const json_t *root,
		    struct sp_summary *ret)
{
	const char *program =
		json_string_value(json_object_get(root, "program"));
	const char *law = json_string_value(json_object_get(root, "law"));
	const json_t *level = json_object_get(root, "level");

	if (get_u64(r, root, "period_bytes", &ret->period_bytes) < 0)
		return -EINVAL;
	if (!ret->period_bytes || ret->period_bytes > SP_FORMAT_PERIOD_MAX)
		return refuse(r, "\"period_bytes\" is no sampling period");
	if (!program)
		return refuse(r, "\"program\" is not the name of a program");
	if (!law ||
	    (strcmp(law, "dotnet") != 0 && strcmp(law, "exponential") != 0))
		return refuse(r, "\"law\" is none of exponential, dotnet");
	ret->law.is_dotnet = strcmp(law, "dotnet") == 0;
	ret->level = json_number_value(level);
	if (!is_level(ret->level))
		return refuse(r, "\"level\" is none of 0.9, 0.95, 0.99, 0.999");
	ret->program = strdup(program);
	ret->path = strdup(r->path);
	return ret->program && ret->path ? 0 : no_memory(r);
}

static int get_phases(const struct reading *r, const json_t *run,
		      struct sp_summary *ret)
{
	json_t *phases = json_object_get(run, "phases"), *phase;
	const char *name;

	if (phases &&
	    (!json_is_object(phases) || json_object_size(phases) > PHASES_MAX))
		return refuse(r, "\"phases\" are not up to %d phases by name",
			      PHASES_MAX);
	json_object_foreach(phases, name, phase)
	{
		struct sp_phase_sum *sum = sp_summary_add_phase(ret, name);

		if (!sum)
			return no_memory(r);
		if (get_u64(r, phase, "alloc_bytes", &sum->exact_alloc_bytes) <
			    0 ||
		    get_u64(r, phase, "alloc_objects",
			    &sum->exact_alloc_objects) < 0 ||
		    get_u64(r, phase, "slack_bytes", &sum->slack_bytes) < 0)
			return -EINVAL;
	}
	return 0;
}

/* Baselines of the first programs do not tell: 0. */
static int get_number(const struct reading *r, const json_t *run,
		      const char *key, uint64_t *ret)
{
	const json_t *value = json_object_get(run, key);
	const char *text = json_string_value(value);
	char prefixed[24];

	*ret = 0;
	if (!value)
		return 0;
	snprintf(prefixed, sizeof(prefixed), "0x%s", text ? text : "");
	if (!text || strlen(text) != 16 || !sp_parse_u64(prefixed, ret))
		return refuse(r, "\"%s\" is not 16 hexadecimal digits", key);
	return 0;
}

static int get_recording(const struct reading *r, const json_t *run,
			 struct sp_summary *ret)
{
	uint64_t recording, seed;

	if (get_number(r, run, "recording", &recording) < 0 ||
	    get_number(r, run, "seed", &seed) < 0)
		return -EINVAL;
	if (!json_object_get(run, "recording"))
		return 0;
	ret->recordings = malloc(sizeof(*ret->recordings));
	ret->seeds = malloc(sizeof(*ret->seeds));
	if (!ret->recordings || !ret->seeds)
		return no_memory(r);
	ret->recordings[0] = recording;
	ret->seeds[0] = seed;
	ret->n_recordings = 1;
	return 0;
}

static int get_run(const struct reading *r, const json_t *root,
		   const json_t *run, struct sp_summary *ret)
{
	static const struct {
		const char *key;
		enum sp_view view;
	} estimates[] = {{"peak_bytes", SP_VIEW_PEAK},
			 {"live_bytes", SP_VIEW_LIVE},
			 {"temporary_bytes", SP_VIEW_TEMPORARY}};

	if (get_head(r, root, ret) < 0 || get_recording(r, run, ret) < 0 ||
	    get_u64(r, run, "alloc_bytes", &ret->exact_alloc_bytes) < 0 ||
	    get_u64(r, run, "alloc_objects", &ret->exact_alloc_objects) < 0)
		return -EINVAL;
	if (get_phases(r, run, ret) < 0)
		return -EINVAL;
	ret->has_frees = json_object_get(run, "peak_bytes") != NULL;
	for (size_t i = 0; ret->has_frees && i < 3; i++)
		if (get_interval(r, run, estimates[i].key,
				 &ret->bytes[estimates[i].view]) < 0)
			return -EINVAL;
	return 0;
}

static int get_runs(struct reading *r, const json_t *root)
{
	const json_t *runs = json_object_get(root, "runs");
	const size_t n = json_array_size(runs);

	if (!n || n > RUNS_MAX)
		return refuse(r, "\"runs\" are not 1 to %d runs", RUNS_MAX);
	r->runs = calloc(n, sizeof(*r->runs));
	if (!r->runs)
		return no_memory(r);
	for (size_t i = 0; i < n; i++) {
		r->runs[i] = calloc(1, sizeof(*r->runs[i]));
		if (!r->runs[i])
			return no_memory(r);
		r->n++;
		if (get_run(r, root, json_array_get(runs, i), r->runs[i]) < 0)
			return -EINVAL;
	}
	return 0;
}

/* ---- paths ---- */

#define N_SUMS 7

/* [samples, bytes] or [samples, bytes, sums...]: see baseline_write.c.  Rows of
 * a peak are measured (E43); older ones were the mean of two moments, where a
 * sample may count half, and its variance more. */
static bool get_acc(const json_t *value, uint64_t period_bytes, bool is_peak,
		    struct sp_acc *ret)
{
	double *const sums[N_SUMS] = {
		&ret->est_bytes, &ret->k2, &ret->k3, &ret->kz,
		&ret->est_count, &ret->c2, &ret->c3};
	const size_t n = json_array_size(value);
	const json_int_t samples = json_integer_value(json_array_get(value, 0));
	const json_int_t bytes = json_integer_value(json_array_get(value, 1));

	const double least = is_peak ? 0.5 : 1;
	const double r = (double)period_bytes;

	if ((n != 2 && n != 2 + N_SUMS) || samples < 1 ||
	    bytes < (is_peak ? samples / 2 : samples))
		return false;
	sp_acc_init(ret, period_bytes);
	ret->samples = (uint64_t)samples;
	ret->size_bytes = (uint64_t)bytes;
	if (n == 2) {
		ret->sure_samples = ret->samples;
		ret->sure_bytes = ret->size_bytes;
		ret->est_bytes = (double)bytes;
		ret->est_count = (double)samples;
		return true;
	}
	for (size_t i = 0; i < N_SUMS; i++) {
		const json_t *sum = json_array_get(value, 2 + i);

		if (!is_amount(sum) || json_number_value(sum) > 1e60)
			return false;
		*sums[i] = json_number_value(sum);
	}
	/* Rounding aside, a sample stands for itself at least.  A sum of
	 * squares is not above the square of the sum, nor twice that of the one
	 * that is held against totals (E46).  These may leave a sample no more
	 * than itself, and as uncertain as the rest of a period. */
	return ret->est_bytes >= 0.9999 * (double)bytes &&
	       ret->est_count >= 0.9999 * least * (double)samples &&
	       ret->k2 <= 4 * ret->est_bytes *
				  fmax(ret->est_bytes, (double)bytes + r) &&
	       ret->c2 <= 4 * ret->est_count * fmax(ret->est_count, 1 + r);
}

static int get_path(struct reading *r, const json_t *names, const char *list,
		    size_t line, uint32_t *ret_path)
{
	const size_t n = json_array_size(names);
	uint32_t *frames;
	int code = 0;

	if (!n || n > FRAMES_MAX)
		return refuse(r, "%s[%zu]: \"path\" is not 1 to %d names", list,
			      line, FRAMES_MAX);
	frames = calloc(n, sizeof(*frames));
	for (size_t i = 0; frames && !code && i < n; i++) {
		const json_t *name = json_array_get(names, i);

		if (!json_is_string(name))
			code = refuse(r, "%s[%zu].path[%zu] is no name", list,
				      line, i);
		else if (sp_intern_add(
				 &r->paths->frames, json_string_value(name),
				 json_string_length(name), &frames[i]) < 0)
			code = no_memory(r);
	}
	if (!frames || (!code && sp_paths_add(r->paths, frames, n, ret_path)))
		code = no_memory(r);
	free(frames);
	return code;
}

/* A list of paths: the rows of each run, NULL where it cannot have any. */
struct list {
	const char *name; /* "views.alloc" */
	struct sp_path_rows **rows;
	bool is_peak; /* rows may be measured (E43) */
};

static int get_line(struct reading *r, const json_t *line,
		    const struct list *list, size_t number)
{
	const json_t *runs = json_object_get(line, "runs");
	uint32_t path;
	int code = get_path(r, json_object_get(line, "path"), list->name,
			    number, &path);

	if (code < 0)
		return code;
	if (json_array_size(runs) != r->n)
		return refuse(r,
			      "%s[%zu]: \"runs\" is not as long as the "
			      "baseline's",
			      list->name, number);
	for (size_t i = 0; i < r->n; i++) {
		const json_t *value = json_array_get(runs, i);
		struct sp_path_rows *rows = list->rows[i];
		struct sp_path_row *row = rows ? &rows->at[rows->n] : NULL;

		if (json_is_null(value))
			continue;
		if (!row || !get_acc(value, r->runs[i]->period_bytes,
				     list->is_peak, &row->acc))
			return refuse(r,
				      "%s[%zu].runs[%zu] are no sums of "
				      "samples",
				      list->name, number, i);
		row->path = path;
		rows->n++;
	}
	return 0;
}

/* Each path comes once: twice, it would count twice. */
static int check_repeats(struct reading *r, const struct list *list)
{
	const size_t n_paths = r->paths->paths.n_entries;
	bool *seen = calloc(n_paths + 1, sizeof(*seen));
	char *text = NULL;
	int code = seen ? 0 : no_memory(r);

	for (size_t i = 0; !code && i < r->n; i++) {
		const struct sp_path_rows *rows = list->rows[i];

		memset(seen, 0, n_paths);
		for (size_t k = 0; !code && rows && k < rows->n; k++) {
			if (seen[rows->at[k].path]) {
				text = sp_paths_text(r->paths,
						     rows->at[k].path);
				code = refuse(r, "%s has a path twice: %.120s",
					      list->name, text ? text : "");
			}
			seen[rows->at[k].path] = true;
		}
	}
	free(text);
	free(seen);
	return code;
}

static int get_list(struct reading *r, const json_t *lines,
		    const struct list *list)
{
	const size_t n = json_array_size(lines);
	int code = 0;

	if (!json_is_array(lines) || n > PATHS_MAX)
		return refuse(r, "%s is not a list of paths", list->name);
	for (size_t i = 0; i < r->n; i++) {
		if (!list->rows[i])
			continue;
		list->rows[i]->at = calloc(n + 1, sizeof(struct sp_path_row));
		if (!list->rows[i]->at)
			return no_memory(r);
	}
	for (size_t i = 0; !code && i < n; i++)
		code = get_line(r, json_array_get(lines, i), list, i);
	if (!code)
		code = check_repeats(r, list);
	for (size_t i = 0; !code && i < r->n; i++)
		if (list->rows[i])
			sp_path_rows_settle(list->rows[i]);
	return code;
}

/* *rows is room for a pointer for each run, here and below. */
static int get_view(struct reading *r, const json_t *lines, enum sp_view view,
		    struct sp_path_rows **rows)
{
	char name[64];

	snprintf(name, sizeof(name), "views.%s", sp_view_name(view));
	for (size_t i = 0; i < r->n; i++) {
		r->runs[i]->has_rows[view] = true;
		rows[i] = &r->runs[i]->rows[view];
	}
	return get_list(r, lines,
			&(struct list){name, rows, view == SP_VIEW_PEAK});
}

/* Of the runs that have a phase of that name. */
static int get_phase(struct reading *r, const json_t *lines, const char *phase,
		     struct sp_path_rows **rows)
{
	char name[64];

	snprintf(name, sizeof(name), "phases.%.40s", phase);
	for (size_t i = 0; i < r->n; i++) {
		struct sp_summary *run = r->runs[i];
		const struct sp_phase_sum *found = sp_summary_phase(run, phase);
		struct sp_phase_sum *sum =
			found ? &run->phases[found - run->phases] : NULL;

		rows[i] = sum ? &sum->rows : NULL;
		if (sum)
			sum->has_rows = true;
	}
	return get_list(r, lines, &(struct list){name, rows, false});
}

/* Baselines of the first programs have none. */
static int get_phase_paths(struct reading *r, const json_t *root,
			   struct sp_path_rows **rows)
{
	json_t *phases = json_object_get(root, "phases"), *lines;
	const char *name;
	int code = 0;

	if (phases &&
	    (!json_is_object(phases) || json_object_size(phases) > PHASES_MAX))
		return refuse(r, "\"phases\" are not up to %d phases by name",
			      PHASES_MAX);
	json_object_foreach(phases, name, lines)
	{
		code = get_phase(r, lines, name, rows);
		if (code < 0)
			break;
	}
	return code;
}

static int get_views(struct reading *r, const json_t *root)
{
	const json_t *views = json_object_get(root, "views");
	struct sp_path_rows **rows = calloc(r->n, sizeof(*rows));
	int code = rows ? 0 : no_memory(r);

	for (int v = 0; !code && v < SP_SUMMARY_VIEWS; v++) {
		const json_t *lines =
			json_object_get(views, sp_view_name((enum sp_view)v));

		if (lines)
			code = get_view(r, lines, (enum sp_view)v, rows);
	}
	if (!code)
		code = get_phase_paths(r, root, rows);
	free(rows);
	if (code < 0)
		return code;
	if (!r->runs[0]->has_rows[SP_VIEW_ALLOC])
		return refuse(r, "views.alloc is missing");
	for (size_t i = 0; i < r->n; i++)
		r->runs[i]->has_frees &=
			r->runs[i]->has_rows[SP_VIEW_PEAK] &&
			r->runs[i]->has_rows[SP_VIEW_LIVE] &&
			r->runs[i]->has_rows[SP_VIEW_TEMPORARY];
	return 0;
}

/* ---- the file ---- */

struct source {
	int fd;
	uint64_t bytes;
	int error;
};

/* jansson's: what is longer than any baseline ends in the middle. */
static size_t read_some(void *buffer, size_t room, void *data)
{
	struct source *source = data;
	ssize_t n;

	do
		n = read(source->fd, buffer, room);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		source->error = errno;
	else if ((source->bytes += (uint64_t)n) > BYTES_MAX)
		source->error = EFBIG;
	return source->error ? (size_t)-1 : (size_t)n;
}

static int load_json(const struct reading *r, json_t **ret)
{
	struct source source = {.fd = open(r->path, O_RDONLY | O_CLOEXEC)};
	json_error_t error;

	if (source.fd < 0)
		return sp_error_set(r->err, -errno, r->path, "cannot open: %s",
				    strerror(errno));
	*ret = json_load_callback(read_some, &source, JSON_REJECT_DUPLICATES,
				  &error);
	close(source.fd);
	if (source.error)
		return sp_error_set(r->err, -source.error, r->path,
				    "cannot read: %s", strerror(source.error));
	if (!*ret)
		return refuse(r, "line %d: %.150s", error.line, error.text);
	return 0;
}

int sp_baseline_read(const char *path, struct sp_paths *paths,
		     struct sp_summary ***ret_runs, size_t *ret_n,
		     struct sp_error *err)
{
	struct reading r = {.path = path, .paths = paths, .err = err};
	json_t *root = NULL;
	int code = load_json(&r, &root);

	if (!code)
		code = check_version(&r, root);
	if (!code)
		code = get_runs(&r, root);
	if (!code)
		code = get_views(&r, root);
	for (size_t i = 0; !code && i < r.n; i++)
		code = sp_baseline_check(path, r.runs[i], err);
	json_decref(root);
	if (code < 0) {
		for (size_t i = 0; i < r.n; i++)
			sp_summary_free(r.runs[i]);
		free(r.runs);
		return code;
	}
	*ret_runs = r.runs;
	*ret_n = r.n;
	return 0;
}
