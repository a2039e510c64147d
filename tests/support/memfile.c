/* SPDX-License-Identifier: MIT */
#include "support/memfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void die(const char *what)
{
	perror(what);
	exit(1);
}

void memfile_open(struct memfile *file)
{
	file->fd = memfd_create("memfile", MFD_CLOEXEC);
	if (file->fd < 0)
		die("memfd_create");
	snprintf(file->path, sizeof(file->path), "/proc/self/fd/%d", file->fd);
}

void memfile_close(struct memfile *file)
{
	close(file->fd);
}

void memfile_write(const struct memfile *file, uint64_t offset,
		   const void *data, size_t n)
{
	if (pwrite(file->fd, data, n, (off_t)offset) != (ssize_t)n)
		die("pwrite");
}

void memfile_resize(const struct memfile *file, uint64_t bytes)
{
	if (ftruncate(file->fd, (off_t)bytes) != 0)
		die("ftruncate");
}

uint64_t memfile_copy(const struct memfile *file, const char *path)
{
	FILE *from = fopen(path, "rbe");
	uint8_t buf[4096];
	uint64_t at = 0;
	size_t n;

	if (!from)
		die(path);
	memfile_resize(file, 0);
	while ((n = fread(buf, 1, sizeof(buf), from)) > 0) {
		memfile_write(file, at, buf, n);
		at += n;
	}
	if (ferror(from))
		die(path);
	fclose(from);
	return at;
}

uint8_t *memfile_read(const struct memfile *file, uint64_t *ret_bytes)
{
	struct stat st;
	uint8_t *data;

	if (fstat(file->fd, &st) != 0)
		die("fstat");
	data = malloc((size_t)st.st_size + 1);
	if (!data || pread(file->fd, data, (size_t)st.st_size, 0) != st.st_size)
		die("pread");
	*ret_bytes = (uint64_t)st.st_size;
	return data;
}
