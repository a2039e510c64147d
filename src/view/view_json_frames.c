/* SPDX-License-Identifier: MIT */
#include "view/view_json_frames.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/index.h"

/* An address, and its functions: the first of their numbers. */
struct place {
	struct sp_frame frame;
	uint64_t first;
	uint32_t count;
};

struct sp_json_frames {
	const struct sp_aggregate *aggregate;
	unsigned int version;
	struct sp_index index; /* of places */
	struct place *places;
	size_t n, room;
	uint64_t next;
};

static const struct place *find_place(const struct sp_json_frames *f,
				      struct sp_frame frame,
				      struct sp_index_probe *probe)
{
	*probe = sp_index_begin(sp_hash_word(frame.module, frame.offset));
	while (sp_index_next(&f->index, probe)) {
		const struct place *p = &f->places[probe->position];

		if (p->frame.module == frame.module &&
		    p->frame.offset == frame.offset)
			return p;
	}
	return NULL;
}

/* 0 or -ENOMEM. */
static int add_place(struct sp_json_frames *f, struct sp_frame frame)
{
	struct sp_index_probe probe;
	uint32_t count;

	if (sp_index_reserve(&f->index) < 0)
		return -ENOMEM;
	if (find_place(f, frame, &probe))
		return 0;
	if (sp_array_reserve((void **)&f->places, &f->room, f->n,
			     sizeof(*f->places)))
		return -ENOMEM;
	count = (uint32_t)sp_aggregate_symbols(f->aggregate, frame).count;
	sp_index_put(&f->index, &probe, f->n);
	f->places[f->n++] = (struct place){frame, f->next, count};
	f->next += count;
	return 0;
}

int sp_json_frames_new(const struct sp_aggregate *aggregate, size_t n,
		       unsigned int version, struct sp_json_frames **ret,
		       struct sp_error *err)
{
	struct sp_json_frames *f = calloc(1, sizeof(*f));
	int r = f ? 0 : -ENOMEM;

	if (f)
		*f = (struct sp_json_frames){.aggregate = aggregate,
					     .version = version};
	for (size_t i = 0; r == 0 && version > 1 && i < n; i++) {
		const struct sp_stack *stack = aggregate->stacks[i].stack;

		for (uint32_t k = 0; r == 0 && k < stack->n_frames; k++)
			r = add_place(f, stack->frames[k]);
	}
	if (r < 0) {
		sp_json_frames_free(f);
		return sp_error_memory(err, aggregate->analysis->profile->path);
	}
	*ret = f;
	return 0;
}

void sp_json_frames_free(struct sp_json_frames *f)
{
	if (!f)
		return;
	sp_index_done(&f->index);
	free(f->places);
	free(f);
}

void sp_json_frames_version(struct sp_json *json,
			    const struct sp_json_frames *frames)
{
	sp_json_u64(json, "schema_version", frames->version);
}

static void put_functions(struct sp_json *json, const struct sp_aggregate *a,
			  struct sp_frame frame)
{
	const struct sp_symbols symbols = sp_aggregate_symbols(a, frame);
	const char *module = sp_aggregate_module_path(a, frame);

	for (size_t k = 0; k < symbols.count; k++) {
		const struct sp_symbol *symbol = &symbols.symbol[k];

		sp_json_open_flat(json, NULL, '{');
		sp_json_string(json, "function", sp_aggregate_name(a, symbol));
		sp_json_string(json, "file", symbol->file);
		sp_json_u64(json, "line", symbol->line);
		sp_json_string(json, "module", *module ? module : NULL);
		sp_json_u64(json, "offset", frame.offset);
		sp_json_bool(json, "inlined", symbol->is_inlined);
		sp_json_close(json, '}');
	}
}

void sp_json_frames_all(struct sp_json *json, const struct sp_json_frames *f)
{
	if (f->version < 2)
		return;
	sp_json_open(json, "frames", '[');
	for (size_t i = 0; i < f->n; i++)
		put_functions(json, f->aggregate, f->places[i].frame);
	sp_json_close(json, ']');
}

void sp_json_frames_whole(struct sp_json *json, const struct sp_aggregate *a,
			  const struct sp_stack *stack)
{
	sp_json_open(json, "frames", '[');
	for (uint32_t i = 0; i < stack->n_frames; i++)
		put_functions(json, a, stack->frames[i]);
	sp_json_close(json, ']');
}

void sp_json_frames_of(struct sp_json *json, const struct sp_json_frames *f,
		       const struct sp_stack *stack)
{
	if (f->version < 2) {
		sp_json_frames_whole(json, f->aggregate, stack);
		return;
	}
	sp_json_open_flat(json, "frames", '[');
	for (uint32_t i = 0; i < stack->n_frames; i++) {
		struct sp_index_probe probe;
		const struct place *p = find_place(f, stack->frames[i], &probe);

		for (uint32_t k = 0; p && k < p->count; k++)
			sp_json_u64(json, NULL, p->first + k);
	}
	sp_json_close(json, ']');
}
