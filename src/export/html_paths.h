/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "report/aggregate.h"
#include "base/intern.h"

/*
 * Call stacks as sequences of function numbers, each sequence once, for the
 * page.
 */
struct sp_html_function {
	uint32_t name;   /* number of a string */
	uint32_t module; /* path; that of "" if it is in none */
};

struct sp_html_path {
	size_t at; /* into `frames`: outermost first; twice the number of the
		    * function, and 1 if it is not the program's own */
	uint32_t n_frames;
	/* Position of the function that the bytes are flat for. */
	uint32_t flat;
};

struct sp_html_paths {
	struct sp_intern strings;
	struct sp_intern functions; /* of struct sp_html_function */
	uint32_t *frames;
	size_t n_frames, frames_room;
	struct sp_html_path *paths; /* ascending, function by function */
	size_t n_paths;
	uint32_t *of_stack; /* of profile->stacks; UINT32_MAX: none */
	/* Of uint32_t: functions whose name is nothing but an address. */
	struct sp_intern unnamed;
};

/*
 * The paths of the stacks that have samples in the selection. 0 and *paths, to
 * be freed by the caller with sp_html_paths_done(); or -ENOMEM and *err.
 */
int sp_html_paths_init(struct sp_html_paths *paths,
		       const struct sp_aggregate *aggregate,
		       const struct sp_selection *selection,
		       struct sp_error *err);

#define SP_HTML_PATHS_OTHER "[other]"

/*
 * Merge all paths whose keep[] is false into one of the function
 * SP_HTML_PATHS_OTHER. path_of_path[] gets the new numbers. 0 or -ENOMEM.
 */
int sp_html_paths_fold(struct sp_html_paths *paths, const bool *keep,
		       uint32_t *path_of_path);

/* The number of a function, new if need be: 0 or -ENOMEM. */
int sp_html_paths_function(struct sp_html_paths *paths, const char *name,
			   const char *module, uint32_t *ret_number);

struct sp_html_function sp_html_paths_at(const struct sp_html_paths *paths,
					 uint32_t function);

void sp_html_paths_done(struct sp_html_paths *paths);
