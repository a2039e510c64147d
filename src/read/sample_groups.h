/* SPDX-License-Identifier: MIT */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/saturate.h"
#include "model/profile.h"

/*
 * Samples that are alike, counted.  What is known of a sample at its birth
 * makes its group; what became of it, as far as anybody asks, its class within
 * the group.  Memory is proportional to groups and classes.
 */
struct sp_sample_groups_key {
	uint64_t size_bytes;
	uint64_t period_bytes;
	uint32_t stack;
	uint32_t thread;
	uint16_t entry;
	uint16_t role;    /* as in struct sp_sample */
	uint32_t stretch; /* between which marks; 0: before the first */
};

struct sp_sample_groups_group {
	struct sp_sample_groups_key key;
	uint32_t kind;   /* for the owner to use; UINT32_MAX at first */
	bool is_certain; /* likewise; false at first */
	uint32_t last;   /* 1 + position of the class found last; 0: none */
};

struct sp_sample_groups_class {
	uint64_t samples;
	uint64_t tail_bytes; /* sums over the samples */
	uint64_t lived_ns;
	uint32_t group;
	uint32_t class;
};

/* Zero-initialise, but for `key`. */
struct sp_sample_groups {
	uint64_t key; /* random: no file can choose what collides */
	struct sp_sample_groups_group *groups;
	size_t n_groups, groups_room;
	/* 1 + position of the group of a stack that was found last: most
	 * stacks allocate one size.  0: none. */
	uint32_t *hints;
	size_t n_hints;
	struct sp_sample_groups_class *classes;
	size_t n_classes, classes_room;
	struct sp_index group_index;
	struct sp_index class_index;
};

static inline bool sp_sample_groups_same(const struct sp_sample_groups_key *a,
					 const struct sp_sample_groups_key *b)
{
	return a->stack == b->stack && a->size_bytes == b->size_bytes &&
	       a->thread == b->thread && a->period_bytes == b->period_bytes &&
	       a->entry == b->entry && a->role == b->role &&
	       a->stretch == b->stretch;
}

/* The position in `groups`, UINT32_MAX without memory. */
uint32_t sp_sample_groups_search(struct sp_sample_groups *groups,
				 const struct sp_sample_groups_key *key);
static inline uint32_t sp_sample_groups_find(
	struct sp_sample_groups *g, const struct sp_sample_groups_key *key)
{
	const uint32_t hint =
		key->stack < g->n_hints ? g->hints[key->stack] : 0;
	struct sp_sample_groups_key in_memory;

	if (hint && sp_sample_groups_same(&g->groups[hint - 1].key, key))
		return hint - 1;
	/* Nearly all end above, and have their key in registers. */
	in_memory = *key;
	return sp_sample_groups_search(g, &in_memory);
}

/* Count one sample.  0 or -ENOMEM. */
int sp_sample_groups_find_class(struct sp_sample_groups *groups, uint32_t group,
				uint32_t class);
static inline int sp_sample_groups_add(struct sp_sample_groups *g,
				       uint32_t group, uint32_t class,
				       uint64_t tail_bytes, uint64_t lived_ns)
{
	const uint32_t *last = &g->groups[group].last;
	struct sp_sample_groups_class *c;

	if ((!*last || g->classes[*last - 1].class != class) &&
	    sp_sample_groups_find_class(g, group, class) < 0)
		return -ENOMEM;
	c = &g->classes[*last - 1];
	c->samples++;
	sp_sat_add(&c->tail_bytes, tail_bytes);
	sp_sat_add(&c->lived_ns, lived_ns);
	return 0;
}

/* Nothing more will be looked up: the memory for that is freed. */
void sp_sample_groups_end(struct sp_sample_groups *groups);

void sp_sample_groups_done(struct sp_sample_groups *groups);
