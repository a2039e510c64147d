/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/paths.h"

/*
 * What the rows of a table stand for: functions, call paths, places in a call
 * tree, callers and callees.  Each path has the keys of the rows to which its
 * samples belong, each key at most once.
 */
struct sp_keys {
	size_t n; /* keys are 0 .. n - 1 */
	size_t n_paths;
	size_t *first; /* of each path, and one more: where its keys begin */
	uint32_t *at;  /* keys of all paths */
	size_t n_at, room;
	struct sp_intern said; /* of a tree and of edges: sp_keys_said() */
};

/*
 * For all of these functions: `as` maps each frame to the one that replaces it
 * (sp_keys_modules()); equal frames that then follow each other in a path are
 * one.  NULL: frames stay as they are. 0 and *ret, to be released; -ENOMEM, and
 * nothing to be released.
 */

/* The innermost frame; the key is its number. */
int sp_keys_flat(const struct sp_paths *paths, const uint32_t *as,
		 struct sp_keys *ret);
/* Each frame of the path; likewise. */
int sp_keys_cum(const struct sp_paths *paths, const uint32_t *as,
		struct sp_keys *ret);
/* The path itself; the key is its number.  Without `as`. */
int sp_keys_paths(const struct sp_paths *paths, struct sp_keys *ret);

enum sp_key_kind {
	SP_KEY_PLACE,    /* of a tree: `frame`, called from the place `of` */
	SP_KEY_ITSELF,   /* of a tree: what the place `of` allocates itself */
	SP_KEY_CALLER,   /* `frame` called the frame `of` */
	SP_KEY_FUNCTION, /* the frame `of`, wherever it is */
	SP_KEY_CALLEE,   /* the frame `of` called `frame` */
};

#define SP_KEY_NONE UINT32_MAX

struct sp_key {
	uint32_t kind;
	uint32_t of;    /* SP_KEY_NONE: the outermost place of a tree */
	uint32_t frame; /* SP_KEY_NONE: no caller, or no callee */
};

/* The places of the path, outermost first.  A place has a smaller key than
 * those within it. */
int sp_keys_tree(const struct sp_paths *paths, const uint32_t *as,
		 struct sp_keys *ret);

/* For each wanted frame: itself, its caller and its callee.  In a recursion,
 * the caller of the outermost call and the callee of the innermost one. */
int sp_keys_edges(const struct sp_paths *paths, const uint32_t *as,
		  const bool *wants, struct sp_keys *ret);

/* What a key of a tree or of edges stands for. */
struct sp_key sp_keys_said(const struct sp_keys *keys, uint32_t key);

/* The paths of each key, ascending. */
struct sp_key_paths {
	size_t *first; /* of each key, and one more: where its paths begin */
	uint32_t *at;
};

/* Some paths, ascending and distinct; borrowed. */
struct sp_path_list {
	const uint32_t *at;
	size_t n;
};

/* 0 and *ret, to be released; -ENOMEM, and nothing to be released. */
int sp_key_paths_init(struct sp_key_paths *ret, const struct sp_keys *keys);
struct sp_path_list sp_key_paths_of(const struct sp_key_paths *paths,
				    uint32_t key);
void sp_key_paths_done(struct sp_key_paths *paths);

void sp_keys_done(struct sp_keys *keys);

/* For each frame, a new frame with the name of its module; "[program]" for the
 * program's own. 0 and *ret, to be freed (free()); -ENOMEM. */
int sp_keys_modules(struct sp_paths *paths, uint32_t **ret);
