/* SPDX-License-Identifier: MIT */
#include "symbols/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/place.h"

/* The part of libdebuginfod's interface that is used. */
static struct {
	void *(*begin)(void);
	int (*find)(void *client, const unsigned char *id, int id_bytes,
		    char **ret_path);
	void (*end)(void *client);
} lib;

static bool open_library(void)
{
	void *handle;

	if (lib.begin)
		return true;
	handle = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return false;
	*(void **)&lib.find = dlsym(handle, "debuginfod_find_debuginfo");
	*(void **)&lib.end = dlsym(handle, "debuginfod_end");
	if (lib.find && lib.end)
		*(void **)&lib.begin = dlsym(handle, "debuginfod_begin");
	/* cppcheck-suppress resourceLeak ; it stays loaded */
	return lib.begin;
}

const char *sp_debuginfod_cache(const char **ret_name)
{
	static const char *const names[] = {"DEBUGINFOD_CACHE_PATH",
					    "XDG_CACHE_HOME", "HOME"};
	const char *path = NULL;
	size_t i;

	for (i = 0; i < 3 && !(path = getenv(names[i])); i++)
		;
	/* cppcheck-suppress arrayIndexOutOfBounds ; a path ends the loop */
	*ret_name = path ? names[i] : NULL;
	return path;
}

/* Where that belongs to another user, as $HOME may under sudo, the library
 * would follow links and reuse files of that user. */
static int check_cache(struct sp_error *err)
{
	const char *name;
	const char *path = sp_debuginfod_cache(&name);
	struct sp_place place;
	int r;

	if (!path)
		return 0;
	r = sp_place_find(path, &place, err);
	if (r >= 0 && !sp_place_is_trusted(place.there.st_uid))
		r = sp_error_set(err, -EPERM, "--debuginfod",
				 "its cache would be below $%s, which belongs "
				 "to another user (uid %ld): set "
				 "DEBUGINFOD_CACHE_PATH to a directory of "
				 "yours",
				 name, (long)place.there.st_uid);
	sp_place_close(&place);
	return r == -EPERM ? r : 0;
}

int sp_debuginfod_check(struct sp_error *err)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	if (!urls || !urls[strspn(urls, " ")])
		return sp_error_set(err, -EINVAL, "--debuginfod",
				    "the environment variable DEBUGINFOD_URLS "
				    "names no server");
	if (!open_library())
		return sp_error_set(err, -ENOSYS, "--debuginfod",
				    "libdebuginfod.so.1 is not installed");
	return check_cache(err);
}

int sp_debuginfod_find(const struct sp_build_id *id, char **ret_path)
{
	void *client = id->len && open_library() ? lib.begin() : NULL;
	char *path = NULL;
	int fd;

	if (!client)
		return -ENOENT;
	fd = lib.find(client, id->bytes, (int)id->len, &path);
	lib.end(client);
	if (fd >= 0) {
		close(fd);
		/* A server may send anything. */
		fd = sp_elffile_open(path, id, NULL);
	}
	if (fd < 0)
		free(path);
	else
		*ret_path = path;
	return fd;
}
