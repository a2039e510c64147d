/* SPDX-License-Identifier: MIT */
#include "control/kept.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/family.h"
#include "base/patience.h"
#include "base/proc.h"
#include "base/served.h"
#include "control/mapped.h"

/* That are kept, and that are known. */
#define OPEN_MAX  8192u
#define FILES_MAX 65536u
/* Descriptors that are left to whatever else this process does. */
#define SPARE_DESCRIPTORS 64u
/* Of all copies together. */
#define COPIED_MAX (1ull << 30)

static const char deleted[] = " (deleted)";

struct file {
	struct sp_proc_file id; /* as maps has it */
	char *path;             /* without " (deleted)" */
	int fd;                 /* -1: it is no ELF file, or cannot be had */
	/* ... or there was no room or no time for it, a file of this user's
	 * processes */
	bool has_no_room;
	dev_t dev; /* of the file, also if fd is a copy */
	ino_t inode;
	enum { UNASKED, FOUND, GONE } place;
};

struct sp_kept {
	struct file *files;
	size_t n, room;
	size_t n_open, open_max;
	bool is_full; /* there was another file */
	uint64_t copied;
	/* When the look that is under way has to end. */
	uint64_t until_ns;
	atomic_bool is_over;
	/* The mounts of the beginning. */
	uint64_t *mounts;
	size_t n_mounts, mounts_room;
};

static bool is_time_over(const struct sp_kept *kept)
{
	return atomic_load_explicit(&kept->is_over, memory_order_relaxed) ||
	       sp_clock_ns() >= kept->until_ns;
}

void sp_kept_stop(struct sp_kept *kept)
{
	atomic_store_explicit(&kept->is_over, true, memory_order_relaxed);
}

/* ---- mounts ---- */

static void note_mounts(struct sp_kept *kept)
{
	struct sp_proc_lines l = {.in = fopen("/proc/self/mountinfo", "re")};
	uint64_t id;

	while (sp_proc_next(&l))
		if (sscanf(l.line, "%" SCNu64, &id) == 1 &&
		    !sp_array_reserve((void **)&kept->mounts,
				      &kept->mounts_room, kept->n_mounts,
				      sizeof(*kept->mounts)))
			kept->mounts[kept->n_mounts++] = id;
}

/* Was it there at the beginning?  True also if nothing is known. */
static bool is_lasting(const struct sp_kept *kept, uint64_t mount)
{
	for (size_t i = 0; i < kept->n_mounts; i++)
		if (kept->mounts[i] == mount)
			return true;
	return !mount || !kept->n_mounts;
}

/* ---- files ---- */

struct sp_kept *sp_kept_new(void)
{
	struct sp_kept *kept = calloc(1, sizeof(*kept));
	struct rlimit limit;

	if (!kept)
		return NULL;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
	    limit.rlim_cur > SPARE_DESCRIPTORS)
		kept->open_max = limit.rlim_cur - SPARE_DESCRIPTORS;
	if (kept->open_max > OPEN_MAX)
		kept->open_max = OPEN_MAX;
	note_mounts(kept);
	return kept;
}

void sp_kept_free(struct sp_kept *kept)
{
	if (!kept)
		return;
	for (size_t i = 0; i < kept->n; i++) {
		if (kept->files[i].fd >= 0)
			close(kept->files[i].fd);
		free(kept->files[i].path);
	}
	free(kept->files);
	free(kept->mounts);
	free(kept);
}

static size_t path_bytes(const char *path)
{
	const size_t n = strlen(path), n_deleted = sizeof(deleted) - 1;

	return n > n_deleted && !strcmp(path + n - n_deleted, deleted)
		       ? n - n_deleted
		       : n;
}

/* An inode may be used again for a file of another name. */
static bool is_known(const struct sp_kept *kept, const struct sp_proc_file *id,
		     const char *path)
{
	const size_t n = path_bytes(path);

	for (size_t i = 0; i < kept->n; i++)
		if (sp_proc_is_file(&kept->files[i].id, id) &&
		    strlen(kept->files[i].path) == n &&
		    !memcmp(kept->files[i].path, path, n))
			return true;
	return false;
}

/* A copy in memory; -1: there is no room or no time for it. */
static int copy_file(struct sp_kept *kept, int fd, const struct stat *st)
{
	const int copy =
		st->st_size > 0 && (uint64_t)st->st_size <=
					   COPIED_MAX - kept->copied
			? sp_served_copy(fd, st->st_size, kept->until_ns,
					 &kept->is_over)
			: -1;

	if (copy < 0)
		return -1;
	kept->copied += (uint64_t)st->st_size;
	/* Whoever may not read the file may not read the copy. */
	if (geteuid() == 0)
		fchmod(copy, fchown(copy, st->st_uid, st->st_gid) == 0
				     ? st->st_mode & 0777
				     : 0700);
	return copy;
}

/* `fd` is the module's now; -1: the file cannot be had, and is not to be asked
 * for again. */
static void put_file(struct sp_kept *kept, const struct sp_proc_file *id,
		     const char *path, int fd, bool is_other)
{
	struct file file = {.id = *id, .fd = -1};
	struct stat st = {0};

	if (fd >= 0 && (sp_mapped_check_elf(fd) < 0 ||
			sp_patience_stat(fd, "", &st) < 0)) {
		close(fd);
	} else if (fd >= 0 && !sp_patience_is_place(fd) &&
		   is_lasting(kept, sp_served_mount(fd))) {
		file.fd = fd;
	} else if (fd >= 0) {
		file.fd = copy_file(kept, fd, &st);
		file.has_no_room = file.fd < 0 && !is_other;
		close(fd);
	}
	file.dev = st.st_dev;
	file.inode = st.st_ino;
	if (file.fd >= 0 && kept->n_open >= kept->open_max) {
		close(file.fd);
		file.fd = -1;
		file.has_no_room = !is_other;
	}
	file.path = strndup(path, path_bytes(path));
	if (!file.path || kept->n == FILES_MAX ||
	    sp_array_reserve((void **)&kept->files, &kept->room, kept->n,
			     sizeof(file))) {
		kept->is_full |= file.fd >= 0 || file.has_no_room;
		free(file.path);
		if (file.fd >= 0)
			close(file.fd);
		return;
	}
	kept->n_open += file.fd >= 0;
	kept->files[kept->n++] = file;
}

