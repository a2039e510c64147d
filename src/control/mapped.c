/* SPDX-License-Identifier: MIT */
#include "control/mapped.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/patience.h"
#include "base/regular.h"
#include "base/served.h"

#define TRIES 20

int sp_mapped_check_elf(int fd)
{
	char magic[SELFMAG];
	const ssize_t n = sp_patience_read(fd, magic, SELFMAG, 0);

	if (n < 0)
		return (int)n;
	return n == SELFMAG && !memcmp(magic, ELFMAG, SELFMAG) ? 0 : -ENOEXEC;
}

/* ---- the file ---- */

static int open_by_mapping(int dir, const struct sp_proc_map *map)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64,
		 map->start, map->end);
	fd = openat(dir, name, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return fd;
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
	struct stat st;
	const int r = sp_patience_know(fd, &st);

	if (r < 0)
		return r;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	return is_other && !sp_served_answers_always(dir, fd) ? -EXDEV : 0;
}

/* Closes `place`, or gives it if a process serves the file. */
static int open_checked(int dir, int place, bool is_other)
{
	int fd, r;

	if (place < 0)
		return place;
	r = check_place(dir, place, is_other);
	if (r == 0 && sp_served_is(dir, place))
		return place;
	fd = r < 0 ? r : sp_regular_reopen(place, O_RDONLY);
	close(place);
	return fd;
}

int sp_mapped_open_place(int dir, int place, const struct sp_proc_file *wanted,
			 bool is_other)
{
	const int fd = open_checked(dir, place, is_other);
	struct sp_proc_file file;
	int r;

	if (fd < 0)
		return fd;
	r = sp_proc_name_file(fd, &file);
	if (r == 0 && sp_proc_is_file(&file, wanted))
		return fd;
	close(fd);
	return r < 0 ? r : -ESTALE;
}

int sp_mapped_open(int dir, const struct sp_proc_map *map, bool is_other)
{
	const int place = open_by_mapping(dir, map);
	int r;

	if (place >= 0)
		return sp_mapped_open_place(dir, place, &map->file, is_other);
	/* That needs more rights than a name.  The kernel writes names as they
	 * are below our root directory, or in a container below its own. */
	r = sp_mapped_open_place(
		dir,
		open_by_name(openat(dir, "root", O_PATH | O_CLOEXEC), map->path,
			     is_other),
		&map->file, is_other);
	return r >= 0 || r == -ETIMEDOUT
		       ? r
		       : sp_mapped_open_place(dir,
					      open_by_name(open_our_root(),
							   map->path, is_other),
					      &map->file, is_other);
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

int sp_mapped_open_named(const char *path)
{
	const int place = open(path, O_PATH | O_CLOEXEC);

	if (place < 0)
		return -errno;
	return open_checked(-1, place, false);
}

bool sp_mapped_is_at(const char *path, int fd, bool is_other)
{
	const int there = open_by_name(open_our_root(), path, is_other);
	struct stat a, b;
	const bool is_same = there >= 0 && sp_patience_know(fd, &a) == 0 &&
			     sp_patience_know(there, &b) == 0 &&
			     a.st_ino == b.st_ino && a.st_dev == b.st_dev;

	if (there >= 0)
		close(there);
	return is_same;
}
