/* SPDX-License-Identifier: MIT */
/*
 * One file after another is read, added and forgotten: beside the result there
 * is never more than one of them in memory.
 */
#include "read/merge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/saturate.h"
#include "read/codemap.h"
#include "read/load.h"
#include "read/marks.h"
#include "read/embedded_symbols.h"

struct file_facts {
	uint64_t start_unix_ns;
	uint64_t duration_ns;
	size_t rss_end; /* its resident sizes end there in `rss` */
	bool may_have_rss;
};

struct merger {
	struct sp_profile *p;
	struct file_facts *facts; /* of the part with the same position */
	struct sp_codemap code;
	struct sp_embedded stored;
	size_t threads_room, rss_room;
};

/* ---- one part ---- */

/* The frame of a part in the merged profile's terms. */
static struct sp_frame map_frame(const struct sp_profile *part,
				 const uint32_t *module_ids,
				 struct sp_frame frame)
{
	const struct sp_module *m = sp_profile_module(part, frame.module);

	if (frame.module)
		frame.module = m ? module_ids[m - part->modules]
				 : SP_CODEMAP_NO_MODULE;
	return frame;
}

/* Addresses outside of modules are another function in another process. */
static int add_stored(struct merger *g, const struct sp_profile *part,
		      const uint32_t *module_ids)
{
	for (size_t i = 0; i < part->n_stored; i++) {
		const struct sp_embedded_frame *s = &part->stored[i];

		if (s->frame.module &&
		    sp_embedded_copy(&g->stored, &g->p->storage,
				     map_frame(part, module_ids, s->frame), s))
			return -ENOMEM;
	}
	sp_embedded_forget_pointers(&g->stored);
	return 0;
}

/* A part's stacks in the merged profile's terms; ret[i] is the position of
 * part->stacks[i] there.  Frames of the part change. */
