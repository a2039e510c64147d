/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/intern.h"
#include "model/profile.h"
#include "stats/estimator.h"
#include "symbols/pattern.h"
#include "symbols/seethrough.h"

/*
 * Call paths by names.  They know neither addresses nor lines, so that code
 * that has moved is the same code.
 *
 * A frame is named "module!function", the module without its directory;
 * functions of the program itself are "function", or "!function" if that has
 * a '!' in it.  Code without a symbol is "module![unknown]", code in no module
 * "[anonymous]".  C++ functions have their scopes and parameters in it:
 * overloads are several.  Static functions have their homes without addresses
 * (symbols/home.h).
 */
#define SP_PATHS_UNKNOWN       "[unknown]"
#define SP_PATHS_OTHER_CALLERS "[other callers]" /* of a baseline */

/* The frames and the paths of all runs of a comparison.  Zero-initialise. */
struct sp_paths {
	struct sp_intern frames;
	struct sp_intern paths; /* arrays of uint32_t, innermost first */
	struct sp_see_through *see_through; /* owned; NULL: nothing is */
	unsigned char *roles;               /* 1 + enum sp_role, 0: not known */
	size_t n_roles;
	bool has_full_names; /* labels are (report/label.h) */
	char **labels;       /* of the first n_labels frames */
	size_t n_labels;
	uint32_t *functions; /* of a frame, sp_paths_functions() */
	size_t n_functions;
};

void sp_paths_done(struct sp_paths *paths);

/* 0 and *ret_path, or -ENOMEM.  Frames repeated in a row count once. */
int sp_paths_add(struct sp_paths *paths, const uint32_t *frames, size_t n,
		 uint32_t *ret_path);

/* The frames of a path, innermost first; valid until a path is added. */
struct sp_path {
	const uint32_t *frame;
	size_t n;
};

struct sp_path sp_paths_at(const struct sp_paths *paths, uint32_t path);
/* The name of a frame; valid until a frame is added. */
const char *sp_paths_name(const struct sp_paths *paths, uint32_t frame);

/* The depth of the frame that the path's samples are flat for
 * (sp_find_flat()).  0 and *ret_depth; -ENOMEM. */
int sp_paths_find_flat(struct sp_paths *paths, uint32_t path,
		       size_t *ret_depth);

/* How people read frames (report/label.h).  Of the frames that are there now;
 * others keep their names.  0 or -ENOMEM. */
int sp_paths_set_labels(struct sp_paths *paths);
const char *sp_paths_label(const struct sp_paths *paths, uint32_t frame);

/* How many functions of one run a frame stands for, if that is known to be more
 * than one: its label says so; else 0 or 1.  What is set is a lower bound.  0
 * or -ENOMEM. */
uint32_t sp_paths_functions(const struct sp_paths *paths, uint32_t frame);
int sp_paths_set_functions(struct sp_paths *paths, uint32_t frame, uint32_t n);

/* The function's part of a frame's name, and *ret_bytes of the module's, which
 * comes first; 0 for the program itself. */
const char *sp_paths_function(const char *name, size_t *ret_bytes);

/* Are the functions of both frames in one module? */
bool sp_paths_same_module(const struct sp_paths *paths, uint32_t a, uint32_t b);

/* Does the pattern match the function as people read it, or with its
 * parameters?  As sp_pattern_search(). */
int sp_paths_matches(const struct sp_pattern *pattern, const char *function,
		     struct sp_error *err);

/* "f < caller < main", to be freed by the caller; NULL without memory. */
char *sp_paths_text(const struct sp_paths *paths, uint32_t path);

struct sp_path_row {
	uint32_t path;
	struct sp_acc acc; /* has samples; adjusted (stats/adjust.h) */
};

/* The samples of one view, by call path. */
struct sp_path_rows {
	struct sp_path_row *at; /* by ascending path */
	size_t n;
};

/* Of the names of frames: text as UTF-8, of which a byte that is none becomes
 * U+FFFD, as it would in a baseline; and the module's part.  At most three
 * bytes for each; return the end. */
char *sp_paths_put_utf8(char *to, const char *text);
char *sp_paths_put_module(char *to, const struct sp_module *module);

/* Bring rows in order, those of one path together.  As a reader does. */
void sp_path_rows_settle(struct sp_path_rows *rows);
