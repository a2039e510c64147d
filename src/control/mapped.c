/* SPDX-License-Identifier: MIT */
#include "control/mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/patience.h"
#include "base/regular.h"

#define TRIES 20
#define PIECE (1u << 20)
/* Until a file is read. */
#define COPY_NS 10000000000ull

/* ---- the file system ---- */

struct mount {
	uint64_t id;
	unsigned int major, minor;
	char type[32];
};

static bool parse_mount(const char *line, struct mount *ret)
{
	/* Blanks in names are written in another way. */
	const char *type = strstr(line, " - ");

	return type &&
	       sscanf(line, "%" SCNu64 " %*u %u:%u", &ret->id, &ret->major,
		      &ret->minor) == 3 &&
	       sscanf(type, " - %31s", ret->type) == 1;
}

/* The mount with ret->id, or if that is 0 any other of the same file system. */
static bool find_mount(FILE *mounts, struct mount *ret)
{
	struct mount mount;
	bool is_found = false;
	char *line = NULL;
	size_t room = 0;

	while (mounts && !is_found && getline(&line, &room, mounts) > 0)
		is_found =
			parse_mount(line, &mount) &&
			(ret->id ? mount.id == ret->id
				 : mount.major == ret->major &&
					   mount.minor == ret->minor &&
					   strcmp(mount.type, ret->type) == 0);
	free(line);
	if (mounts)
		fclose(mounts);
	if (is_found)
		*ret = mount;
	return is_found;
}

uint64_t sp_mapped_mount(int fd)
{
	char path[48], line[128];
	uint64_t id = 0;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	in = fopen(path, "re");
	while (in && !id && fgets(line, sizeof(line), in))
		sscanf(line, "mnt_id: %" SCNu64, &id);
	if (in)
		fclose(in);
	return id;
}

/*
 * A file system in memory waits for nobody.  Any other has to be mounted where
 * we are as well, and not be served by a process: in a namespace of its own a
 * user may mount one, or lay another above it.
 */
static bool answers_always(int dir, int fd)
{
	struct mount mount = {.id = sp_mapped_mount(fd)};

	if (!mount.id ||
	    (!find_mount(sp_proc_stream(dir, "mountinfo"), &mount) &&
	     !find_mount(fopen("/proc/self/mountinfo", "re"), &mount)))
		return false;
	if (strcmp(mount.type, "tmpfs") == 0 ||
	    strcmp(mount.type, "ramfs") == 0)
		return true;
	mount.id = 0;
	return strncmp(mount.type, "fuse", 4) != 0 &&
	       find_mount(fopen("/proc/self/mountinfo", "re"), &mount);
}

static bool is_served(int dir, int fd)
{
	struct mount mount = {.id = sp_mapped_mount(fd)};

	return !mount.id ||
	       (!find_mount(sp_proc_stream(dir, "mountinfo"), &mount) &&
		!find_mount(fopen("/proc/self/mountinfo", "re"), &mount)) ||
	       strncmp(mount.type, "fuse", 4) == 0;
}

int sp_mapped_copy(int fd, off_t bytes, uint64_t until_ns,
		   const atomic_bool *is_over)
{
	char *piece = malloc(PIECE);
	const int copy = piece ? memfd_create("sampleprof", MFD_CLOEXEC) : -1;
	off_t at = 0;
	ssize_t n;

	while (copy >= 0 && at < bytes && sp_clock_ns() < until_ns &&
	       !(is_over && atomic_load(is_over)) &&
	       (n = sp_patience_read(fd, piece, PIECE, at)) > 0 &&
	       write(copy, piece, (size_t)n) == n)
		at += n;
	free(piece);
	if (copy < 0 || at >= bytes)
		return copy;
	close(copy);
	return -1;
}

int sp_mapped_keep(int dir, int fd)
{
	struct stat st;
	int copy = -1;

	if (!is_served(dir, fd))
		return fd;
	if (sp_patience_stat(fd, "", &st) == 0)
		copy = sp_mapped_copy(fd, st.st_size, sp_clock_ns() + COPY_NS,
				      NULL);
	close(fd);
	return copy < 0 ? -ETIMEDOUT : copy;
}

