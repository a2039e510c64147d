/* SPDX-License-Identifier: MIT */
#include "support/report_fixture.h"

#include <stdlib.h>
#include <string.h>

/* Unlike assert(), also in a release build. */
static void require(bool condition)
{
	if (!condition)
		abort();
}

struct sp_symbols sp_symbolizer_lookup(struct sp_symbolizer *symbolizer,
				       struct sp_frame frame,
				       bool is_return_address)
{
	require(is_return_address);
	require(frame.offset < FIXTURE_SYMBOLS);
	require(symbolizer->counts[frame.offset]);
	return (struct sp_symbols){symbolizer->symbols[frame.offset],
				   symbolizer->counts[frame.offset]};
}

/* The fixture has one, which it keeps. */
int sp_symbolizer_new(const struct sp_profile *profile,
		      const struct sp_symbolizer_options *options,
		      struct sp_symbolizer **ret_symbolizer,
		      struct sp_error *err)
{
	(void)profile;
	(void)options;
	(void)ret_symbolizer;
	(void)err;
	abort();
}

void sp_symbolizer_free(struct sp_symbolizer *symbolizer)
{
	(void)symbolizer;
	abort();
}

void sp_symbolizer_problems(const struct sp_symbolizer *symbolizer,
			    void (*fn)(void *arg, const struct sp_module *,
				       const char *reason),
			    void *arg)
{
	if (symbolizer->problem)
		fn(arg, symbolizer->problem, symbolizer->reason);
}

void sp_symbolizer_lacks(const struct sp_symbolizer *symbolizer,
			 void (*fn)(void *arg, const struct sp_module *,
				    const char *lack),
			 void *arg)
{
	(void)symbolizer;
	(void)fn;
	(void)arg;
}

const struct sp_symbolizer_options *sp_symbolizer_options_of(
	const struct sp_symbolizer *symbolizer)
{
	return &symbolizer->options;
}

void sp_symbolizer_count(const struct sp_symbolizer *symbolizer,
			 size_t *ret_named, size_t *ret_embedded)
{
	*ret_named = symbolizer->named;
	*ret_embedded = symbolizer->embedded;
}

/* By the rules of the report. */
static enum sp_role role_of(const char *name)
{
	static const struct sp_see_through_options all;
	struct sp_see_through *rules;
	enum sp_role role;

	require(sp_see_through_new(&all, &rules, NULL) == 0);
	role = sp_see_through_role(rules, "", name);
	sp_see_through_free(rules);
	return role;
}

/* As a loader does at the end. */
static void set_part(struct fixture *fixture)
{
	const struct sp_profile *p = &fixture->profile;

	fixture->part = (struct sp_part){
		.path = p->path,
		.program = p->program,
		.command = p->command,
		.pid = p->pid,
		.period_bytes = p->period_bytes,
		.exact_alloc_bytes = p->exact_alloc_bytes,
		.exact_alloc_objects = p->exact_alloc_objects,
		.missing_bytes_max = p->missing_bytes_max,
		.end = p->end,
		.stop_ns = SP_NEVER,
		.window_ns = p->window_ns,
	};
}

struct fixture *fixture_new(uint64_t period_bytes)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct sp_profile *p = &fixture->profile;

	*p = (struct sp_profile){
		.path = "app.7.sprof",
		.format_version = 1,
		.pid = 7,
		.start_unix_ns = 1795254012000000000,
		.duration_ns = 3250000000,
		.period_bytes = period_bytes,
		.seed = UINT64_MAX,
		.end = SP_PROFILE_END_CLEAN,
		.program = "/bin/app",
		.command = "app -x",
		.host = "box",
		.max_file_bytes = 64 << 20,
		.check_in_bytes = 1 << 20,
		.exact_alloc_bytes = 5912331,
		.exact_alloc_objects = 1234,
		.threads = 2,
		.modules = fixture->modules,
		.n_modules = 2,
		.stacks = fixture->stacks,
		.thread_infos = fixture->threads,
		.infos = fixture->infos,
		.parts = &fixture->part,
		.n_parts = 1,
	};
	set_part(fixture);
	fixture->modules[0] = (struct sp_module){.id = 1, .path = "/bin/app"};
	fixture->modules[1] =
		(struct sp_module){.id = 2, .path = "/lib/libz.so.1"};
	fixture->next = (struct sp_sample){
		.freed_ns = SP_NEVER,
		.period_bytes = period_bytes,
		.age_bytes = SP_UNKNOWN,
		.thread = UINT32_MAX,
		.freed_by = UINT32_MAX,
	};
	sp_question_init(&fixture->question);
	return fixture;
}

