/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "report/aggregate.h"
#include "text/json.h"

/* Version of the JSON of the report, as "schema_version". In 1 each stack has
 * all its frames; in 2 it has numbers, and each frame is there once. */
#define SP_VIEW_JSON_VERSION 2u

/* The frames of call stacks, each once. */
struct sp_json_frames;

/* Of the first n stacks of the aggregate, which is borrowed; version 1: none.
 * 0 and *ret, to be freed; or -ENOMEM and *err. */
int sp_json_frames_new(const struct sp_aggregate *aggregate, size_t n,
		       unsigned int version, struct sp_json_frames **ret,
		       struct sp_error *err);

/* May be NULL. */
void sp_json_frames_free(struct sp_json_frames *frames);

/* "schema_version", the first key of a document. */
void sp_json_frames_version(struct sp_json *json,
			    const struct sp_json_frames *frames);

/* The array "frames" of the document; nothing in version 1. */
void sp_json_frames_all(struct sp_json *json,
			const struct sp_json_frames *frames);

/* The array "frames" of a stack, innermost first: numbers of these; in version
 * 1 the frames.  Inlined functions precede the function they were inlined into.
 */
void sp_json_frames_of(struct sp_json *json,
		       const struct sp_json_frames *frames,
		       const struct sp_stack *stack);

/* The frames themselves, whatever the version. */
void sp_json_frames_whole(struct sp_json *json,
			  const struct sp_aggregate *aggregate,
			  const struct sp_stack *stack);
