/* SPDX-License-Identifier: MIT */
#include "agent/sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "agent/sys/linkmap.h"

#include "agent/sys/poison.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18 /* Linux 4.14 */
#endif

/* What valgrind's headers call RUNNING_ON_VALGRIND, HG_ARANGE_MAKE_UNTRACKED,
 * DRD_START_SUPPRESSION and, of 1 or -1, VALGRIND_DISABLE_ERROR_REPORTING. */
#define IS_VALGRIND   0x1001u
#define SILENCE       0x1801u
#define HELGRIND_HIDE 0x48470127u
#define DRD_HIDE      0x44520002u

#define HUGE_BYTES ((size_t)2 << 20)
#define WIPED_MAX  256u
#define RANGES_MAX 512u

size_t sp_sys_page_bytes(void)
{
	return getauxval(AT_PAGESZ);
}

size_t sp_sys_piece_bytes(void)
{
	const size_t page = sp_sys_page_bytes();

	return page > 16384 ? page : 16384;
}

static void *checked_address(long address)
{
	return address < 0 && address > -4096 ? NULL : (void *)address;
}

static void *map_pages(size_t bytes)
{
	return checked_address(sp_syscall(SYS_mmap, 0, (long)bytes,
					  PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

/* Mapped with room to spare, which goes back. */
static void *map_huge(size_t bytes)
{
	char *p = map_pages(bytes + HUGE_BYTES), *start;
	size_t before;

	if (!p)
		return NULL;
	before = -(uintptr_t)p % HUGE_BYTES;
	start = p + before;
	if (before)
		SP_SYS2(munmap, p, before);
	SP_SYS2(munmap, start + bytes, HUGE_BYTES - before);
	SP_SYS3(madvise, start, bytes, MADV_HUGEPAGE);
	return start;
}

static void *map_small(size_t bytes)
{
	void *p = map_pages(bytes);

	if (p)
		SP_SYS3(madvise, p, bytes, MADV_NOHUGEPAGE);
	return p;
}

/* ---- valgrind ---- */

/* 0: there is no race detector. */
static uint64_t hide_request;

bool sp_sys_is_valgrind(void)
{
	return sp_arch_ask_valgrind((uint64_t[6]){IS_VALGRIND});
}

/* Another tool of valgrind would complain about the request. */
void sp_sys_find_detector(void)
{
	const struct link_map *map = sp_linkmap_first();

	for (; map && sp_sys_is_valgrind(); map = map->l_next) {
		const char *slash = strrchr(map->l_name, '/');
		const char *name = slash ? slash + 1 : "";

		if (strncmp(name, "vgpreload_helgrind", 18) == 0)
			hide_request = HELGRIND_HIDE;
		else if (strncmp(name, "vgpreload_drd", 13) == 0)
			hide_request = DRD_HIDE;
	}
}

void sp_sys_hide(const void *p, size_t bytes)
{
	if (hide_request)
		sp_arch_ask_valgrind(
			(uint64_t[6]){hide_request, (uintptr_t)p, bytes});
}

/* ---- our memory ---- */

/* An entry belongs to the thread that set its start; it counts once it has
 * bytes. */
static struct sp_control_range ranges[RANGES_MAX];

static void *note_range(void *p, size_t bytes)
{
	if (p)
		sp_sys_hide(p, bytes);
	for (unsigned int i = 0; p && i < RANGES_MAX; i++) {
		uint64_t none = 0;

		if (!__atomic_compare_exchange_n(
			    &ranges[i].start, &none, (uintptr_t)p, false,
			    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&ranges[i].bytes, bytes, __ATOMIC_RELEASE);
		break;
	}
	return p;
}

/* Before the memory goes back: another thread may get it at once. */
static void forget_range(const void *p)
{
	for (unsigned int i = 0; i < RANGES_MAX; i++) {
		if (__atomic_load_n(&ranges[i].start, __ATOMIC_RELAXED) !=
		    (uintptr_t)p)
			continue;
		__atomic_store_n(&ranges[i].bytes, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&ranges[i].start, 0, __ATOMIC_RELEASE);
		break;
	}
}

const struct sp_control_range *sp_sys_ranges(uint64_t *ret_n)
{
	*ret_n = RANGES_MAX;
	return ranges;
}

static size_t whole_pages(size_t bytes)
{
	return (bytes + sp_sys_page_bytes() - 1) & -sp_sys_page_bytes();
}

/* How much may still be mapped; ROOM_NO_LIMIT stays. */
#define ROOM_NO_LIMIT SIZE_MAX
static _Atomic size_t room = ROOM_NO_LIMIT;

void sp_sys_limit_room(size_t bytes)
{
	atomic_store(&room, bytes);
}

static bool take_room(size_t bytes)
{
	size_t now = atomic_load(&room);

	do
		if (now == ROOM_NO_LIMIT || bytes > now)
			return now == ROOM_NO_LIMIT;
	while (!atomic_compare_exchange_weak(&room, &now, now - bytes));
	return true;
}

static void give_room(size_t bytes)
{
	if (atomic_load(&room) != ROOM_NO_LIMIT)
		atomic_fetch_add(&room, bytes);
}

static void *map_noted(size_t bytes, void *(*map)(size_t bytes))
{
	void *p;

	bytes = whole_pages(bytes);
	if (!take_room(bytes))
		return NULL;
	p = map(bytes);
	if (!p)
		give_room(bytes);
	return note_range(p, bytes);
}

void *sp_sys_map(size_t bytes)
{
	return map_noted(bytes, bytes >= HUGE_BYTES ? map_huge : map_small);
}

void sp_sys_unmap(void *p, size_t bytes)
{
	forget_range(p);
	SP_SYS2(munmap, p, bytes);
	give_room(whole_pages(bytes));
}

static void *map_wiped(size_t bytes)
{
	void *p = map_small(bytes);

	if (p && SP_SYS3(madvise, p, bytes, MADV_WIPEONFORK) < 0) {
		SP_SYS2(munmap, p, bytes);
		return NULL;
	}
	return p;
}

void *sp_sys_map_wiped(size_t bytes)
{
	return map_noted(bytes, map_wiped);
}

/* More than there are uses of sp_map_once. */
static struct {
	_Atomic(void *) start;
	size_t bytes;
} wiped[WIPED_MAX];
static _Atomic unsigned int n_wiped;

void sp_sys_note_wiped(void *p, size_t bytes)
{
	const unsigned int i = atomic_fetch_add(&n_wiped, 1);

	if (i >= WIPED_MAX)
		return;
	wiped[i].bytes = bytes;
	atomic_store(&wiped[i].start, p);
}

void sp_sys_wipe(void)
{
	for (unsigned int i = 0; i < WIPED_MAX; i++) {
		void *start = atomic_load(&wiped[i].start);

		if (start)
			SP_SYS3(madvise, start, wiped[i].bytes, MADV_DONTNEED);
	}
}

long sp_sys_map_file(int fd, size_t bytes)
{
	const long at = sp_syscall(SYS_mmap, 0, (long)bytes,
				   PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (checked_address(at))
		sp_sys_hide((const void *)at, bytes);
	return at;
}

long sp_sys_read_file(const char *path, char *buf, size_t size)
{
	long fd = SP_SYS4(openat, AT_FDCWD, path,
			  O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	size_t have = 0;
	long n;

	if (fd < 0)
		return fd;
	while (have < size - 1) {
		n = SP_SYS3(read, fd, buf + have, size - 1 - have);
		if (n <= 0)
			break;
		have += (size_t)n;
	}
	SP_SYS1(close, fd);
	buf[have] = '\0';
	return (long)have;
}

/* Of the process and its children: they keep the system call filter, too. */
static atomic_bool forbids_files;

void sp_sys_forbid_files(void)
{
	atomic_store(&forbids_files, true);
}

bool sp_sys_forbids_files(void)
{
	return atomic_load(&forbids_files);
}

bool sp_sys_block_signals(uint64_t *ret_before)
{
	const uint64_t all = UINT64_MAX;

	return SP_SYS4(rt_sigprocmask, SIG_BLOCK, &all, ret_before,
		       sizeof(all)) == 0;
}

void sp_sys_restore_signals(uint64_t before)
{
	SP_SYS4(rt_sigprocmask, SIG_SETMASK, &before, 0, sizeof(before));
}

/* For a requeue of no waiters, which compares first.  valgrind would report a
 * word that nobody has written, or that is on no stack any more. */
long sp_sys_look(uintptr_t word, uint32_t value)
{
	static const uint64_t silence[6] = {SILENCE, 1};
	static const uint64_t no_silence[6] = {SILENCE, UINT64_MAX};
	static int nobody;
	long ret;

	sp_arch_ask_valgrind(silence);
	ret = sp_syscall(SYS_futex, (long)word, FUTEX_CMP_REQUEUE_PRIVATE, 0, 0,
			 (long)&nobody, value);
	sp_arch_ask_valgrind(no_silence);
	return ret;
}

int sp_sys_compare(const volatile uint32_t *word, uint32_t value)
{
	const long ret = sp_sys_look((uintptr_t)word, value);

	return ret == -EAGAIN || ret == -EFAULT ? 1 : (int)ret;
}
