/* SPDX-License-Identifier: MIT */
#include "agent/file/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "agent/sys/diag.h"
#include "agent/sys/sys.h"
#include "format/layout.h"

#include "agent/sys/poison.h"

#define DEFAULT_NAME "%e.%p.sprof"
#define SUFFIX       ".sprof"
#define TRIES        1000u
#define SHARE_MIN    (64u << 20) /* of a disk's room; the file is sparse */
#define ROOM_MIN     (16u << 20) /* more than one page can make any need */

static char pattern_path[SP_OUTFILE_PATH_MAX];
static char program_name[64];
static char host_name[65];
static uint64_t start_time;
static char file_name[SP_OUTFILE_PATH_MAX];
static dev_t file_device; /* with the inode: which file has that name */
static ino_t file_inode;
static bool is_in_memory;
static bool has_populate; /* MADV_POPULATE_WRITE; else touch_page() */
static bool moves_once;   /* see sp_outfile_may_be_slow */
static _Atomic bool is_sandboxed;
static _Atomic bool has_room; /* as last seen */

/* A string under construction; `full` once something did not fit. */
struct builder {
	char *buf;
	size_t size;
	size_t at;
	bool full;
};

static void put_char(struct builder *b, char c)
{
	if (b->at + 1 >= b->size) {
		b->full = true;
		return;
	}
	b->buf[b->at++] = c;
	b->buf[b->at] = '\0';
}

static void put_text(struct builder *b, const char *text)
{
	while (*text)
		put_char(b, *text++);
}

static void put_number(struct builder *b, uint64_t v)
{
	char digits[24];

	put_text(b, sp_diag_decimal(digits, v));
}

/* A name that goes into a file name: no slash, no control character, no leading
 * dot. */
static void copy_safe(char *to, size_t size, const char *from)
{
	size_t i;

	for (i = 0; from[i] && i + 1 < size; i++) {
		unsigned char c = (unsigned char)from[i];

		to[i] = c <= 0x20 || c == 0x7f || c == '/' ? '_' : from[i];
	}
	to[i] = '\0';
	if (to[0] == '.')
		to[0] = '_';
}

static bool is_directory(const char *path)
{
	struct stat st;

	return SP_SYS4(newfstatat, AT_FDCWD, path, &st, 0) == 0 &&
	       S_ISDIR(st.st_mode);
}

bool sp_outfile_prepare(const char *pattern, const char *exe_path,
			const char *host, uint64_t start_unix_s)
{
	struct builder b = {pattern_path, sizeof(pattern_path), 0, false};
	const char *slash = strrchr(exe_path, '/');

	copy_safe(program_name, sizeof(program_name),
		  slash ? slash + 1 : exe_path);
	copy_safe(host_name, sizeof(host_name), host);
	start_time = start_unix_s;
	pattern_path[0] = '\0';
	if (pattern[0] != '/') {
		char cwd[SP_OUTFILE_PATH_MAX];

		if (SP_SYS2(getcwd, cwd, sizeof(cwd)) <= 0)
			return false;
		/* A percent sign in the directory is no conversion. */
		for (const char *p = cwd; *p; p++) {
			if (*p == '%')
				put_char(&b, '%');
			put_char(&b, *p);
		}
		put_char(&b, '/');
	}
	put_text(&b, pattern);
	if (pattern[strlen(pattern) - 1] == '/') {
		put_text(&b, DEFAULT_NAME);
	} else if (is_directory(pattern)) {
		put_char(&b, '/');
		put_text(&b, DEFAULT_NAME);
	}
	return !b.full;
}

/* Where a sequence number goes if the name is taken and has no %n. */
static size_t suffix_at(const char *name)
{
	size_t n = strlen(name), m = sizeof(SUFFIX) - 1;

	if (n > m && memcmp(name + n - m, SUFFIX, m) == 0)
		return n - m;
	return n;
}

