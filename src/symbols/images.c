/* SPDX-License-Identifier: MIT */
#include "symbols/images.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define DEFAULT_DEBUG_PATH "/usr/lib/debug"

struct sp_images {
	struct sp_symbolizer_options options; /* borrowed by open files */
	char *debug_path;
	struct sp_image **at;
	size_t n, room;
};

struct sp_images *sp_images_new(const struct sp_symbolizer_options *options)
{
	struct sp_images *images = calloc(1, sizeof(*images));

	if (!images)
		return NULL;
	images->debug_path = strdup(options->debug_path ? options->debug_path
							: DEFAULT_DEBUG_PATH);
	if (!images->debug_path) {
		free(images);
		return NULL;
	}
	images->options = *options;
	images->options.debug_path = images->debug_path;
	return images;
}

static void free_image(struct sp_image *image)
{
	sp_debuginfo_close(image->info);
	free(image->path);
	free(image);
}

void sp_images_free(struct sp_images *images)
{
	if (!images)
		return;
	for (size_t i = 0; i < images->n; i++)
		free_image(images->at[i]);
	free(images->at);
	free(images->debug_path);
	free(images);
}

/* Names of the loader and the kernel for modules that are not on disk. */
static bool is_file_name(const char *path)
{
	return path[0] && path[0] != '[' &&
	       strcmp(path, "linux-vdso.so.1") != 0 &&
	       strcmp(path, "linux-gate.so.1") != 0;
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

#define DELETED " (deleted)"

static bool is_path_of(const char *path, const char *module)
{
	const size_t n = strlen(path);

	return strncmp(path, module, n) == 0 &&
	       (!module[n] || strcmp(module + n, DELETED) == 0);
}

/* Which file it was is known by the build id, or else by the path alone. */
static int open_moved(const struct sp_images *images, struct sp_image *image)
{
	const struct sp_symbolizer_options *o = &images->options;
	struct sp_error err;
	int r = -ENOENT;

	for (size_t i = 0; r < 0 && i < o->n_moved; i++)
		if (image->build_id.len ||
		    is_path_of(o->moved[i].path, image->path))
			r = sp_debuginfo_open(o->moved[i].file,
					      &image->build_id, o, &image->info,
					      &err);
	return r;
}

static void open_image(const struct sp_images *images, struct sp_image *image)
{
	struct sp_error err;
	int r;

	/* Without names, if the profile is of another kernel. */
	if (strcmp(image->path, SP_ELFFILE_VDSO) == 0)
		sp_debuginfo_open(image->path, &image->build_id,
				  &images->options, &image->info, &err);
	if (!is_file_name(image->path))
		return;
	/* Without a build id another file may be there. */
	if (!image->build_id.len && open_moved(images, image) == 0)
		return;
	/* A relative name means another place than it did to the program. */
	if (image->path[0] != '/' && !image->build_id.len) {
		snprintf(image->reason, sizeof(image->reason),
			 "has a relative path and no build id");
		return;
	}
	r = sp_debuginfo_open(image->path, &image->build_id, &images->options,
			      &image->info, &err);
	if (r < 0 && image->build_id.len && open_moved(images, image) == 0)
		return;
	if (r == -ENOENT && ends_with(image->path, DELETED))
		snprintf(image->reason, sizeof(image->reason),
			 "was deleted while the program ran");
	else if (r < 0)
		memcpy(image->reason, err.message, sizeof(err.message));
}

static bool is_image_of(const struct sp_image *image,
			const struct sp_module *module)
{
	return image->build_id.len == module->build_id_len &&
	       memcmp(image->build_id.bytes, module->build_id,
		      module->build_id_len) == 0 &&
	       strcmp(image->path, module->path) == 0;
}

const struct sp_image *sp_images_get(struct sp_images *images,
				     const struct sp_module *module)
{
	struct sp_image *image;

	for (size_t i = 0; i < images->n; i++)
		if (is_image_of(images->at[i], module))
			return images->at[i];
	if (sp_array_reserve((void **)&images->at, &images->room, images->n,
			     sizeof(struct sp_image *)))
		return NULL;
	image = calloc(1, sizeof(*image));
	if (!image)
		return NULL;
	image->path = strdup(module->path);
	if (!image->path) {
		free(image);
		return NULL;
	}
	memcpy(image->build_id_bytes, module->build_id, module->build_id_len);
	image->build_id = (struct sp_build_id){image->build_id_bytes,
					       module->build_id_len};
	open_image(images, image);
	images->at[images->n++] = image;
	return image;
}
