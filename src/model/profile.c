/* SPDX-License-Identifier: MIT */
/* What there is to do with a profile once it was read, or made. */
#include "model/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bisect.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/order.h"
#include "base/parse.h"
#include "base/saturate.h"

SP_ORDER(compare_ids, struct sp_module, SP_UP(id));

bool sp_stack_is_same(const struct sp_stack *a, const struct sp_stack *b)
{
	if (a->flags != b->flags || a->n_frames != b->n_frames)
		return false;
	for (uint32_t i = 0; i < a->n_frames; i++)
		if (a->frames[i].module != b->frames[i].module ||
		    a->frames[i].offset != b->frames[i].offset)
			return false;
	return true;
}

uint64_t sp_stack_hash(uint64_t key, const struct sp_stack *stack)
{
	uint64_t h = sp_hash_word(key, stack->flags);

	for (uint32_t i = 0; i < stack->n_frames; i++) {
		h = sp_hash_word(h, stack->frames[i].module);
		h = sp_hash_word(h, stack->frames[i].offset);
	}
	return h;
}

void sp_profile_free(struct sp_profile *profile)
{
	if (!profile)
		return;
	sp_blocks_free(&profile->storage);
	free(profile->modules);
	free(profile->stacks);
	free(profile->samples);
	free(profile->resident);
	free(profile->groups);
	free(profile->stretches);
	free(profile->snapshots);
	free(profile->rss);
	free(profile->thread_infos);
	free(profile->infos);
	free(profile->embedded);
	free(profile->parts);
	free(profile);
}

bool sp_profile_is_of_this_host(const struct sp_profile *profile)
{
	char host[256] = "";

	if (!profile->host || !profile->host[0])
		return true;
	return gethostname(host, sizeof(host) - 1) == 0 &&
	       strcmp(host, profile->host) == 0;
}

const struct sp_module *sp_profile_module(const struct sp_profile *profile,
					  uint32_t id)
{
	const struct sp_module key = {.id = id};

	if (!profile->n_modules)
		return NULL;
	return bsearch(&key, profile->modules, profile->n_modules, sizeof(key),
		       compare_ids);
}

bool sp_profile_has_builds(const struct sp_profile *profile,
			   const struct sp_module *module)
{
	for (size_t i = 0; module && i < profile->n_modules; i++) {
		const struct sp_module *other = &profile->modules[i];

		if (!strcmp(other->path, module->path) &&
		    (other->build_id_len != module->build_id_len ||
		     memcmp(other->build_id, module->build_id,
			    module->build_id_len) != 0))
			return true;
	}
	return false;
}

const char *sp_profile_info(const struct sp_profile *profile, const char *key)
{
	for (size_t i = 0; i < profile->n_infos; i++)
		if (strcmp(profile->infos[i].key, key) == 0)
			return profile->infos[i].value;
	return NULL;
}

const char *sp_profile_label(const struct sp_profile *profile, size_t n,
			     const char **ret)
{
	static const char prefix[] = "label.";
	const size_t skip = sizeof(prefix) - 1;

	for (size_t i = 0; i < profile->n_infos; i++) {
		const struct sp_info *info = &profile->infos[i];

		if (strncmp(info->key, prefix, skip) != 0 || n--)
			continue;
		*ret = info->value;
		return info->key + skip;
	}
	return NULL;
}

double sp_profile_fraction(const struct sp_profile *profile)
{
	const char *text = sp_profile_info(profile, "setting.fraction");
	uint64_t millionths;

	if (!text || !sp_parse_fraction(text, &millionths))
		return 1;
	return (double)millionths / SP_PARSE_FRACTION_ALL;
}

uint64_t sp_profile_memory_limit(const struct sp_profile *profile)
{
	static const char key[] = "limit.memory";
	uint64_t limit = SP_NEVER, since = 0;

	/* A change has the time behind the key: limit.memory.1500000000. */
	for (size_t i = 0; i < profile->n_infos; i++) {
		const struct sp_info *info = &profile->infos[i];
		const char *rest = info->key + sizeof(key) - 1;
		uint64_t bytes, time_ns = 0;

		if (strncmp(info->key, key, sizeof(key) - 1) != 0 ||
		    (*rest &&
		     (*rest != '.' || !sp_parse_u64(rest + 1, &time_ns))) ||
		    time_ns < since || !sp_parse_u64(info->value, &bytes))
			continue;
		limit = bytes ? bytes : SP_NEVER;
		since = time_ns;
	}
	return limit;
}

bool sp_profile_is_killed_for_memory(const struct sp_profile *profile)
{
	const uint64_t limit = sp_profile_memory_limit(profile);

	if (profile->end != SP_PROFILE_END_KILLED || profile->n_parts != 1)
		return false;
	if (profile->end_kind)
		return profile->end_kind == SP_END_NO_MEMORY;
	return limit != SP_NEVER && profile->n_rss &&
	       profile->rss[profile->n_rss - 1].rss_bytes >= limit / 10 * 9;
}

const char *sp_profile_rate(const struct sp_profile *profile)
{
	const char *rate = sp_profile_info(profile, "setting.rate");

	return rate && strcmp(rate, "off") != 0 ? rate : NULL;
}

