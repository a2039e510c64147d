/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

#include "report/aggregate.h"

/*
 * A profile made by hand, and a symbolizer that answers from a table, in place
 * of the ones of src/profile: frame.offset is the index into `symbols`.
 */
#define FIXTURE_STACKS  512
#define FIXTURE_FRAMES  16
#define FIXTURE_SYMBOLS 8192
#define FIXTURE_INLINES 4

struct sp_symbolizer {
	struct sp_symbol symbols[FIXTURE_SYMBOLS][FIXTURE_INLINES];
	size_t counts[FIXTURE_SYMBOLS];
	const struct sp_module *problem; /* may be NULL */
	const char *reason;
	struct sp_symbolizer_options options;
	size_t named, embedded; /* what sp_symbolizer_count() says */
};

struct fixture {
	struct sp_profile profile;
	struct sp_symbolizer symbolizer;
	struct sp_module modules[2]; /* "/bin/app" and "/lib/libz.so.1" */
	struct sp_stack stacks[FIXTURE_STACKS];
	struct sp_frame frames[FIXTURE_STACKS][FIXTURE_FRAMES];
	struct sp_thread_info threads[2];
	struct sp_info infos[4];
	struct sp_part part;   /* as the profile says, in an analysis */
	struct sp_sample next; /* what samples are copies of: alive */
	struct sp_question question;
	struct sp_analysis *analysis;   /* the last one */
	struct sp_aggregate *aggregate; /* likewise; of that analysis */
};

/* An empty profile of a process that ended cleanly, without frees; for the
 * question that every report starts with. */
struct fixture *fixture_new(uint64_t period_bytes);
void fixture_free(struct fixture *fixture);
int fixture_teardown(void **state);

/* Add a symbol to an offset; those added first are inlined into the last. */
void fixture_symbol(struct fixture *fixture, size_t offset, const char *name,
		    const char *file, uint32_t line);

/* Add a stack of module 1, innermost first; `samples` of size_bytes each, all
 * hit at their first byte. */
struct sp_stack *fixture_stack(struct fixture *fixture, const size_t *offsets,
			       size_t n_offsets, uint64_t samples,
			       uint64_t size_bytes);

/* More samples with that stack, like fixture->next. */
void fixture_samples(struct fixture *fixture, const struct sp_stack *stack,
		     uint64_t samples, uint64_t size_bytes);

/* The answer to fixture->question, and an aggregate of such an answer; they
 * belong to the fixture, until the next answer. */
const struct sp_analysis *fixture_analysis(struct fixture *fixture);
struct sp_aggregate *fixture_aggregate(struct fixture *fixture);

/* What the last analysis has of a stack in its view. */
const struct sp_class_sums *fixture_sums(const struct fixture *fixture,
					 const struct sp_stack *stack);

/* The function of that name and module, or NULL. */
const struct sp_aggregate_function *fixture_find(
	const struct sp_aggregate *aggregate, const char *name,
	const char *module);
