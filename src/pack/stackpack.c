/* SPDX-License-Identifier: MIT */
#include "pack/stackpack.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "pack/columns.h"
#include "pack/open_samples.h"

/* ---- to chunks ---- */

/* More than a stack takes, and each of its frames. */
#define STACK_MAX 40u
#define FRAME_MAX 20u

struct packer {
	struct sp_frame *frames; /* all distinct ones, in order */
	size_t n_frames;
	uint32_t *places;         /* of each: 1 + its number; 0: none yet */
	struct sp_frame *ordered; /* those that have one, by number */
	uint32_t n_places;
	struct sp_open_samples
		nodes; /* caller and place to 1 + node, as `group` */
	uint64_t leaf; /* as in struct sp_unstack, as those are: */
	uint64_t id, offset, n_stacks;
	uint32_t n_of_chunk;
	size_t frames_of_chunk;
	struct sp_columns columns;
};

static int flush_columns(struct packer *p)
{
	struct sp_stacks_header h = {.first = p->n_stacks - p->n_of_chunk,
				     .n_stacks = p->n_of_chunk};

	p->n_of_chunk = 0;
	p->frames_of_chunk = 0;
	return sp_columns_flush(&p->columns, &h);
}

static void put_value(struct packer *p, enum sp_stacks_column column,
		      uint64_t value)
{
	sp_columns_put(&p->columns, column, value);
}

/* The number of a frame's place, + 1; 0: it has none yet. */
static uint32_t *place_of(const struct packer *p, const struct sp_frame *f)
{
	const struct sp_frame *at =
		bsearch(f, p->frames, p->n_frames, sizeof(*f),
			sp_profile_compare_frames);

	return &p->places[at - p->frames];
}

/* A node, + 1, by its caller's and its place; 0: it is not there. */
static uint32_t find_node(const struct packer *p, uint32_t caller,
			  uint32_t place)
{
	const struct sp_open_sample *found =
		sp_open_samples_find(&p->nodes, (uint64_t)caller << 32 | place);

	return found ? found->group : 0;
}

/* A node below `caller`, + 1; 0: no memory. */
static uint32_t add_node(struct packer *p, uint32_t caller,
			 const struct sp_frame *f)
{
	const uint32_t node = (uint32_t)p->nodes.n + 1;
	uint32_t *place = place_of(p, f);
	struct sp_open_sample cell = {.group = node};

	put_value(p, SP_COLUMN_FRAME, *place);
	if (!*place) {
		p->ordered[p->n_places] = *f;
		*place = ++p->n_places;
		put_value(p, SP_COLUMN_PLACE, f->module);
		put_value(p, SP_COLUMN_PLACE,
			  sp_zigzag((int64_t)(f->offset - p->offset)));
		p->offset = f->offset;
	}
	cell.id = (uint64_t)caller << 32 | *place;
	return sp_open_samples_add(&p->nodes, &cell) < 0 ? 0 : node;
}

static int write_stack(struct packer *p, const struct sp_stack *s)
{
	uint32_t node = 0, left = s->n_frames;

	if (p->columns.room < STACK_MAX + FRAME_MAX * left ||
	    p->frames_of_chunk + s->n_frames > SP_FORMAT_CHUNK_FRAMES_MAX) {
		int r = flush_columns(p);

		if (r < 0)
			return r;
	}
	p->frames_of_chunk += s->n_frames;
	p->n_of_chunk++;
	p->n_stacks++;
	for (; left; left--) {
		const uint32_t place = *place_of(p, &s->frames[left - 1]);
		const uint32_t next = place ? find_node(p, node, place) : 0;

		if (!next)
			break;
		node = next;
	}
	put_value(p, SP_COLUMN_STACK, sp_zigzag((int64_t)(s->id - p->id - 1)));
	put_value(p, SP_COLUMN_STACK, s->flags);
	put_value(p, SP_COLUMN_STACK, sp_zigzag((int64_t)(p->leaf - node)));
	put_value(p, SP_COLUMN_STACK, left);
	for (; left; left--) {
		node = add_node(p, node, &s->frames[left - 1]);
		if (!node)
			return -ENOMEM;
	}
	p->id = s->id;
	p->leaf = node;
	return 0;
}

int sp_stackpack_write(const struct sp_profile *profile, uint64_t first_chunk,
		       sp_chunk_fn *fn, void *arg, struct sp_frame **ret_places,
		       size_t *ret_n)
{
	struct packer *p = calloc(1, sizeof(*p));
	int r = -ENOMEM;

	if (!p)
		return r;
	sp_open_samples_init(&p->nodes);
	sp_columns_init(&p->columns, &sp_stacks_layout, profile->file_id,
			first_chunk, fn, arg);
	p->frames = sp_profile_frames(profile, &p->n_frames);
	p->places = calloc(p->n_frames + 1, sizeof(*p->places));
	p->ordered = calloc(p->n_frames + 1, sizeof(*p->ordered));
	if (p->frames && p->places && p->ordered)
		r = 0;
	for (size_t i = 0; i < profile->n_stacks && r >= 0; i++)
		if (profile->stacks[i].frames)
			r = write_stack(p, &profile->stacks[i]);
	if (r >= 0 && p->n_of_chunk)
		r = flush_columns(p);
	if (r >= 0) {
		*ret_places = p->ordered;
		*ret_n = p->n_places;
	} else {
		free(p->ordered);
	}
	sp_open_samples_done(&p->nodes);
	free(p->frames);
	free(p->places);
	free(p);
	return r;
}