static bool expand_name(char *out, size_t size, uint64_t pid,
			unsigned int sequence)
{
	struct builder b = {out, size, 0, false};
	bool has_sequence = false;

	out[0] = '\0';
	for (const char *p = pattern_path; *p; p++) {
		if (*p != '%' || !p[1]) {
			put_char(&b, *p);
			continue;
		}
		switch (*++p) {
		case 'e':
			put_text(&b, program_name);
			break;
		case 'p':
			put_number(&b, pid);
			break;
		case 't':
			put_number(&b, start_time);
			break;
		case 'h':
			put_text(&b, host_name);
			break;
		case 'n':
			put_number(&b, sequence);
			has_sequence = true;
			break;
		case '%':
			put_char(&b, '%');
			break;
		default:
			put_char(&b, '%');
			put_char(&b, *p);
		}
	}
	if (sequence && !has_sequence && !b.full) {
		char tail[sizeof(SUFFIX)] = "";
		size_t at = suffix_at(out);

		strcpy(tail, out + at);
		b.at = at;
		put_char(&b, '.');
		put_number(&b, sequence);
		put_text(&b, tail);
	}
	return !b.full;
}

/* Is file_name the profile of what this process was before it executed another
 * program?  That has ended: nobody writes to it. */
static bool is_predecessors(uint64_t pid, uint64_t start_ticks)
{
	struct sp_file_header h;
	long n, fd = SP_SYS4(openat, AT_FDCWD, file_name,
			     O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0);

	if (fd < 0)
		return false;
	n = SP_SYS3(read, fd, &h, sizeof(h));
	SP_SYS1(close, fd);
	return n == (long)sizeof(h) &&
	       memcmp(h.magic, SP_FORMAT_MAGIC, SP_FORMAT_MAGIC_BYTES) == 0 &&
	       h.pid == pid && h.process_start_ticks == start_ticks;
}

/* The program that a process executes last has the name, and those before it
 * the numbers: they are wrappers mostly. */
static void give_way(uint64_t pid, uint64_t start_ticks)
{
	static char to[SP_OUTFILE_PATH_MAX];
	long err = -EEXIST;

	if (!start_ticks ||
	    !expand_name(file_name, sizeof(file_name), pid, 0) ||
	    !is_predecessors(pid, start_ticks))
		return;
	for (unsigned int n = 1; n < TRIES && err == -EEXIST; n++)
		if (expand_name(to, sizeof(to), pid, n))
			err = sp_syscall(SYS_renameat2, AT_FDCWD,
					 (long)file_name, AT_FDCWD, (long)to,
					 RENAME_NOREPLACE, 0);
}

/* Exclusively, without following a link, without waiting on a pipe. */
static long open_new(uint64_t pid, uint64_t start_ticks)
{
	long fd = -EEXIST;

	give_way(pid, start_ticks);
	for (unsigned int n = 0; n < TRIES && fd == -EEXIST; n++) {
		if (!expand_name(file_name, sizeof(file_name), pid, n))
			return -ENAMETOOLONG;
		fd = SP_SYS4(openat, AT_FDCWD, file_name,
			     O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW |
				     O_CLOEXEC | O_NONBLOCK,
			     0600);
	}
	return fd;
}

/*
 * Does a page that is stored to again, after it was written out, stay in its
 * place?  A file system that copies on write looks for a new one, and if the
 * disk is full by then, the store is a SIGBUS: btrfs always, unless it is told
 * not to do so for this file (and since Linux 6.17 bears that in mind), XFS for
 * what a copy of the file shares.  Others may be stacked upon such.
 */
static bool moves_file(int fd, const struct statfs *fs)
{
	int flags = FS_NOCOW_FL;

	if (fs->f_type == BTRFS_SUPER_MAGIC)
		SP_SYS3(ioctl, fd, FS_IOC_SETFLAGS, &flags);
	return fs->f_type != EXT4_SUPER_MAGIC && fs->f_type != TMPFS_MAGIC;
}

