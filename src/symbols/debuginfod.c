/* SPDX-License-Identifier: MIT */
#include "symbols/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	return lib.begin;
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
	return 0;
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