static int add_stacks(struct merger *g, struct sp_profile *part,
		      const uint32_t *module_ids, uint32_t *ret)
{
	for (size_t i = 0; i < part->n_stacks; i++) {
		struct sp_stack *s = &part->stacks[i];
		int r;

		for (uint32_t k = 0; k < s->n_frames; k++)
			s->frames[k] =
				map_frame(part, module_ids, s->frames[k]);
		r = sp_codemap_add_stack(&g->code, s, &ret[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_threads(struct merger *g, const struct sp_profile *part)
{
	struct sp_profile *p = g->p;

	for (size_t i = 0; i < part->n_thread_infos; i++) {
		struct sp_thread_info *t;

		if (p->n_thread_infos >= UINT32_MAX - 1 ||
		    sp_array_reserve((void **)&p->thread_infos,
				     &g->threads_room, p->n_thread_infos,
				     sizeof(*t)))
			return -ENOMEM;
		t = &p->thread_infos[p->n_thread_infos++];
		*t = part->thread_infos[i];
		t->index = (uint32_t)p->n_thread_infos;
	}
	return 0;
}

static uint32_t shift_thread(uint32_t thread, size_t first)
{
	return thread == UINT32_MAX ? thread : (uint32_t)(thread + first);
}

/* Times stay those of the part until all are there. */
static int add_samples(struct merger *g, const struct sp_profile *part,
		       const uint32_t *stacks, size_t first_thread)
{
	struct sp_profile *p = g->p;
	const size_t n = p->n_samples + part->n_samples;
	struct sp_sample *grown = realloc(p->samples, (n + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	p->samples = grown;
	for (size_t i = 0; i < part->n_samples; i++) {
		struct sp_sample *s = &p->samples[p->n_samples++];

		*s = part->samples[i];
		s->id = p->n_samples;
		s->part = (uint16_t)p->n_parts;
		s->stack = stacks[s->stack];
		s->thread = shift_thread(s->thread, first_thread);
		s->freed_by = shift_thread(s->freed_by, first_thread);
	}
	return 0;
}

static int add_rss(struct merger *g, const struct sp_profile *part)
{
	struct sp_profile *p = g->p;
	const char *setting = sp_profile_info(part, "setting.rss");
	struct file_facts *facts = &g->facts[p->n_parts];

	/* A process that was short may have recorded none. */
	facts->may_have_rss =
		part->n_rss || (setting && strcmp(setting, "off") != 0);
	for (size_t i = 0; i < part->n_rss; i++) {
		if (sp_array_reserve((void **)&p->rss, &g->rss_room, p->n_rss,
				     sizeof(*p->rss)))
			return -ENOMEM;
		p->rss[p->n_rss++] = part->rss[i];
	}
	facts->rss_end = p->n_rss;
	return 0;
}

static void add_totals(struct sp_profile *p, const struct sp_profile *part)
{
	sp_raise(&p->period_bytes, part->period_bytes);
	sp_raise(&p->check_in_bytes, part->check_in_bytes);
	sp_raise(&p->max_file_bytes, part->max_file_bytes);
	sp_raise(&p->time_error_ns, part->time_error_ns);
	sp_sat_add(&p->exact_alloc_bytes, part->exact_alloc_bytes);
	sp_sat_add(&p->exact_alloc_objects, part->exact_alloc_objects);
	sp_sat_add(&p->missing_bytes_max, part->missing_bytes_max);
	sp_sat_add(&p->unsampled_bytes, part->unsampled_bytes);
	sp_sat_add(&p->unsampled_objects, part->unsampled_objects);
	sp_sat_add(&p->threads, part->threads);
	sp_sat_add(&p->class_slack_bytes, part->class_slack_bytes);
	sp_sat_add(&p->unmatched_frees, part->unmatched_frees);
	sp_sat_add(&p->damaged_records, part->damaged_records);
	sp_sat_add(&p->ignored_bytes, part->ignored_bytes);
	sp_sat_add(&p->unfinished_records, part->unfinished_records);
	for (unsigned int i = 0; i < SP_LOSS_COUNT; i++)
		sp_sat_add(&p->losses[i], part->losses[i]);
	for (unsigned int i = 0; i < SP_FORMAT_CLASSES; i++) {
		sp_sat_add(&p->classes[i].bytes, part->classes[i].bytes);
		sp_sat_add(&p->classes[i].objects, part->classes[i].objects);
	}
	p->has_classes &= part->has_classes;
	p->has_frees &= part->has_frees;
	p->seed ^= part->seed;
	if (part->damage[0] && !p->damage[0])
		snprintf(p->damage, sizeof(p->damage), "%.100s: %.140s",
			 part->path, part->damage);
	if (part->end == SP_PROFILE_END_RUNNING ||
	    p->end == SP_PROFILE_END_CLEAN)
		p->end = part->end;
}

/* The facts that all parts agree on. */
static int keep_common_infos(struct sp_profile *p,
			     const struct sp_profile *part)
{
	size_t kept = 0;

	if (!p->n_parts) {
		p->infos = calloc(part->n_infos + 1, sizeof(*p->infos));
		if (!p->infos)
			return -ENOMEM;
		for (size_t i = 0; i < part->n_infos; i++) {
			struct sp_info *to = &p->infos[i];
			const struct sp_info *info = &part->infos[i];

			to->key = sp_blocks_text(&p->storage, info->key,
						 strlen(info->key));
			to->value = sp_blocks_text(&p->storage, info->value,
						   strlen(info->value));
			if (!to->key || !to->value)
				return -ENOMEM;
			p->n_infos++;
		}
		return 0;
	}
	for (size_t i = 0; i < p->n_infos; i++) {
		const char *value = sp_profile_info(part, p->infos[i].key);

		if (value && strcmp(value, p->infos[i].value) == 0)
			p->infos[kept++] = p->infos[i];
	}
	p->n_infos = kept;
	return 0;
}

static int describe_part(struct merger *g, const struct sp_profile *part)
{
	struct sp_profile *p = g->p;
	struct sp_part *to = &p->parts[p->n_parts];
	struct sp_blocks *storage = &p->storage;

	*to = (struct sp_part){
		.path = sp_blocks_text(storage, part->path, strlen(part->path)),
		.program = sp_blocks_text(storage, part->program,
					  strlen(part->program)),
		.command = sp_blocks_text(storage, part->command,
					  strlen(part->command)),
		.pid = part->pid,
		.file_id = part->file_id,
		.period_bytes = part->period_bytes,
		.exact_alloc_bytes = part->exact_alloc_bytes,
		.exact_alloc_objects = part->exact_alloc_objects,
		.missing_bytes_max = part->missing_bytes_max,
		.end = part->end,
		.window_ns = part->window_ns,
	};
	g->facts[p->n_parts].start_unix_ns = part->start_unix_ns;
	g->facts[p->n_parts].duration_ns = part->duration_ns;
	return to->path && to->program && to->command ? 0 : -ENOMEM;
}

static int check_part(const struct merger *g, const struct sp_profile *part,
		      struct sp_error *err)
{
	const struct sp_profile *p = g->p;

	for (size_t i = 0; i < p->n_parts; i++)
		if (p->parts[i].file_id == part->file_id)
			return sp_error_set(err, -EINVAL, part->path,
					    "is the same recording as %.150s: "
					    "name each file once",
					    p->parts[i].path);
	if (p->n_parts && (p->law.is_dotnet != part->law.is_dotnet ||
			   p->law.always_large != part->law.always_large))
		return sp_error_set(err, -EINVAL, part->path,
				    "was not sampled by the same law as "
				    "%.120s (SAMPLEPROF_LAW, or another "
				    "version): report them one by one",
				    p->parts[0].path);
	return 0;
}

static int add_part(struct merger *g, struct sp_profile *part)
{
	const size_t first_thread = g->p->n_thread_infos;
	uint32_t *modules = calloc(part->n_modules + 1, sizeof(*modules));
	uint32_t *stacks = calloc(part->n_stacks + 1, sizeof(*stacks));
	int r = modules && stacks ? 0 : -ENOMEM;

	for (size_t i = 0; !r && i < part->n_modules; i++)
		r = sp_codemap_add_module(&g->code, &part->modules[i],
					  &modules[i]);
	if (!r)
		r = add_stacks(g, part, modules, stacks);
	if (!r)
		r = add_stored(g, part, modules);
	if (!r)
		r = add_threads(g, part);
	if (!r)
		r = add_samples(g, part, stacks, first_thread);
	if (!r)
		r = add_rss(g, part);
	if (!r)
		r = sp_marks_merge(g->p, part);
	if (!r)
		r = keep_common_infos(g->p, part);
	if (!r)
		r = describe_part(g, part);
	free(modules);
	free(stacks);
	if (r < 0)
		return r;
	if (!g->p->n_parts) {
		g->p->law = part->law;
		g->p->has_classes = g->p->has_frees = true;
		g->p->format_version = part->format_version;
		g->p->pid = part->pid;
	}
	add_totals(g->p, part);
	g->p->n_parts++;
	return 0;
}

/* ---- when all are there ---- */

/* A time that is none of SP_NEVER's. */
static uint64_t shift_time(uint64_t time_ns, uint64_t by_ns)
{
	sp_sat_add(&time_ns, by_ns);
	return time_ns == SP_NEVER ? SP_NEVER - 1 : time_ns;
}

/* Every part on the clock of the one that began first. */
static void set_clock(struct merger *g)
{
	struct sp_profile *p = g->p;

	p->start_unix_ns = g->facts[0].start_unix_ns;
	for (size_t i = 1; i < p->n_parts; i++)
		if (g->facts[i].start_unix_ns < p->start_unix_ns)
			p->start_unix_ns = g->facts[i].start_unix_ns;
	for (size_t i = 0; i < p->n_parts; i++) {
		struct sp_part *part = &p->parts[i];

		part->start_ns = shift_time(
			g->facts[i].start_unix_ns - p->start_unix_ns, 0);
		part->stop_ns =
			shift_time(g->facts[i].duration_ns, part->start_ns);
		sp_raise(&p->duration_ns, part->stop_ns);
	}
	for (size_t i = 0; i < p->n_parts; i++)
		if (p->parts[i].end == SP_PROFILE_END_RUNNING)
			p->parts[i].stop_ns = p->duration_ns;
	for (size_t i = 0; i < p->n_samples; i++) {
		struct sp_sample *s = &p->samples[i];
		const uint64_t by_ns = p->parts[s->part].start_ns;

		s->born_ns = shift_time(s->born_ns, by_ns);
		if (s->freed_ns != SP_NEVER)
			s->freed_ns = shift_time(s->freed_ns, by_ns);
	}
}

/* A step of one part's resident size: what it was and what it is from then. */
struct step {
	uint64_t time_ns;
	uint64_t before;
	uint64_t after;
};

static int compare_steps(const void *a, const void *b)
{
	const struct step *x = a, *y = b;

	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

/* The parts' steps in order of time; *ret_n <= n_rss + n_parts. */
static struct step *make_steps(const struct merger *g, size_t *ret_n)
{
	const struct sp_profile *p = g->p;
	struct step *steps =
		malloc((p->n_rss + p->n_parts + 1) * sizeof(*steps));
	size_t n = 0, k = 0;

	for (size_t i = 0; steps && i < p->n_parts; i++) {
		const struct sp_part *part = &p->parts[i];
		uint64_t last = 0;

		for (; k < g->facts[i].rss_end; k++) {
			const uint64_t now = p->rss[k].rss_bytes;

			steps[n++] = (struct step){
				shift_time(p->rss[k].time_ns, part->start_ns),
				last, now};
			last = now;
		}
		if (part->stop_ns < p->duration_ns)
			steps[n++] = (struct step){part->stop_ns, last, 0};
	}
	if (steps)
		qsort(steps, n, sizeof(*steps), compare_steps);
	*ret_n = n;
	return steps;
}

static int sum_rss(struct merger *g)
{
	struct sp_profile *p = g->p;
	unsigned __int128 sum = 0;
	struct sp_rss *rss;
	struct step *steps;
	size_t n;

	for (size_t i = 0; i < p->n_parts; i++)
		if (!g->facts[i].may_have_rss)
			p->n_rss = 0;
	if (!p->n_rss)
		return 0;
	steps = make_steps(g, &n);
	rss = malloc((n + 1) * sizeof(*rss));
	if (!steps || !rss) {
		free(steps);
		free(rss);
		return -ENOMEM;
	}
	free(p->rss);
	p->rss = rss;
	p->n_rss = 0;
	for (size_t i = 0; i < n; i++) {
		sum = sum - steps[i].before + steps[i].after;
		if (i + 1 < n && steps[i + 1].time_ns == steps[i].time_ns)
			continue;
		rss[p->n_rss++] = (struct sp_rss){
			steps[i].time_ns,
			sum > UINT64_MAX ? UINT64_MAX : (uint64_t)sum};
	}
	free(steps);
	return 0;
}

/* "3 profiles: app -x; app -y": of equal neighbours the first. */
static char *join_commands(struct sp_profile *p)
{
	const char *last = NULL;
	size_t room = 64, n;
	char *text;

	for (size_t i = 0; i < p->n_parts; i++)
		room += strlen(p->parts[i].command) + 2;
	text = sp_blocks_get(&p->storage, room);
	if (!text)
		return NULL;
	n = (size_t)snprintf(text, room, "%zu profiles: ", p->n_parts);
	for (size_t i = 0; i < p->n_parts; i++) {
		const char *command = p->parts[i].command;

		if (last && strcmp(last, command) == 0)
			continue;
		n += (size_t)snprintf(text + n, room - n, "%s%s",
				      last ? "; " : "", command);
		last = command;
	}
	return text;
}

static const char *name_program(const struct sp_profile *p)
{
	for (size_t i = 1; i < p->n_parts; i++)
		if (strcmp(p->parts[i].program, p->parts[0].program) != 0)
			return "(several programs)";
	return p->parts[0].program;
}

static const char *name_files(struct sp_profile *p)
{
	const char *first = p->parts[0].path;
	const size_t room = strlen(first) + 64;
	char *text = sp_blocks_get(&p->storage, room);

	if (text)
		snprintf(text, room, "%s and %zu more", first, p->n_parts - 1);
	return text;
}

static int finish(struct merger *g)
{
	struct sp_profile *p = g->p;
	int r;

	set_clock(g);
	sp_marks_merged(p);
	sp_embedded_finish(&g->stored, p);
	r = sum_rss(g);
	if (!r)
		r = sp_codemap_spread(&g->code);
	if (r < 0)
		return r;
	if (!p->has_classes) {
		memset(p->classes, 0, sizeof(p->classes));
		p->class_slack_bytes = 0;
	}
	p->program = name_program(p);
	p->command = join_commands(p);
	p->host = sp_profile_info(p, "host");
	if (!p->host)
		p->host = "several hosts";
	p->path = name_files(p);
	return p->command && p->path ? 0 : -ENOMEM;
}

/* ---- many ---- */

struct progress {
	sp_progress_fn *fn;
	void *arg;
	size_t files;
	size_t done;
};

#define PER_FILE 10000u

/* A share of each file, for how long they all are is not known. */
static void pass_progress(void *arg, uint64_t done, uint64_t total)
{
	const struct progress *p = arg;
	const double share = total ? (double)done / (double)total : 1;

	p->fn(p->arg, p->done * PER_FILE + (uint64_t)(share * PER_FILE),
	      p->files * PER_FILE);
}

static int merge_all(struct merger *g, const char *const *paths, size_t n,
		     struct progress *progress, struct sp_error *err)
{
	int r;

	for (size_t i = 0; i < n; i++) {
		struct sp_profile *part;

		progress->done = i;
		r = sp_profile_load(paths[i],
				    progress->fn ? pass_progress : NULL,
				    progress, &part, err);
		if (r < 0)
			return r;
		r = check_part(g, part, err);
		if (!r) {
			r = add_part(g, part);
			if (r < 0)
				sp_error_set(err, r, paths[i],
					     "not enough memory to merge it");
		}
		sp_profile_free(part);
		if (r < 0)
			return r;
	}
	r = finish(g);
	return r < 0 ? sp_error_set(err, r, paths[0],
				    "not enough memory to merge %zu files", n)
		     : 0;
}

static int merger_init(struct merger *g, size_t n)
{
	g->p = calloc(1, sizeof(*g->p));
	g->facts = calloc(n, sizeof(*g->facts));
	if (g->p)
		g->p->parts = calloc(n, sizeof(*g->p->parts));
	sp_codemap_init(&g->code, g->p);
	return g->p && g->facts && g->p->parts ? 0 : -ENOMEM;
}

int sp_profile_load_many(const char *const *paths, size_t n,
			 sp_progress_fn *progress, void *progress_arg,
			 struct sp_profile **ret_profile, struct sp_error *err)
{
	struct progress shares = {progress, progress_arg, n, 0};
	struct merger g = {0};
	int r;

	if (n == 1)
		return sp_profile_load(paths[0], progress, progress_arg,
				       ret_profile, err);
	if (n > SP_MERGE_FILES_MAX)
		return sp_error_set(err, -EINVAL, paths[0],
				    "and %zu more are too many files: at most "
				    "%u at once",
				    n - 1, SP_MERGE_FILES_MAX);
	r = merger_init(&g, n);
	if (r < 0)
		sp_error_set(err, r, paths[0], "not enough memory");
	else
		r = merge_all(&g, paths, n, &shares, err);
	sp_codemap_done(&g.code);
	sp_embedded_done(&g.stored);
	free(g.facts);
	if (r < 0)
		sp_profile_free(g.p);
	else
		*ret_profile = g.p;
	return r;
}
