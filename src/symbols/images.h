/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "model/profile.h"
#include "symbols/debuginfo.h"

/*
 * The files behind modules, opened once, however often they were mapped and by
 * how many processes: symbolizers that come one after the other can share them.
 * One thread at a time.
 */
struct sp_image {
	char *path;
	struct sp_build_id build_id;
	/* NULL: of no use, for `reason`, which is empty if it never was a
	 * file. */
	struct sp_debuginfo *info;
	char reason[sizeof(((struct sp_error *)0)->message)];
	unsigned char build_id_bytes[SP_FORMAT_BUILD_ID_MAX];
};

struct sp_images;

/* How files are looked for is copied from `options`.  NULL without memory. */
struct sp_images *sp_images_new(const struct sp_symbolizer_options *options);

/* That of a module, which stays until all are freed; NULL without memory. */
const struct sp_image *sp_images_get(struct sp_images *images,
				     const struct sp_module *module);

/* May be NULL. */
void sp_images_free(struct sp_images *images);