void fixture_symbol(struct fixture *fixture, size_t offset, const char *name,
		    const char *file, uint32_t line)
{
	size_t n = fixture->symbolizer.counts[offset]++;
	struct sp_symbol *symbols = fixture->symbolizer.symbols[offset];

	require(n < FIXTURE_INLINES);
	symbols[n] = (struct sp_symbol){.function = name,
					.file = file,
					.line = line,
					.role = role_of(name)};
	if (n)
		symbols[n - 1].is_inlined = true;
}

struct sp_stack *fixture_stack(struct fixture *fixture, const size_t *offsets,
			       size_t n_offsets, uint64_t samples,
			       uint64_t size_bytes)
{
	struct sp_profile *p = &fixture->profile;
	size_t n = p->n_stacks++;
	struct sp_stack *stack = &fixture->stacks[n];

	require(n < FIXTURE_STACKS && n_offsets <= FIXTURE_FRAMES);
	*stack = (struct sp_stack){
		.id = (uint32_t)n + 1,
		.n_frames = (uint32_t)n_offsets,
		.frames = fixture->frames[n],
	};
	for (size_t i = 0; i < n_offsets; i++)
		stack->frames[i] = (struct sp_frame){1, offsets[i]};
	fixture_samples(fixture, stack, samples, size_bytes);
	return stack;
}

void fixture_samples(struct fixture *fixture, const struct sp_stack *stack,
		     uint64_t samples, uint64_t size_bytes)
{
	struct sp_profile *p = &fixture->profile;
	struct sp_sample sample = fixture->next;

	sample.stack = (uint32_t)(stack - fixture->stacks);
	sample.size_bytes = size_bytes;
	p->samples = realloc(p->samples,
			     (p->n_samples + samples + 1) * sizeof(sample));
	require(p->samples);
	for (uint64_t i = 0; i < samples; i++) {
		sample.id = fixture->next.id + p->n_samples;
		p->samples[p->n_samples++] = sample;
	}
}

static void free_answer(struct fixture *fixture)
{
	sp_aggregate_free(fixture->aggregate);
	fixture->aggregate = NULL;
	sp_analysis_free(fixture->analysis);
	fixture->analysis = NULL;
}

const struct sp_analysis *fixture_analysis(struct fixture *fixture)
{
	int r;

	free_answer(fixture);
	set_part(fixture);
	r = sp_analysis_new(&fixture->profile, &fixture->question,
			    SP_VIEW_ALLOC, &fixture->analysis, NULL);
	require(r == 0);
	return fixture->analysis;
}

struct sp_aggregate *fixture_aggregate(struct fixture *fixture)
{
	int r = sp_aggregate_new(fixture_analysis(fixture),
				 &fixture->symbolizer, NULL, NULL,
				 &fixture->aggregate, NULL);

	require(r == 0);
	return fixture->aggregate;
}

const struct sp_class_sums *fixture_sums(const struct fixture *fixture,
					 const struct sp_stack *stack)
{
	return &fixture->analysis->view->stacks[stack - fixture->stacks];
}

void fixture_free(struct fixture *fixture)
{
	free_answer(fixture);
	free(fixture->profile.samples);
	free(fixture);
}

int fixture_teardown(void **state)
{
	fixture_free(*state);
	return 0;
}

const struct sp_aggregate_function *fixture_find(
	const struct sp_aggregate *aggregate, const char *name,
	const char *module)
{
	for (size_t i = 0; i < aggregate->n_functions; i++)
		if (!strcmp(aggregate->functions[i].name, name) &&
		    !strcmp(aggregate->functions[i].module, module))
			return &aggregate->functions[i];
	return NULL;
}