static uint64_t room_of(const struct statfs *fs)
{
	return (uint64_t)fs->f_bavail * (uint64_t)fs->f_bsize;
}

/* The limit, or less, as the disk has it. */
static void ask_disk(int fd, uint32_t room_share, struct sp_outfile *ret)
{
	struct statfs fs;
	uint64_t room;

	ret->moves = true;
	moves_once = false;
	atomic_store(&has_room, false);
	if (SP_SYS2(fstatfs, fd, &fs))
		return;
	atomic_store(&has_room, room_of(&fs) >= ROOM_MIN);
	ret->moves = moves_file(fd, &fs);
	/* While it is not clear that the end can be told. */
	if (ret->moves && !atomic_load(&has_room))
		sp_diag_lose(SP_LOSS_PAGE, 1);
	moves_once = fs.f_type == XFS_SUPER_MAGIC;
	is_in_memory = fs.f_type == TMPFS_MAGIC;
	if (!room_share)
		return;
	room = room_of(&fs) / room_share;
	if (room < SHARE_MIN)
		room = SHARE_MIN;
	if (room < ret->limit)
		ret->limit = room & ~65535ull;
}

/* As large as the file system allows: some have a limit of 4 GiB. */
static long set_size(int fd, struct sp_outfile *ret)
{
	long err;

	do {
		if (ret->limit < 2 * 65536)
			return -EFBIG;
		err = SP_SYS2(ftruncate, fd, ret->limit);
		if (err == -EFBIG || err == -EINVAL)
			ret->limit = ret->limit / 2 & ~65535ull;
	} while (err == -EFBIG || err == -EINVAL);
	return err;
}

static long size_and_map(int fd, uint32_t room_share, uint64_t window,
			 struct sp_outfile *ret)
{
	struct rlimit limit;
	struct stat st;
	long err = SP_SYS2(fstat, fd, &st);

	if (err)
		return err;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	file_device = st.st_dev;
	file_inode = st.st_ino;
	/* Beyond RLIMIT_FSIZE the kernel would send SIGXFSZ to the program. */
	if (SP_SYS4(prlimit64, 0, RLIMIT_FSIZE, 0, &limit) == 0 &&
	    limit.rlim_cur < ret->limit)
		ret->limit = limit.rlim_cur & ~65535ull;
	ask_disk(fd, room_share, ret);
	err = set_size(fd, ret);
	if (err)
		return err;
	ret->mapped = window < ret->limit ? window : ret->limit;
	err = sp_sys_map_file(fd, ret->mapped);
	if (err < 0 && err > -4096)
		return err;
	ret->base = (uint8_t *)err;
	/* Touching a page of the hole would read ahead into it: megabytes of
	 * zeros, a millisecond.  Second mappings inherit this. */
	SP_SYS3(madvise, ret->base, ret->mapped, MADV_RANDOM);
	return 0;
}

int sp_outfile_create(uint64_t pid, uint64_t start_ticks,
		      const struct sp_outfile_limit *limit, uint64_t window,
		      struct sp_outfile *ret)
{
	long fd = open_new(pid, start_ticks);
	long err;

	if (fd < 0) {
		file_name[0] = '\0';
		return (int)fd;
	}
	ret->limit = limit->bytes;
	err = size_and_map((int)fd, limit->room_share, window, ret);
	SP_SYS1(close, fd);
	if (err)
		sp_outfile_discard();
	return (int)err;
}

void sp_outfile_discard(void)
{
	SP_SYS3(unlinkat, AT_FDCWD, file_name, 0);
	file_name[0] = '\0';
}

/* The program may have another root directory by now, or the file another name.
 */
static bool is_the_file(const struct stat *st)
{
	return st->st_dev == file_device && st->st_ino == file_inode;
}

