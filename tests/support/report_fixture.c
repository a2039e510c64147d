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

void sp_symbolizer_problems(const struct sp_symbolizer *symbolizer,
			    void (*fn)(void *arg, const struct sp_module *,
				       const char *reason),
			    void *arg)
{
	if (symbolizer->problem)
		fn(arg, symbolizer->problem, symbolizer->reason);
}

const struct sp_module *sp_profile_module(const struct sp_profile *profile,
					  uint32_t id)
{
	return id && id <= profile->n_modules ? &profile->modules[id - 1]
					      : NULL;
}

const char *sp_profile_info(const struct sp_profile *profile, const char *key)
{
	for (size_t i = 0; i < profile->n_infos; i++)
		if (!strcmp(profile->infos[i].key, key))
			return profile->infos[i].value;
	return NULL;
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
	};
	fixture->modules[0] = (struct sp_module){.id = 1, .path = "/bin/app"};
	fixture->modules[1] =
		(struct sp_module){.id = 2, .path = "/lib/libz.so.1"};
	sp_acc_init(&p->acc, period_bytes);
	return fixture;
}

void fixture_symbol(struct fixture *fixture, size_t offset, const char *name,
		    const char *file, uint32_t line)
{
	size_t n = fixture->symbolizer.counts[offset]++;
	struct sp_symbol *symbols = fixture->symbolizer.symbols[offset];

	require(n < FIXTURE_INLINES);
	symbols[n] = (struct sp_symbol){name, file, line, false, false};
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
	sp_acc_init(&stack->acc, p->period_bytes);
	for (uint64_t i = 0; i < samples; i++)
		sp_acc_add(&stack->acc, size_bytes, 0, p->period_bytes);
	sp_acc_merge(&p->acc, &stack->acc);
	return stack;
}

struct sp_aggregate *fixture_aggregate(struct fixture *fixture)
{
	struct sp_aggregate *aggregate = NULL;
	int r = sp_aggregate_new(&fixture->profile, &fixture->symbolizer, NULL,
				 NULL, &aggregate, NULL);

	require(r == 0);
	return aggregate;
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
