/* SPDX-License-Identifier: MIT */
#include "base/served.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/patience.h"
#include "base/proc.h"

/* Of one command, together. */
#define COPIES_BYTES (1ull << 30)
#define COPIES_NS    10000000000ull

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
	struct sp_proc_lines l = {.in = mounts};
	struct mount mount;
	bool is_found = false;

	while (!is_found && sp_proc_next(&l))
		is_found =
			parse_mount(l.line, &mount) &&
			(ret->id ? mount.id == ret->id
				 : mount.major == ret->major &&
					   mount.minor == ret->minor &&
					   strcmp(mount.type, ret->type) == 0);
	sp_proc_end_lines(&l);
	if (is_found)
		*ret = mount;
	return is_found;
}

uint64_t sp_served_mount(int fd)
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
bool sp_served_answers_always(int dir, int fd)
{
	struct mount mount = {.id = sp_served_mount(fd)};

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

/* Memory files are on no mount. */
static bool is_memory_file(int fd)
{
	const int own = memfd_create("sampleprof", MFD_CLOEXEC);
	struct statx a, b;
	const bool r = own >= 0 &&
		       statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
			     STATX_TYPE, &a) == 0 &&
		       statx(own, "", AT_EMPTY_PATH, STATX_TYPE, &b) == 0 &&
		       a.stx_dev_major == b.stx_dev_major &&
		       a.stx_dev_minor == b.stx_dev_minor;

	if (own >= 0)
		close(own);
	return r;
}

bool sp_served_is(int dir, int fd)
{
	struct mount mount;

	if (sp_patience_has_disk(fd) || is_memory_file(fd))
		return false;
	mount = (struct mount){.id = sp_served_mount(fd)};
	return !mount.id ||
	       (!find_mount(sp_proc_stream(dir, "mountinfo"), &mount) &&
		!find_mount(fopen("/proc/self/mountinfo", "re"), &mount)) ||
	       strncmp(mount.type, "fuse", 4) == 0;
}

/* ---- copies ---- */

int sp_served_copy(int fd, off_t bytes, uint64_t until_ns,
		   const atomic_bool *is_over)
{
	const int copy = memfd_create("sampleprof", MFD_CLOEXEC);
	const int r = copy < 0 ? -errno : -ETIMEDOUT;
	off_t at = 0;
	ssize_t n = 1;

	while (copy >= 0 && at < bytes && n > 0 && sp_clock_ns() < until_ns &&
	       !(is_over && atomic_load(is_over))) {
		n = sp_patience_copy(fd, copy, (size_t)(bytes - at), at);
		at += n > 0 ? n : 0;
	}
	if (copy >= 0 && at >= bytes)
		return copy;
	if (copy >= 0)
		close(copy);
	return r;
}

struct sp_served_room sp_served_room(void)
{
	return (struct sp_served_room){.bytes = COPIES_BYTES,
				       .until_ns = sp_clock_ns() + COPIES_NS};
}

int sp_served_keep(int fd, struct sp_served_room *room)
{
	struct stat st;
	int copy = -ETIMEDOUT;

	if (!sp_patience_is_place(fd))
		return fd;
	if (sp_patience_stat(fd, "", &st) == 0 && st.st_size > 0 &&
	    (uint64_t)st.st_size <= room->bytes)
		copy = sp_served_copy(fd, st.st_size, room->until_ns, NULL);
	if (copy >= 0)
		room->bytes -= (uint64_t)st.st_size;
	close(fd);
	return copy;
}

/* ---- of files that are named ---- */

#define NAMED_NS 30000000000ull
#define EACH_NS  60000000000ull /* a minute */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock: since when it is so. */
static struct {
	uint64_t begin_ns, used_ns, used_bytes;
} named;

struct sp_served_room sp_served_room_named(void)
{
	const uint64_t now_ns = sp_clock_ns();
	struct sp_served_room room = {.bytes = COPIES_BYTES,
				      .until_ns = now_ns + NAMED_NS};

	pthread_mutex_lock(&lock);
	if (!named.begin_ns || now_ns - named.begin_ns > EACH_NS) {
		named.begin_ns = now_ns;
		named.used_ns = named.used_bytes = 0;
	}
	room.bytes -=
		named.used_bytes < room.bytes ? named.used_bytes : room.bytes;
	room.until_ns -= named.used_ns < NAMED_NS ? named.used_ns : NAMED_NS;
	pthread_mutex_unlock(&lock);
	return room;
}

void sp_served_use_named(uint64_t since_ns, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	named.used_ns += sp_clock_ns() - since_ns;
	named.used_bytes += bytes;
	pthread_mutex_unlock(&lock);
}