void sp_outfile_shorten(uint64_t bytes)
{
	struct stat st;
	long fd = SP_SYS4(openat, AT_FDCWD, file_name,
			  O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0);

	if (fd < 0)
		return;
	if (SP_SYS2(fstat, fd, &st) == 0 && is_the_file(&st) &&
	    (uint64_t)st.st_size > bytes)
		SP_SYS2(ftruncate, fd, bytes);
	SP_SYS1(close, fd);
}

void sp_outfile_keep_from_children(uint8_t *at, uint64_t bytes)
{
	SP_SYS3(madvise, at, bytes, MADV_DONTFORK);
}

uint8_t *sp_outfile_map_more(uint8_t *at, uint64_t bytes)
{
	/* An old size of zero makes a second mapping of the same pages; shared
	 * mappings allow it, and no descriptor is needed. */
	long p = SP_SYS4(mremap, at, 0, bytes, MREMAP_MAYMOVE);

	if (p < 0 && p > -4096)
		return NULL;
	SP_SYS3(madvise, p, bytes, MADV_DONTFORK);
	sp_sys_hide((const void *)p, bytes);
	return (uint8_t *)p;
}

/*
 * What MADV_POPULATE_WRITE does, before Linux 5.14: add 0 to a word of each
 * page, in the kernel, which brings the page in for that and fails with EFAULT
 * where a store of ours would be a signal.  Nobody waits for these futexes, and
 * nobody is woken.
 */
static long touch_page(uint8_t *at, uint64_t bytes)
{
	const long add_zero = FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0);
	long err = 0;

	for (uint64_t i = 0; i < bytes && err >= 0; i += SP_FORMAT_PAGE_BYTES)
		err = sp_syscall(SYS_futex, (long)(at + i),
				 FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0,
				 (long)(at + i), add_zero);
	return err < 0 ? err : 0;
}

/* All pages that have any of it: the file's own may be smaller. */
static long populate_pages(uint8_t *at, uint64_t bytes)
{
	const uint64_t before = (uintptr_t)at % sp_sys_page_bytes();

	at -= before;
	bytes += before;
	return has_populate ? SP_SYS3(madvise, at, bytes, MADV_POPULATE_WRITE)
			    : touch_page(at, bytes);
}

int sp_outfile_begin(uint8_t *at, uint64_t bytes)
{
	long err;

	has_populate = true;
	err = populate_pages(at, bytes);
	if (err == -EINVAL || err == -ENOSYS || err == -EPERM) {
		has_populate = false;
		err = populate_pages(at, bytes);
		if (err == -ENOSYS || err == -EPERM || err == -EINVAL)
			return -EOPNOTSUPP;
	}
	return err == -EFAULT ? -ENOSPC : (int)err;
}

bool sp_outfile_populate(uint8_t *at, uint64_t bytes)
{
	return populate_pages(at, bytes) == 0;
}

void sp_outfile_release(uint8_t *at, uint64_t bytes)
{
	SP_SYS3(madvise, at, bytes, MADV_DONTNEED);
}

bool sp_outfile_hold(uint8_t *at, uint64_t bytes)
{
	return populate_pages(at, bytes) != -EFAULT;
}

void sp_outfile_enter_sandbox(void)
{
	atomic_store(&is_sandboxed, true);
}

bool sp_outfile_may_be_slow(void)
{
	struct stat st;
	struct statfs fs;

	if (moves_once)
		return true;
	if (!atomic_load(&is_sandboxed) &&
	    SP_SYS4(newfstatat, AT_FDCWD, file_name, &st,
		    AT_SYMLINK_NOFOLLOW) == 0 &&
	    is_the_file(&st) && SP_SYS2(statfs, file_name, &fs) == 0)
		atomic_store(&has_room, room_of(&fs) >= ROOM_MIN);
	return atomic_load(&has_room);
}

bool sp_outfile_is_in_memory(void)
{
	return is_in_memory;
}

const char *sp_outfile_pattern(void)
{
	return pattern_path;
}

const char *sp_outfile_name(void)
{
	return file_name;
}
