/* SPDX-License-Identifier: MIT */
#include "report/keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define PROGRAM "[program]"

struct keyer {
	const struct sp_paths *paths;
	const uint32_t *as;
	const bool *wants; /* of edges */
	struct sp_keys *keys;
	/* of the path at hand, innermost first */
	uint32_t path;
	uint32_t *frames;
	size_t n;
	uint32_t *seen; /* of each frame: 1 + the last path it came up in */
};

/* The frames of the path, or their replacements. */
static int read_path(struct keyer *k, uint32_t path)
{
	const struct sp_path p = sp_paths_at(k->paths, path);
	uint32_t *grown = realloc(k->frames, (p.n + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	k->frames = grown;
	k->path = path;
	k->n = 0;
	for (size_t i = 0; i < p.n; i++) {
		const uint32_t frame = k->as ? k->as[p.frame[i]] : p.frame[i];

		if (!k->n || k->frames[k->n - 1] != frame)
			k->frames[k->n++] = frame;
	}
	return 0;
}

static int add_key(struct keyer *k, uint32_t key)
{
	struct sp_keys *keys = k->keys;
	void *array = keys->at;

	if (sp_array_reserve(&array, &keys->room, keys->n_at,
			     sizeof(*keys->at)) < 0)
		return -ENOMEM;
	keys->at = array;
	keys->at[keys->n_at++] = key;
	return 0;
}

/* The key for `said`; *ret is its number, unless `ret` is NULL. */
static int say_key(struct keyer *k, enum sp_key_kind kind, uint32_t of,
		   uint32_t frame, uint32_t *ret)
{
	const struct sp_key key = {kind, of, frame};
	uint32_t number;

	if (sp_intern_add(&k->keys->said, &key, sizeof(key), &number) < 0)
		return -ENOMEM;
	if (ret)
		*ret = number;
	return add_key(k, number);
}

/* ---- the keys of one path ---- */

static int add_flat(struct keyer *k)
{
	return k->n ? add_key(k, k->frames[0]) : 0;
}

static bool is_first(struct keyer *k, uint32_t frame)
{
	const bool is_new = k->seen[frame] != k->path + 1;

	k->seen[frame] = k->path + 1;
	return is_new;
}

static int add_cum(struct keyer *k)
{
	int r = 0;

	for (size_t i = 0; !r && i < k->n; i++)
		if (is_first(k, k->frames[i]))
			r = add_key(k, k->frames[i]);
	return r;
}

static int add_path(struct keyer *k)
{
	return add_key(k, k->path);
}

static int add_places(struct keyer *k)
{
	uint32_t place = SP_KEY_NONE;
	int r = 0;

	for (size_t i = k->n; !r && i > 0; i--)
		r = say_key(k, SP_KEY_PLACE, place, k->frames[i - 1], &place);
	return r ? r : say_key(k, SP_KEY_ITSELF, place, SP_KEY_NONE, NULL);
}

static size_t outermost_symbol(const struct keyer *k, uint32_t frame)
{
	size_t i = k->n - 1;

	while (k->frames[i] != frame)
		i--;
	return i;
}

static int add_edges(struct keyer *k)
{
	int r = 0;

	for (size_t i = 0; !r && i < k->n; i++) {
		const uint32_t frame = k->frames[i];
		size_t last;

		if (!k->wants[frame] || !is_first(k, frame))
			continue;
		last = outermost_symbol(k, frame);
		r = say_key(k, SP_KEY_FUNCTION, frame, SP_KEY_NONE, NULL);
		if (!r)
			r = say_key(k, SP_KEY_CALLEE, frame,
				    i ? k->frames[i - 1] : SP_KEY_NONE, NULL);
		if (!r)
			r = say_key(k, SP_KEY_CALLER, frame,
				    last + 1 < k->n ? k->frames[last + 1]
						    : SP_KEY_NONE,
				    NULL);
	}
	return r;
}

/* ---- all paths ---- */

static int build_keys(struct keyer *k, int (*add_of)(struct keyer *k), size_t n)
{
	const size_t n_paths = k->paths->paths.n_entries;
	struct sp_keys *keys = k->keys;
	int r = 0;

	*keys = (struct sp_keys){.n = n, .n_paths = n_paths};
	keys->first = calloc(n_paths + 1, sizeof(*keys->first));
	k->seen = calloc(k->paths->frames.n_entries + 1, sizeof(*k->seen));
	if (!keys->first || !k->seen)
		r = -ENOMEM;
	for (size_t i = 0; !r && i < n_paths; i++) {
		r = read_path(k, (uint32_t)i);
		if (!r)
			r = add_of(k);
		keys->first[i + 1] = keys->n_at;
	}
	free(k->frames);
	free(k->seen);
	if (keys->said.n_entries)
		keys->n = keys->said.n_entries;
	if (r < 0)
		sp_keys_done(keys);
	return r;
}

int sp_keys_flat(const struct sp_paths *paths, const uint32_t *as,
		 struct sp_keys *ret)
{
	struct keyer k = {.paths = paths, .as = as, .keys = ret};

	return build_keys(&k, add_flat, paths->frames.n_entries);
}

int sp_keys_cum(const struct sp_paths *paths, const uint32_t *as,
		struct sp_keys *ret)
{
	struct keyer k = {.paths = paths, .as = as, .keys = ret};

	return build_keys(&k, add_cum, paths->frames.n_entries);
}

int sp_keys_paths(const struct sp_paths *paths, struct sp_keys *ret)
{
	struct keyer k = {.paths = paths, .keys = ret};

	return build_keys(&k, add_path, paths->paths.n_entries);
}

int sp_keys_tree(const struct sp_paths *paths, const uint32_t *as,
		 struct sp_keys *ret)
{
	struct keyer k = {.paths = paths, .as = as, .keys = ret};

	return build_keys(&k, add_places, 0);
}

int sp_keys_edges(const struct sp_paths *paths, const uint32_t *as,
		  const bool *wants, struct sp_keys *ret)
{
	struct keyer k = {
		.paths = paths, .as = as, .wants = wants, .keys = ret};

	return build_keys(&k, add_edges, 0);
}

struct sp_key sp_keys_said(const struct sp_keys *keys, uint32_t key)
{
	return *SP_INTERN_AT(&keys->said, key, struct sp_key);
}

int sp_key_paths_init(struct sp_key_paths *ret, const struct sp_keys *keys)
{
	ret->first = calloc(keys->n + 2, sizeof(*ret->first));
	ret->at = calloc(keys->n_at + 1, sizeof(*ret->at));
	if (!ret->first || !ret->at) {
		sp_key_paths_done(ret);
		return -ENOMEM;
	}
	for (size_t i = 0; i < keys->n_at; i++)
		ret->first[keys->at[i] + 2]++;
	for (size_t i = 2; i < keys->n + 2; i++)
		ret->first[i] += ret->first[i - 1];
	/* first[key + 1] goes from where it begins to where it ends */
	for (size_t path = 0; path < keys->n_paths; path++)
		for (size_t i = keys->first[path]; i < keys->first[path + 1];
		     i++)
			ret->at[ret->first[keys->at[i] + 1]++] = (uint32_t)path;
	return 0;
}

struct sp_path_list sp_key_paths_of(const struct sp_key_paths *paths,
				    uint32_t key)
{
	return (struct sp_path_list){paths->at + paths->first[key],
				     paths->first[key + 1] - paths->first[key]};
}

void sp_key_paths_done(struct sp_key_paths *paths)
{
	free(paths->first);
	free(paths->at);
	*paths = (struct sp_key_paths){0};
}

void sp_keys_done(struct sp_keys *keys)
{
	free(keys->first);
	free(keys->at);
	sp_intern_done(&keys->said);
}

int sp_keys_modules(struct sp_paths *paths, uint32_t **ret)
{
	const size_t n = paths->frames.n_entries;
	/* twice as many, if each is in a module of its own */
	uint32_t *as = calloc(2 * n + 1, sizeof(*as));
	char *name;
	int r = as ? 0 : -ENOMEM;

	for (size_t i = 0; !r && i < n; i++) {
		const char *frame = sp_paths_name(paths, (uint32_t)i);
		size_t bytes;

		sp_paths_function(frame, &bytes);
		name = bytes ? strndup(frame, bytes) : strdup(PROGRAM);
		if (!name || sp_intern_add(&paths->frames, name, strlen(name),
					   &as[i]) < 0)
			r = -ENOMEM;
		free(name);
	}
	if (r < 0) {
		free(as);
		return r;
	}
	for (size_t i = n; i < paths->frames.n_entries; i++)
		as[i] = (uint32_t)i;
	*ret = as;
	return 0;
}