/* ---- the file ---- */

static int open_by_mapping(int dir, const struct sp_proc_map *map)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64,
		 map->start, map->end);
	fd = openat(dir, name, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* The name has no links on its way, as the kernel wrote it.  What is mapped is
 * known to the kernel by its name, so that nobody has to be asked. */
static int open_by_name(int root, const char *path, bool is_other)
{
	const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
	int fd = root < 0 ? -errno : -EAGAIN;

	/* Whoever renames or mounts elsewhere may be in its way. */
	for (int i = 0; i < TRIES && fd == -EAGAIN; i++)
		fd = sp_patience_open(root, path, flags,
				      RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS |
					      (is_other ? RESOLVE_CACHED : 0));
	/* Before Linux 5.6 only what belongs to ourselves. */
	if (fd == -ENOSYS && !is_other)
		fd = sp_patience_open(root, path + 1, flags, 0);
	if (root >= 0)
		close(root);
	return fd;
}

static int open_our_root(void)
{
	return open("/", O_PATH | O_CLOEXEC);
}

/* What may be asked without waiting for an answer. */
static int check_place(int dir, int fd, bool is_other)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE,
		  &st) != 0)
		return -errno;
	if (!S_ISREG(st.stx_mode))
		return -EINVAL;
	return is_other && !answers_always(dir, fd) ? -EXDEV : 0;
}

/* Closes `place`. */
static int open_checked(int dir, int place, bool is_other)
{
	int fd, r;

	if (place < 0)
		return place;
	r = check_place(dir, place, is_other);
	fd = r < 0 ? r : sp_regular_reopen(place, O_RDONLY);
	close(place);
	return fd;
}

/* Likewise. */
static int open_place(int dir, int place, const struct sp_proc_map *map,
		      bool is_other)
{
	const int fd = open_checked(dir, place, is_other);
	struct sp_proc_file file;
	int r;

	if (fd < 0)
		return fd;
	r = sp_proc_name_file(fd, &file);
	if (r == 0 && sp_proc_is_file(&file, &map->file))
		return fd;
	close(fd);
	return r < 0 ? r : -ESTALE;
}

int sp_mapped_open(int dir, const struct sp_proc_map *map, bool is_other)
{
	const int place = open_by_mapping(dir, map);
	int r;

	if (place >= 0)
		return open_place(dir, place, map, is_other);
	/* That needs more rights than a name.  The kernel writes names as they
	 * are below our root directory, or in a container below its own. */
	r = open_place(dir,
		       open_by_name(openat(dir, "root", O_PATH | O_CLOEXEC),
				    map->path, is_other),
		       map, is_other);
	return r >= 0 || r == -ETIMEDOUT
		       ? r
		       : open_place(dir,
				    open_by_name(open_our_root(), map->path,
						 is_other),
				    map, is_other);
}

int sp_mapped_open_exe(uint64_t pid)
{
	struct sp_proc_identity identity;
	const int dir = sp_proc_open(pid);
	int place, fd = -ESRCH;

	if (dir < 0)
		return dir;
	if (sp_proc_identify(pid, &identity)) {
		place = openat(dir, "exe", O_PATH | O_CLOEXEC);
		fd = open_checked(dir, place < 0 ? -errno : place,
				  sp_proc_is_other(&identity));
	}
	close(dir);
	return fd;
}

bool sp_mapped_is_at(const char *path, int fd, bool is_other)
{
	const int there = open_by_name(open_our_root(), path, is_other);
	struct statx a, b;
	const bool is_same =
		there >= 0 &&
		statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO,
		      &a) == 0 &&
		statx(there, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO,
		      &b) == 0 &&
		a.stx_ino == b.stx_ino && a.stx_dev_major == b.stx_dev_major &&
		a.stx_dev_minor == b.stx_dev_minor;

	if (there >= 0)
		close(there);
	return is_same;
}