/* ---- from chunks ---- */

void sp_unstack_done(struct sp_unstack *u)
{
	free(u->places);
	free(u->nodes);
}

const char *sp_unstack_chunk(struct sp_unstack *u, uint64_t file_id,
			     const uint8_t *chunk, size_t n)
{
	struct sp_stacks_header h;
	const char *wrong = sp_columns_open(&sp_stacks_layout, file_id, chunk,
					    n, &h, u->columns);

	if (wrong)
		return wrong;
	if (h.first != u->n_stacks)
		return "stacks number";
	u->n_left = h.n_stacks;
	u->n_frames = 0;
	return NULL;
}

/* 0, -EBADMSG or -ENOMEM. */
static int take_place(struct sp_unstack *u)
{
	struct sp_slice *in = &u->columns[SP_COLUMN_PLACE];
	const uint64_t module = sp_slice_varint(in);
	const uint64_t offset =
		u->offset + (uint64_t)sp_unzigzag(sp_slice_varint(in));
	int r;

	if (in->failed || module > UINT32_MAX || u->n_places == UINT32_MAX)
		return -EBADMSG;
	r = sp_array_reserve((void **)&u->places, &u->places_room, u->n_places,
			     sizeof(*u->places));
	if (r)
		return r;
	u->places[u->n_places++] = (struct sp_record_frame){module, offset};
	u->offset = offset;
	return 0;
}

/* A node below the leaf, which it becomes. */
static int take_frame(struct sp_unstack *u)
{
	struct sp_slice *in = &u->columns[SP_COLUMN_FRAME];
	uint64_t place = sp_slice_varint(in);
	struct sp_unstack_node *node;
	int r = 0;

	if (!place)
		r = take_place(u);
	if (r)
		return r;
	if (!place)
		place = u->n_places;
	if (in->failed || place > u->n_places || u->n_nodes == UINT32_MAX)
		return -EBADMSG;
	r = sp_array_reserve((void **)&u->nodes, &u->nodes_room, u->n_nodes,
			     sizeof(*u->nodes));
	if (r)
		return r;
	node = &u->nodes[u->n_nodes++];
	node->caller = (uint32_t)u->leaf;
	node->place = (uint32_t)place - 1;
	node->depth = u->leaf ? u->nodes[u->leaf - 1].depth + 1 : 1;
	u->leaf = u->n_nodes;
	return 0;
}

static uint32_t depth_of_leaf(const struct sp_unstack *u)
{
	return u->leaf ? u->nodes[u->leaf - 1].depth : 0;
}

/* As in the payload of a STACK. */
static void give_frames(struct sp_unstack *u, struct sp_decoded *ret)
{
	uint8_t *at = u->frames;

	for (uint64_t i = u->leaf; i; i = u->nodes[i - 1].caller) {
		const struct sp_record_frame *f =
			&u->places[u->nodes[i - 1].place];

		at = sp_varint_put(at, f->module);
		at = sp_varint_put(at, f->offset);
	}
	ret->u.stack.frames = u->frames;
	ret->u.stack.frames_bytes = (size_t)(at - u->frames);
}

static int take_stack(struct sp_unstack *u, struct sp_decoded *ret)
{
	struct sp_slice *in = &u->columns[SP_COLUMN_STACK];
	uint64_t n;
	int r = 0;

	ret->field = "stack";
	u->id += 1 + (uint64_t)sp_unzigzag(sp_slice_varint(in));
	ret->u.stack.flags = sp_slice_varint(in);
	u->leaf -= (uint64_t)sp_unzigzag(sp_slice_varint(in));
	n = sp_slice_varint(in);
	if (in->failed || u->id == 0 || u->id > UINT32_MAX ||
	    u->leaf > u->n_nodes || n > SP_FORMAT_FRAMES_MAX - depth_of_leaf(u))
		return -EBADMSG;
	for (; n && !r; n--)
		r = take_frame(u);
	if (r)
		return r;
	u->n_frames += depth_of_leaf(u);
	if (u->n_frames > SP_FORMAT_CHUNK_FRAMES_MAX)
		return -EBADMSG;
	u->n_stacks++;
	ret->type = SP_RECORD_STACK;
	ret->u.stack.id = u->id;
	ret->u.stack.n_frames = depth_of_leaf(u);
	give_frames(u, ret);
	return 1;
}

int sp_unstack_next(struct sp_unstack *u, struct sp_decoded *ret)
{
	if (u->n_left) {
		u->n_left--;
		return take_stack(u, ret);
	}
	for (unsigned int i = 0; i < SP_STACKS_COLUMNS; i++)
		if (u->columns[i].at < u->columns[i].end) {
			ret->field = "stacks column";
			return -EBADMSG;
		}
	return 0;
}
