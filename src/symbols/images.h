/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "model/profile.h"
#include "symbols/debuginfo.h"

/*
 * The files of modules.  Each is opened once, however often it was mapped and
 * in however many processes, and later symbolizers can share it.  For one
 * thread at a time.
 */
struct sp_image {
	char *path;
	struct sp_build_id build_id;
	/* NULL: the file cannot be used, for `reason`; "" if it never was a
	 * file. */
	struct sp_debuginfo *info;
	char reason[sizeof(((struct sp_error *)0)->message)];
	unsigned char build_id_bytes[SP_FORMAT_BUILD_ID_MAX];
};

struct sp_images;

/* Copies from `options` how to search for files.  NULL without memory. */
struct sp_images *sp_images_new(const struct sp_symbolizer_options *options);

/* The image of a module, valid until sp_images_free(); NULL without memory. */
const struct sp_image *sp_images_get(struct sp_images *images,
				     const struct sp_module *module);

/*
 * The same if the stacks of the profile can have gone through that file: most
 * of their addresses are behind a call in it.  Else one without names.  Asked
 * of modules without a build id; callsite.c.
 */
const struct sp_image *sp_callsite_check(const struct sp_image *image,
					 const struct sp_profile *profile,
					 const struct sp_module *module);

/* May be NULL. */
void sp_images_free(struct sp_images *images);