struct fact {
	const char *key;
	size_t index;
};

SP_ORDER(compare_facts, struct fact,
	 SP_BY(strcmp(x->key, y->key)) || SP_UP(index));

int sp_profile_drop_infos(struct sp_profile *p)
{
	struct fact *facts = malloc((p->n_infos + 1) * sizeof(*facts));
	size_t kept = 0;

	if (!facts)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_infos; i++)
		facts[i] = (struct fact){p->infos[i].key, i};
	qsort(facts, p->n_infos, sizeof(*facts), compare_facts);
	for (size_t i = 1; i < p->n_infos; i++)
		if (strcmp(facts[i].key, facts[i - 1].key) == 0)
			p->infos[facts[i].index].key = NULL;
	free(facts);
	for (size_t i = 0; i < p->n_infos; i++)
		if (p->infos[i].key)
			p->infos[kept++] = p->infos[i];
	p->n_infos = kept;
	return 0;
}

int sp_profile_compare_frames(const void *a, const void *b)
{
	const struct sp_frame *x = a, *y = b;

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Distinct frames as they come. */
struct frames {
	struct sp_frame *at;
	size_t n, room;
	struct sp_index index;
};

static int add_frame(struct frames *to, const struct sp_frame *frame)
{
	struct sp_index_probe probe =
		sp_index_begin(sp_hash_word(frame->module, frame->offset));

	if (sp_index_reserve(&to->index) < 0 ||
	    sp_array_reserve((void **)&to->at, &to->room, to->n,
			     sizeof(*to->at)) < 0)
		return -ENOMEM;
	while (sp_index_next(&to->index, &probe)) {
		const struct sp_frame *at = &to->at[probe.position];

		if (at->module == frame->module && at->offset == frame->offset)
			return 0;
	}
	sp_index_put(&to->index, &probe, to->n);
	to->at[to->n++] = *frame;
	return 0;
}

/* Stacks have most frames in common: few of all are to be sorted. */
struct sp_frame *sp_profile_frames(const struct sp_profile *p, size_t *ret_n)
{
	struct frames frames = {.at = malloc(sizeof(*frames.at)), .room = 1};
	int r = frames.at ? 0 : -ENOMEM;

	for (size_t i = 0; !r && i < p->n_stacks; i++)
		for (uint32_t k = 0; !r && k < p->stacks[i].n_frames; k++)
			r = add_frame(&frames, &p->stacks[i].frames[k]);
	sp_index_done(&frames.index);
	if (r < 0) {
		free(frames.at);
		return NULL;
	}
	qsort(frames.at, frames.n, sizeof(*frames.at),
	      sp_profile_compare_frames);
	*ret_n = frames.n;
	return frames.at;
}

const struct sp_stretch *sp_stretch_at(const struct sp_profile *profile,
				       uint16_t part, uint64_t time_ns)
{
	const struct sp_stretch *all = profile->stretches;
	size_t at;

	/* The last that does not begin later. */
	SP_LOWER_BOUND(at, profile->n_stretches,
		       all[at].part < part || (all[at].part == part &&
					       all[at].from_ns <= time_ns));
	return at && all[at - 1].part == part ? &all[at - 1] : NULL;
}

const struct sp_embedded_frame *sp_embedded_find(
	const struct sp_profile *profile, struct sp_frame frame)
{
	if (!profile->n_embedded)
		return NULL;
	/* The frame is the first member. */
	return bsearch(&frame, profile->embedded, profile->n_embedded,
		       sizeof(*profile->embedded), sp_profile_compare_frames);
}

SP_ORDER(compare_sample_ids, struct sp_sample, SP_UP(id) || SP_UP(born_ns));

void sp_profile_count_samples(struct sp_profile *p, uint32_t thread,
			      uint64_t size_bytes, uint64_t n)
{
	struct sp_class_total *sum;
	uint64_t bytes;

	if (thread == UINT32_MAX)
		return;
	if (__builtin_mul_overflow(size_bytes, n, &bytes))
		bytes = UINT64_MAX;
	sum = &p->thread_infos[thread].sampled;
	sp_sat_add(&sum->bytes, bytes);
	sp_sat_add(&sum->objects, n);
}

void sp_profile_sort_samples(struct sp_profile *p)
{
	for (size_t i = 1; i < p->n_samples; i++) {
		if (p->samples[i - 1].id < p->samples[i].id)
			continue;
		qsort(p->samples, p->n_samples, sizeof(*p->samples),
		      compare_sample_ids);
		break;
	}
}

size_t sp_profile_repeated_seeds(const struct sp_profile *profile)
{
	uint64_t *seeds = calloc(profile->n_parts + 1, sizeof(*seeds));
	size_t n = 0;

	for (size_t i = 0; seeds && i < profile->n_parts; i++)
		seeds[i] = profile->parts[i].seed;
	if (seeds)
		qsort(seeds, profile->n_parts, sizeof(*seeds),
		      sp_array_compare_u64);
	for (size_t i = 1; seeds && i < profile->n_parts; i++)
		n += seeds[i] && seeds[i] == seeds[i - 1];
	free(seeds);
	return n;
}
