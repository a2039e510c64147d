/* SPDX-License-Identifier: MIT */
#include "attach/library.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/dynsym.h"
#include "format/attach.h"

#define NAME "libsampleprof.so" /* as /proc/PID/maps shows it */

/* No processor has smaller pages. */
#define PAGE_BYTES_MIN 4096

static int map_library(struct sp_library *library)
{
	int fd = open(library->path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	int r = fd < 0 || fstat(fd, &st) != 0 ? -errno : 0;

	if (r == 0) {
		library->n = (size_t)st.st_size;
		library->bytes =
			mmap(NULL, library->n, PROT_READ, MAP_PRIVATE, fd, 0);
		if (library->bytes == MAP_FAILED) {
			library->bytes = NULL;
			r = -errno;
		}
	}
	if (fd >= 0)
		close(fd);
	return r;
}

int sp_library_read(struct sp_library *library, struct sp_error *err)
{
	GElf_Sym symbol;
	Elf *elf;
	int r = sp_launch_library(library->path, err);

	if (r < 0)
		return r;
	r = map_library(library);
	if (r < 0)
		return sp_error_set(err, r, library->path, "cannot be read: %s",
				    strerror(-r));
	elf_version(EV_CURRENT);
	elf = elf_memory(library->bytes, library->n);
	library->function = elf && sp_dynsym_find(elf, SP_ATTACH_FUNCTION,
						  STT_FUNC, &symbol)
				    ? symbol.st_value
				    : 0;
	elf_end(elf);
	return library->function ? 0
				 : sp_error_set(err, -ENOEXEC, library->path,
						"is of another version than "
						"this command: install both "
						"from the same version");
}

void sp_library_free(struct sp_library *library)
{
	if (library->bytes)
		munmap(library->bytes, library->n);
}

static bool write_library(int fd, const struct sp_library *library)
{
	size_t done = 0;

	while (done < library->n) {
		ssize_t n = write(fd, (const char *)library->bytes + done,
				  library->n - done);

		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

/* Copy the library into the process's memory file there->fd. */
static bool fill_memory_file(const struct sp_library *library, pid_t pid,
			     struct sp_library_there *there)
{
	char path[64];
	struct stat st;
	bool ok;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, there->fd);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ok = write_library(fd, library);
	there->inode = fstat(fd, &st) == 0 ? st.st_ino : 0;
	close(fd);
	return ok;
}

/* True if the process can open its descriptors by a path. */
static bool has_proc(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/root/proc/self/fd", pid);
	return access(path, F_OK) == 0;
}

/* The descriptor in the process, or a negative errno. */
static long make_memory_file(struct sp_tracee *t, uint64_t scratch)
{
	const uint64_t args[6] = {scratch, MFD_CLOEXEC};

	if (!sp_tracee_write(t, scratch, NAME, sizeof(NAME)))
		return -EIO;
	return sp_tracee_syscall(t, SYS_memfd_create, args);
}

/* Without /proc a memory file has no path.  Then the library goes into a hidden
 * file in the process's /tmp, until it is loaded. */
static bool copy_library(const struct sp_library *library, pid_t pid,
			 struct sp_library_there *there)
{
	char path[SP_LAUNCH_PATH_MAX + 64];
	struct stat st;
	int fd;

	snprintf(there->path, sizeof(there->path), "/tmp/." NAME ".%d", pid);
	snprintf(path, sizeof(path), "/proc/%d/root%s", pid, there->path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		  0600);
	if (fd < 0)
		return false;
	there->is_copy = true;
	there->inode = fstat(fd, &st) == 0 ? st.st_ino : 0;
	if (fchmod(fd, 0755) != 0 || !write_library(fd, library)) {
		unlink(path);
		there->is_copy = false;
	}
	close(fd);
	return there->is_copy;
}

void sp_library_clean_up(pid_t pid, const struct sp_library_there *there)
{
	char path[SP_LAUNCH_PATH_MAX + 64];

	if (!there->is_copy)
		return;
	snprintf(path, sizeof(path), "/proc/%d/root%s", pid, there->path);
	unlink(path);
}

void sp_library_hand_over(const struct sp_library *library, struct sp_tracee *t,
			  uint64_t scratch, struct sp_library_there *ret)
{
	long fd = has_proc(t->pid) ? make_memory_file(t, scratch) : -ENOENT;
	struct stat st;

	*ret = (struct sp_library_there){.fd = fd < 0 ? -1 : (int)fd};
	if (fd >= 0 && fill_memory_file(library, t->pid, ret)) {
		snprintf(ret->path, sizeof(ret->path), "/proc/self/fd/%ld", fd);
		return;
	}
	if (copy_library(library, t->pid, ret))
		return;
	/* The last resort works only if the process sees the same path. */
	ret->inode = stat(library->path, &st) == 0 ? st.st_ino : 0;
	memcpy(ret->path, library->path, sizeof(ret->path));
}

uint64_t sp_library_find(const struct sp_library *library, pid_t pid,
			 const struct sp_library_there *there)
{
	char name[64], *line = NULL;
	uint64_t start, offset, inode, found = 0;
	size_t room = 0;
	FILE *maps;

	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	maps = fopen(name, "re");
	while (maps && !found && getline(&line, &room, maps) > 0)
		if (sscanf(line,
			   "%" SCNx64 "-%*x %*s %" SCNx64 " %*x:%*x %" SCNu64,
			   &start, &offset, &inode) == 3 &&
		    !offset && inode == there->inode && strstr(line, NAME))
			found = start + library->function;
	free(line);
	if (maps)
		fclose(maps);
	return found;
}

/* The first page of the library has its build id, so equal pages mean the same
 * build. */
int sp_library_open_same(pid_t pid, uint64_t start, const char *name)
{
	char path[SP_LAUNCH_PATH_MAX];
	unsigned char here[PAGE_BYTES_MIN], there[PAGE_BYTES_MIN];
	int fd;

	if (!strstr(name, NAME) || sp_launch_library(path, NULL) < 0)
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 &&
	    pread(fd, here, sizeof(here), 0) == (ssize_t)sizeof(here) &&
	    sp_tracee_read(pid, start, there, sizeof(there)) &&
	    memcmp(here, there, sizeof(here)) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}