void sp_kept_add(struct sp_kept *kept, const char *path)
{
	const int fd = sp_mapped_open_named(path);
	char *real = realpath(path, NULL);
	struct sp_proc_file id;

	kept->until_ns = sp_clock_ns() + SP_KEPT_LOOK_NS;
	if (fd >= 0 && real && sp_proc_name_file(fd, &id) == 0 &&
	    !is_known(kept, &id, real))
		put_file(kept, &id, real, fd, false);
	else if (fd >= 0)
		close(fd);
	free(real);
}

/* ---- processes ---- */

/* The executable needs no rights but those to look at the process. */
static int open_exe(uint64_t pid, const struct sp_proc_file *id)
{
	const int fd = sp_mapped_open_exe(pid);
	struct sp_proc_file file;

	if (fd < 0 ||
	    (sp_proc_name_file(fd, &file) == 0 && sp_proc_is_file(&file, id)))
		return fd;
	close(fd);
	return -ENOENT;
}

/* A memory file that the process still has open. */
static int open_descriptor(const struct sp_kept *kept, int dir,
			   const struct sp_proc_file *id)
{
	const int place = openat(dir, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *fds = place >= 0 ? fdopendir(place) : NULL;
	struct dirent *entry;
	int fd = -1;

	if (!fds) {
		if (place >= 0)
			close(place);
		return -1;
	}
	while (fd < 0 && !is_time_over(kept) &&
	       (entry = readdir(fds)) != NULL) {
		/* It leads to the file itself: nobody is asked. */
		const int found =
			openat(place, entry->d_name, O_PATH | O_CLOEXEC);
		struct sp_proc_file file;

		if (found >= 0 && sp_proc_name_file(found, &file) == 0 &&
		    file.inode == id->inode)
			fd = sp_mapped_open_place(dir, found, id, false);
		else if (found >= 0)
			close(found);
	}
	closedir(fds);
	return fd;
}

static void look_at_map(struct sp_kept *kept, uint64_t pid, int dir,
			const struct sp_proc_map *map, bool is_other)
{
	int fd;

	if (map->mode[2] != 'x' || map->path[0] != '/' || !map->file.inode ||
	    is_known(kept, &map->file, map->path))
		return;
	fd = sp_mapped_open(dir, map, is_other);
	if (fd < 0)
		fd = open_exe(pid, &map->file);
	if (fd < 0 && !is_other)
		fd = open_descriptor(kept, dir, &map->file);
	put_file(kept, &map->file, map->path, fd < 0 ? -1 : fd, is_other);
}

static void look_at(struct sp_kept *kept, uint64_t pid)
{
	struct sp_proc_identity identity;
	struct sp_proc_map map;
	const int dir = sp_proc_open(pid);
	struct sp_proc_lines maps = {0};

	if (dir < 0)
		return;
	if (sp_proc_identify(pid, &identity))
		maps.in = sp_proc_stream(dir, "maps");
	while (!is_time_over(kept) && sp_proc_next_map(&maps, &map))
		look_at_map(kept, pid, dir, &map, sp_proc_is_other(&identity));
	sp_proc_end_lines(&maps);
	close(dir);
}

void sp_kept_look(struct sp_kept *kept, uint64_t pid)
{
	kept->until_ns = sp_clock_ns() + SP_KEPT_LOOK_NS;
	look_at(kept, pid);
	sp_patience_rest();
}

void sp_kept_look_below(struct sp_kept *kept)
{
	struct sp_family family;

	kept->until_ns = sp_clock_ns() + SP_KEPT_LOOK_NS;
	if (sp_family_find((uint64_t)getpid(), kept->until_ns, &family) == 0)
		for (size_t i = 0; i < family.n && !is_time_over(kept); i++)
			look_at(kept, family.pids[i]);
	sp_family_free(&family);
	sp_patience_rest();
}

/* ---- afterwards ---- */

/* Decided once. */
static bool is_gone(struct file *file)
{
	struct stat st;

	if (file->place == UNASKED)
		file->place = sp_patience_stat(AT_FDCWD, file->path, &st) < 0 ||
					      st.st_dev != file->dev ||
					      st.st_ino != file->inode
				      ? GONE
				      : FOUND;
	return file->place == GONE;
}

const char *sp_kept_gone(struct sp_kept *kept, size_t i,
			 char ret_file[SP_KEPT_FILE_BYTES])
{
	for (size_t k = 0; k < kept->n; k++) {
		struct file *file = &kept->files[k];

		if (file->fd < 0 || !is_gone(file) || i--)
			continue;
		fcntl(file->fd, F_SETFD, 0);
		snprintf(ret_file, SP_KEPT_FILE_BYTES, "/proc/self/fd/%d",
			 file->fd);
		return file->path;
	}
	return NULL;
}

size_t sp_kept_left_out(struct sp_kept *kept)
{
	size_t n = kept->is_full;

	for (size_t i = 0; i < kept->n; i++)
		n += kept->files[i].has_no_room && is_gone(&kept->files[i]);
	return n;
}
