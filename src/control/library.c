/* SPDX-License-Identifier: MIT */
/*
 * The process may belong to another user, who wants root to write to a file
 * that this user chooses, or to call what is not the library.
 *
 * I1  Only a file is written to that is proved to be an empty memory file, or
 *     that we have created where its user may create one too.
 * I2  A memory file is sealed, and read after that: its content is the library.
 * I3  A function is called only in a mapping of that very file, or where the
 *     process has the library's very code.
 */
#include "control/library.h"

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

#include "control/inside.h"
#include "base/patience.h"
#include "base/proc.h"
#include "base/regular.h"
#include "base/served.h"
#include "control/dynsym.h"
#include "format/attach.h"

#define NAME "libsampleprof.so" /* as /proc/PID/maps shows it */

/* No processor has smaller pages. */
#define PAGE_BYTES_MIN 4096

static int map_library(struct sp_library *library)
{
	int fd = open(library->path, O_RDONLY | O_CLOEXEC);
	struct stat st = {.st_size = 0};
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
	library->entries =
		elf && sp_dynsym_find(elf, SP_ATTACH_LIST, STT_OBJECT, &symbol)
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

/* Has the file these bytes, and no others? */
static bool is_library(int fd, const struct sp_library *library)
{
	char part[PAGE_BYTES_MIN];
	struct stat st;
	size_t done = 0;

	if (fstat(fd, &st) != 0 || (size_t)st.st_size != library->n)
		return false;
	while (done < library->n) {
		ssize_t n = pread(fd, part, sizeof(part), (off_t)done);

		if (n <= 0 || memcmp(part, (const char *)library->bytes + done,
				     (size_t)n) != 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

/* What maps shows for the file, which may have another device than fstat shows
 * (overlayfs, btrfs). */
static bool identify_file(int fd, struct sp_proc_file *ret)
{
	return sp_proc_name_file(fd, ret) == 0;
}

/* ---- a memory file ---- */

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)
/* F_SEAL_EXEC, which the file has from the start by a setting of the system
 * (vm.memfd_noexec). */
#define SEAL_AT_START 0x20

/*
 * 0: it is an empty memory file without seals.  All of these are on one device,
 * have no name, and can be written by whoever has a descriptor of them: nothing
 * is written that the process could not write itself.  -EBADF: it is not; or
 * -errno: we can have none to compare it with.
 */
static int check_memory_file(int found)
{
	int own = memfd_create("", MFD_CLOEXEC);
	struct stat st, own_st;
	bool is_one;

	if (own < 0)
		return -errno;
	/* Only of one on that device the rest is asked: nobody serves it. */
	is_one = fstat(own, &own_st) == 0 &&
		 sp_patience_know(found, &st) == 0 && S_ISREG(st.st_mode) &&
		 st.st_dev == own_st.st_dev && fstat(found, &st) == 0 &&
		 st.st_nlink == 0 && st.st_size == 0 &&
		 (st.st_mode & 0666) == 0666;
	close(own);
	return is_one ? 0 : -EBADF;
}

/* Write the library and let nobody change it any more.  A process that has
 * mapped the file for writing prevents the seals. */
static bool write_sealed(int fd, const struct sp_library *library,
			 struct sp_library_there *there)
{
	return !(fcntl(fd, F_GET_SEALS) & ~SEAL_AT_START) &&
	       write_library(fd, library) &&
	       fcntl(fd, F_ADD_SEALS, SEALS) == 0 && is_library(fd, library) &&
	       identify_file(fd, &there->file);
}

/* Copy the library into the thread's memory file there->fd: 0, or a negative
 * errno; -EBADF: it is no such file, or was changed meanwhile. */
static int fill_memory_file(const struct sp_library *library,
			    const struct sp_tracee *t,
			    struct sp_library_there *there)
{
	char path[80];
	int found, fd, r;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/%d", t->pid, t->tid,
		 there->fd);
	found = open(path, O_PATH | O_CLOEXEC);
	if (found < 0)
		return -errno;
	r = check_memory_file(found);
	if (r == 0) {
		fd = sp_regular_reopen(found, O_RDWR);
		r = fd < 0 ? fd : write_sealed(fd, library, there) ? 0 : -EBADF;
		if (fd >= 0)
			close(fd);
	}
	close(found);
	return r;
}

/* The descriptor in the process, or a negative errno. */
static long make_memory_file(struct sp_tracee *t, uint64_t scratch)
{
	const uint64_t args[6] = {scratch, MFD_CLOEXEC | MFD_ALLOW_SEALING};

	if (!sp_tracee_write(t, scratch, NAME, sizeof(NAME)))
		return -EIO;
	return sp_tracee_syscall(t, SYS_memfd_create, args);
}

/* ---- the process's files ---- */

/* True if the process can open its descriptors by a path. */
static bool has_proc(pid_t pid)
{
	struct sp_proc_identity identity;
	char path[64];
	int fd;

	if (!sp_proc_identify((uint64_t)pid, &identity))
		return false;
	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/fd", identity.own_pid);
	fd = sp_inside_look(pid, path);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* May the user of the process create files in the directory, and no process
 * answers for it? */
static bool may_create(pid_t pid, int folder)
{
	struct sp_proc_identity identity;
	const int dir = sp_proc_open((uint64_t)pid);
	const bool is_served = sp_served_is(dir, folder);
	struct stat st;

	if (dir >= 0)
		close(dir);
	return !is_served && sp_patience_stat(folder, "", &st) == 0 &&
	       S_ISDIR(st.st_mode) &&
	       (st.st_mode & S_IWOTH ||
		(sp_proc_identify((uint64_t)pid, &identity) &&
		 st.st_uid == identity.uids[3]));
}

/*
 * Without /proc a memory file has no path.  Then the library goes into a hidden
 * file in the process's /tmp, until it is loaded: only where its user may
 * create files too, since the process decides which directory that is.
 */
static int copy_library(const struct sp_library *library, pid_t pid,
			struct sp_library_there *there)
{
	int folder = sp_inside_find(pid, "/tmp"), fd;
	const char *name = there->path + strlen("/tmp/");
	bool ok;

	if (folder < 0)
		return folder;
	snprintf(there->path, sizeof(there->path), "/tmp/." NAME ".%d", pid);
	fd = may_create(pid, folder) ? openat(folder, name,
					      O_RDWR | O_CREAT | O_EXCL |
						      O_CLOEXEC | O_NOFOLLOW,
					      0600)
				     : -1;
	if (fd < 0) {
		close(folder);
		return -EACCES;
	}
	there->folder = folder;
	ok = fchmod(fd, 0755) == 0 && write_library(fd, library) &&
	     identify_file(fd, &there->file);
	close(fd);
	if (!ok)
		sp_library_clean_up(there);
	return ok ? 0 : -EIO;
}

/* Our own path works only if the process sees the same file there. */
static int use_own_path(const struct sp_library *library, pid_t pid,
			struct sp_library_there *there)
{
	int own = open(library->path, O_RDONLY | O_CLOEXEC);
	int its = sp_inside_look(pid, library->path);
	struct stat own_st, its_st;
	bool ok = own >= 0 && its >= 0 && sp_patience_know(own, &own_st) == 0 &&
		  sp_patience_know(its, &its_st) == 0 &&
		  own_st.st_dev == its_st.st_dev &&
		  own_st.st_ino == its_st.st_ino &&
		  identify_file(own, &there->file);

	if (own >= 0)
		close(own);
	if (its >= 0)
		close(its);
	memcpy(there->path, library->path, sizeof(there->path));
	return ok ? 0 : -EACCES;
}

void sp_library_clean_up(struct sp_library_there *there)
{
	if (there->folder < 0)
		return;
	unlinkat(there->folder, there->path + strlen("/tmp/"), 0);
	close(there->folder);
	there->folder = -1;
}

/* `made`: why there is no memory file that it can open by a path. */
static int fail_copy(pid_t pid, int made, int r, struct sp_error *err)
{
	char why[96] = "has no /proc in its root directory";

	if (made != -ENOENT)
		snprintf(why, sizeof(why), "cannot make a file in memory (%s)",
			 strerror(-made));
	if (r == -ENOSYS)
		return sp_error_set(err, r, NULL,
				    "process %d %s, and this kernel (before "
				    "Linux 5.6) has no safe way to its /tmp: "
				    "start it under sampleprof run",
				    pid, why);
	return sp_error_set(err, r, NULL,
			    "process %d %s, and no /tmp that its user may "
			    "write to, for the library: give it one of both",
			    pid, why);
}

int sp_library_hand_over(const struct sp_library *library, struct sp_tracee *t,
			 uint64_t scratch, struct sp_library_there *ret,
			 struct sp_error *err)
{
	long fd = has_proc(t->tid) ? make_memory_file(t, scratch) : -ENOENT;
	int made, r;

	*ret = (struct sp_library_there){.fd = fd < 0 ? -1 : (int)fd,
					 .folder = -1};
	/* No system call gives that here: its thread has gone meanwhile. */
	if (fd == -EIO)
		return sp_error_set(err, -EIO, NULL,
				    "process %d has ended during a system call",
				    t->pid);
	made = fd < 0 ? (int)fd : fill_memory_file(library, t, ret);
	if (made == -EBADF)
		return sp_error_set(err, made, NULL,
				    "process %d has changed the file that the "
				    "library was being written to: it may be "
				    "hostile; nothing of it is loaded",
				    t->pid);
	/* The loader knows objects by their paths: the program may have loaded
	 * another one by /proc/self/fd. */
	if (made == 0) {
		snprintf(ret->path, sizeof(ret->path),
			 "/proc/thread-self/fd/%ld", fd);
		return 0;
	}
	r = copy_library(library, t->tid, ret);
	return r == 0 || use_own_path(library, t->tid, ret) == 0
		       ? 0
		       : fail_copy(t->pid, made, r, err);
}

static struct sp_proc_lines mappings_of(pid_t pid)
{
	const int dir = sp_proc_open((uint64_t)pid);
	struct sp_proc_lines l = {.in = dir < 0 ? NULL
						: sp_proc_stream(dir, "maps")};

	if (dir >= 0)
		close(dir);
	return l;
}

/* Of those that have our name; its path is there until the next one. */
static bool next_mapping(struct sp_proc_lines *l, struct sp_proc_map *ret)
{
	while (sp_proc_next_map(l, ret))
		if (strstr(ret->path, NAME))
			return true;
	return false;
}

uint64_t sp_library_find(const struct sp_library *library, pid_t pid,
			 struct sp_library_there *there)
{
	struct sp_proc_lines l = mappings_of(pid);
	uint64_t function = 0;
	struct sp_proc_map m;

	while (!function && next_mapping(&l, &m)) {
		if (m.offset || !sp_proc_is_file(&m.file, &there->file))
			continue;
		there->start = m.start;
		function = m.start + library->function;
	}
	sp_proc_end_lines(&l);
	return function;
}

/* Is the mapping code of the library, byte by byte, and has it that address? */
static bool has_our_code(const struct sp_library *library, pid_t pid,
			 const struct sp_proc_map *m, uint64_t function)
{
	char part[PAGE_BYTES_MIN];
	uint64_t n = m->end - m->start;

	if (m->mode[2] != 'x' || m->offset > library->n)
		return false;
	if (n > library->n - m->offset)
		n = library->n - m->offset;
	for (uint64_t at = 0; at < n; at += sizeof(part)) {
		const size_t size =
			n - at < sizeof(part) ? n - at : sizeof(part);

		if (!sp_tracee_read(pid, m->start + at, part, size) ||
		    memcmp(part, (const char *)library->bytes + m->offset + at,
			   size) != 0)
			return false;
	}
	return function >= m->start && function - m->start < n;
}

uint64_t sp_library_find_late(const struct sp_library *library, pid_t pid)
{
	struct sp_proc_lines l = mappings_of(pid);
	struct sp_proc_file file = {0};
	uint64_t start = 0, function = 0;
	struct sp_proc_map m;

	while (!function && next_mapping(&l, &m)) {
		if (!m.offset) {
			start = m.start;
			file = m.file;
		} else if (start && sp_proc_is_file(&m.file, &file) &&
			   has_our_code(library, pid, &m,
					start + library->function)) {
			function = start + library->function;
		}
	}
	sp_proc_end_lines(&l);
	return function;
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
	    sp_patience_memory(pid, start, there, sizeof(there)) ==
		    (ssize_t)sizeof(there) &&
	    memcmp(here, there, sizeof(here)) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}
