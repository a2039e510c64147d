/* SPDX-License-Identifier: MIT */
/*
 * As libunwind comes it is not fit for a malloc hook: it takes the loader's
 * lock (dl_iterate_phdr) and its own mutexes, changes the signal mask, keeps a
 * pipe open that it reads from and writes to, probes memory with mincore and
 * msync, and gives every thread a cache of its own that costs some hundred KiB.
 *
 * All of that goes through symbols that it imports, so the imports are
 * replaced, in its own tables and nowhere else: the host's symbol bindings
 * stay as they are.  A replacement behaves specially only while its thread
 * holds a lane; the program may use the same copy of libunwind at the same
 * time and gets the original.
 *
 *   dl_iterate_phdr        answers from the agent's snapshot (modules.h)
 *   pthread_mutex_*        the mutex's lock word, waited for only for a bounded
 *                          time
 *   sigprocmask            nothing: signals may come, the code is reentrant by
 *                          the lane
 *   mincore, msync, read, syscall(write)   memory checks: only the thread's
 *                          stack counts as readable; on another one, ask futex
 *   __tls_get_addr         the lane's block, so that caches are shared by
 *                          lanes, not owned by threads
 *   malloc, open, stat ... fail
 *   abort                  unwinding is abandoned (a jump out)
 *
 * I1  A jump out may leave a lock word set; then `broken` is set and nobody
 *     enters again.
 * I2  The program's threads may be in the library while it is cut off.  So an
 *     original is kept before its slot changes, and lane and program take the
 *     same word of a mutex, by the C library's rules.  And one that is binding
 *     a slot lazily may put the original back, at any time: each walk begins
 *     with a look at the slots.
 */
#include "agent/unwinder_imports.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "agent/lane.h"
#include "agent/linkmap.h"
#include "agent/stackend.h"
#include "agent/sys.h"
#include "agent/thread.h"

#include "agent/poison.h"

#define CACHE_BYTES_MIN 65536
#define MUTEXES_MAX     16
#define SLOTS_MAX       64

/* The word of a mutex of glibc. */
enum { FREE, TAKEN, TAKEN_AND_WAITED_FOR };

static const struct link_map *library;
static _Atomic int broken;

/* What is replaced also for the program keeps its original here. */
static struct {
	int (*dl_iterate_phdr)(int (*)(struct dl_phdr_info *, size_t, void *),
			       void *);
	int (*sigprocmask)(int, const sigset_t *, sigset_t *);
	int (*mincore)(void *, size_t, unsigned char *);
	int (*msync)(void *, size_t, int);
	ssize_t (*read)(int, void *, size_t);
	ssize_t (*write)(int, const void *, size_t);
	int (*close)(int);
	int (*pipe2)(int *, int);
	int (*open)(const char *, int, ...);
	int (*stat)(const char *, struct stat *);
	int (*fstat)(int, struct stat *);
	void *(*malloc)(size_t);
	void (*free)(void *);
	void *(*mmap)(void *, size_t, int, int, int, off_t);
	int (*munmap)(void *, size_t);
	long (*syscall)(long, ...);
	int (*pthread_setspecific)(unsigned int, const void *);
	int (*pthread_mutex_init)(void *, const void *);
	int (*pthread_mutex_lock)(void *);
	int (*pthread_mutex_unlock)(void *);
	void *(*__tls_get_addr)(void *);
} original;

/* Mutexes of another C library look different: there, and only there, the
 * program goes by our words too. */
static bool has_glibc;

static struct sp_lane *lane_of_thread(void)
{
	return sp_lane_of(sp_thread.lane);
}

/* Leave libunwind for good: it must not continue. */
static void __attribute__((noreturn)) bail_out(void)
{
	struct sp_lane *lane = lane_of_thread();

	atomic_store_explicit(&broken, 1, memory_order_relaxed);
	__builtin_longjmp(lane->unwind_jump, 1);
}

/*
 * The stack between this frame and its end, as far as it is known, is readable
 * without asking the kernel.  libunwind asks for one or two whole pages.
 */
static bool readable(const void *address)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	uintptr_t end = sp_stackend_nearby(here);
	uintptr_t at = (uintptr_t)address;

	if (!end)
		return sp_stackend_probe(at);
	return at >= (here & ~4095ul) && at < end;
}

static int replaced_dl_iterate_phdr(int (*callback)(struct dl_phdr_info *,
						    size_t, void *),
				    void *arg)
{
	unsigned int n = sp_modules_entries();
	int ret = 0;

	if (!lane_of_thread())
		return original.dl_iterate_phdr(callback, arg);
	for (unsigned int i = 0; i < n && ret == 0; i++) {
		const struct sp_module_entry *e = sp_modules_get(i);
		struct dl_phdr_info info;

		if (!sp_modules_alive(e))
			continue;
		memset(&info, 0, sizeof(info));
		info.dlpi_addr = e->bias;
		info.dlpi_name = e->name;
		info.dlpi_phdr = e->phdr;
		info.dlpi_phnum = e->n_phdr;
		info.dlpi_adds = sp_modules_count();
		ret = callback(&info, sizeof(info), arg);
	}
	return ret;
}

/* How a mutex of glibc begins. */
struct mutex {
	_Atomic int word;
	unsigned int count;
	int owner; /* thread id, of a thread that came by the original; or 0 */
};

/* Mutexes that a lane has had, for a forked child. */
static _Atomic(struct mutex *) mutexes[MUTEXES_MAX];

static void remember_mutex(struct mutex *mutex)
{
	for (int i = 0; i < MUTEXES_MAX; i++) {
		struct mutex *none = NULL;

		if (atomic_load_explicit(&mutexes[i], memory_order_relaxed) ==
		    mutex)
			return;
		if (atomic_compare_exchange_strong(&mutexes[i], &none, mutex) ||
		    none == mutex)
			return;
	}
}

/* Sleep a millisecond in the one way that malloc itself may sleep. */
static void nap(void)
{
	static int never;
	struct timespec t = {0, 1000000};

	SP_SYS4(futex, &never, FUTEX_WAIT_PRIVATE, 0, &t);
}

static bool take(struct mutex *mutex)
{
	int expected = FREE;

	return atomic_compare_exchange_strong_explicit(
		&mutex->word, &expected, TAKEN, memory_order_acquire,
		memory_order_relaxed);
}

/* The critical sections are microseconds; a holder that was preempted gets some
 * time, a holder that will never come back does not hang anybody. */
static int replaced_mutex_lock(void *mutex)
{
	const bool has_lane = lane_of_thread();

	if (!has_lane && has_glibc)
		return original.pthread_mutex_lock(mutex);
	remember_mutex(mutex);
	for (int spins = 0; spins < 200; spins++) {
		if (take(mutex))
			return 0;
		__builtin_ia32_pause();
	}
	for (int naps = 0; naps < 200 || !has_lane; naps++) {
		if (take(mutex))
			return 0;
		nap();
	}
	bail_out();
}

static int replaced_mutex_unlock(void *mutex)
{
	_Atomic int *word = &((struct mutex *)mutex)->word;

	if (!lane_of_thread() && has_glibc)
		return original.pthread_mutex_unlock(mutex);
	if (atomic_exchange_explicit(word, FREE, memory_order_release) ==
	    TAKEN_AND_WAITED_FOR)
		SP_SYS3(futex, word, FUTEX_WAKE_PRIVATE, 1);
	return 0;
}

static int replaced_mutex_init(void *mutex, const void *attributes)
{
	if (!lane_of_thread() && has_glibc)
		return original.pthread_mutex_init(mutex, attributes);
	atomic_store_explicit(&((struct mutex *)mutex)->word, FREE,
			      memory_order_relaxed);
	return 0;
}

static int replaced_setspecific(unsigned int key, const void *value)
{
	return lane_of_thread() ? 0 : original.pthread_setspecific(key, value);
}

static int replaced_sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	return lane_of_thread() ? 0 : original.sigprocmask(how, set, old);
}

static int replaced_mincore(void *address, size_t bytes, unsigned char *vec)
{
	if (!lane_of_thread())
		return original.mincore(address, bytes, vec);
	errno = ENOMEM;
	if (!readable(address))
		return -1;
	for (size_t i = 0; i < (bytes + 4095) / 4096; i++)
		vec[i] = 1;
	return 0;
}

static int replaced_msync(void *address, size_t bytes, int flags)
{
	if (!lane_of_thread())
		return original.msync(address, bytes, flags);
	return readable(address) ? 0 : -1;
}

/* The pipe of the memory check is always empty and always writable. */
static ssize_t replaced_read(int fd, void *buf, size_t n)
{
	if (!lane_of_thread())
		return original.read(fd, buf, n);
	errno = EAGAIN;
	return -1;
}

static ssize_t replaced_write(int fd, const void *buf, size_t n)
{
	if (!lane_of_thread())
		return original.write(fd, buf, n);
	errno = 0;
	return readable(buf) ? (ssize_t)n : -1;
}

static long replaced_syscall(long number, ...)
{
	long a[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (!lane_of_thread())
		return original.syscall(number, a[0], a[1], a[2], a[3], a[4],
					a[5]);
	if (number != SYS_write)
		bail_out();
	return replaced_write((int)a[0], (const void *)a[1], (size_t)a[2]);
}

static int replaced_close(int fd)
{
	return lane_of_thread() ? 0 : original.close(fd);
}

static int replaced_pipe2(int *fds, int flags)
{
	return lane_of_thread() ? -1 : original.pipe2(fds, flags);
}

static int replaced_open(const char *path, int flags, int mode)
{
	return lane_of_thread() ? -1 : original.open(path, flags, mode);
}

static int replaced_stat(const char *path, struct stat *st)
{
	return lane_of_thread() ? -1 : original.stat(path, st);
}

static int replaced_fstat(int fd, struct stat *st)
{
	return lane_of_thread() ? -1 : original.fstat(fd, st);
}

static void *replaced_malloc(size_t n)
{
	return lane_of_thread() ? NULL : original.malloc(n);
}

static void replaced_free(void *p)
{
	if (!lane_of_thread())
		original.free(p);
}

static void *replaced_mmap(void *at, size_t n, int prot, int flags, int fd,
			   off_t offset)
{
	struct sp_lane *lane = lane_of_thread();
	void *p;

	if (!lane)
		return original.mmap(at, n, prot, flags, fd, offset);
	p = fd == -1 ? sp_sys_map(n) : NULL;
	if (p && n >= CACHE_BYTES_MIN) {
		/* It is filled at once: in one fault rather than in many. */
		SP_SYS3(madvise, p, n, MADV_POPULATE_WRITE);
		lane->unwind_cache = p;
		lane->unwind_cache_bytes = n;
	}
	return p ? p : MAP_FAILED;
}

static int replaced_munmap(void *at, size_t n)
{
	if (!lane_of_thread())
		return original.munmap(at, n);
	return SP_SYS2(munmap, at, n) == 0 ? 0 : -1;
}

static void *replaced_tls_get_addr(void *index)
{
	struct sp_lane *lane = lane_of_thread();
	unsigned long offset = ((unsigned long *)index)[1];

	if (!lane)
		return original.__tls_get_addr(index);
	return (char *)lane->unwind_tls + offset;
}

static void replaced_abort(void)
{
	if (!lane_of_thread())
		__builtin_trap();
	bail_out();
}

struct replacement {
	const char *name;
	void (*ours)(void);
	void *original; /* where to keep it, or NULL */
};

#define KEEP(name, ours)                                                       \
	{                                                                      \
#name, (void (*)(void))ours, &original.name                    \
	}
static const struct replacement replacements[] = {
	KEEP(dl_iterate_phdr, replaced_dl_iterate_phdr),
	KEEP(sigprocmask, replaced_sigprocmask),
	KEEP(mincore, replaced_mincore),
	KEEP(msync, replaced_msync),
	KEEP(read, replaced_read),
	KEEP(write, replaced_write),
	KEEP(close, replaced_close),
	KEEP(pipe2, replaced_pipe2),
	KEEP(open, replaced_open),
	KEEP(stat, replaced_stat),
	KEEP(fstat, replaced_fstat),
	KEEP(malloc, replaced_malloc),
	KEEP(free, replaced_free),
	KEEP(mmap, replaced_mmap),
	KEEP(munmap, replaced_munmap),
	KEEP(syscall, replaced_syscall),
	KEEP(pthread_setspecific, replaced_setspecific),
	KEEP(__tls_get_addr, replaced_tls_get_addr),
	{"abort", replaced_abort, NULL},
	KEEP(pthread_mutex_lock, replaced_mutex_lock),
	KEEP(pthread_mutex_unlock, replaced_mutex_unlock),
	KEEP(pthread_mutex_init, replaced_mutex_init),
};

static const struct replacement *find_replacement(const char *name)
{
	for (size_t i = 0; i < sizeof(replacements) / sizeof(*replacements);
	     i++)
		if (strcmp(replacements[i].name, name) == 0)
			return &replacements[i];
	return NULL;
}

/* All that were replaced; beyond SLOTS_MAX only their number. */
static struct {
	void **at;
	void *ours;
} slots[SLOTS_MAX];
static unsigned int n_slots;

/* Redirect one imported function.  What is not in the list stays: it computes
 * (memcpy) or is reached only through files, and files do not open. */
static void redirect(const char *name, void **slot,
		     const struct sp_module_entry *e)
{
	const struct replacement *r = find_replacement(name);
	void *bound = *slot, *ours;

	if (!r)
		return;
	/* A slot that is bound lazily leads back into the library; going that
	 * way would bind it, over our replacement. */
	if ((uintptr_t)bound >= e->start && (uintptr_t)bound < e->end)
		bound = sp_linkmap_global(name, NULL);
	if (r->original)
		memcpy(r->original, &bound, sizeof(bound));
	memcpy(&ours, &r->ours, sizeof(ours));
	__atomic_store_n(slot, ours, __ATOMIC_RELEASE);
	if (n_slots < SLOTS_MAX) {
		slots[n_slots].at = slot;
		slots[n_slots].ours = ours;
	}
	n_slots++;
}

/* Walk one relocation table for imported functions.  Slots of a read-only
 * relocated region are made writable by the caller. */
static void redirect_table(const ElfW(Rela) * rela, size_t bytes,
			   const struct sp_module_entry *e)
{
	const ElfW(Sym) *symbols =
		(const void *)sp_linkmap_dynamic(library, DT_SYMTAB);
	const char *strings =
		(const void *)sp_linkmap_dynamic(library, DT_STRTAB);

	for (; rela && bytes >= sizeof(*rela); rela++, bytes -= sizeof(*rela)) {
		unsigned long type = ELF64_R_TYPE(rela->r_info);
		const ElfW(Sym) *sym = &symbols[ELF64_R_SYM(rela->r_info)];
		const char *name = strings + sym->st_name;

		if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)
			continue;
		if (sym->st_shndx != SHN_UNDEF ||
		    ELF64_ST_TYPE(sym->st_info) != STT_FUNC)
			continue;
		redirect(name, (void **)(library->l_addr + rela->r_offset), e);
	}
}

static void protect_relro(const ElfW(Phdr) * phdr, unsigned int n, int prot)
{
	for (unsigned int i = 0; i < n; i++) {
		uintptr_t start = library->l_addr + phdr[i].p_vaddr;
		uintptr_t end = start + phdr[i].p_memsz;

		if (phdr[i].p_type != PT_GNU_RELRO)
			continue;
		start &= ~4095ul;
		end &= ~4095ul; /* what the loader protected: whole pages */
		if (end > start)
			SP_SYS3(mprotect, start, end - start, prot);
	}
}

bool sp_unwinder_imports_replace(const struct link_map *map,
				 const struct sp_module_entry *e)
{
	library = map;
	has_glibc = sp_linkmap_global("gnu_get_libc_version", NULL);
	protect_relro(e->phdr, e->n_phdr, PROT_READ | PROT_WRITE);
	redirect_table((const void *)sp_linkmap_dynamic(library, DT_RELA),
		       sp_linkmap_dynamic(library, DT_RELASZ), e);
	redirect_table((const void *)sp_linkmap_dynamic(library, DT_JMPREL),
		       sp_linkmap_dynamic(library, DT_PLTRELSZ), e);
	protect_relro(e->phdr, e->n_phdr, PROT_READ);
	return n_slots <= SLOTS_MAX;
}

void sp_unwinder_imports_keep(void)
{
	for (unsigned int i = 0; i < n_slots; i++)
		if (__atomic_load_n(slots[i].at, __ATOMIC_RELAXED) !=
		    slots[i].ours)
			__atomic_store_n(slots[i].at, slots[i].ours,
					 __ATOMIC_RELAXED);
}

bool sp_unwinder_imports_broken(void)
{
	return atomic_load_explicit(&broken, memory_order_relaxed);
}

void sp_unwinder_imports_reset(void)
{
	for (int i = 0; i < MUTEXES_MAX; i++) {
		struct mutex *mutex =
			atomic_load_explicit(&mutexes[i], memory_order_relaxed);

		if (!mutex ||
		    !atomic_load_explicit(&mutex->word, memory_order_relaxed))
			continue;
		atomic_store_explicit(&broken, 1, memory_order_relaxed);
		/* What a thread of the program holds is the program's. */
		if (!has_glibc || !mutex->owner)
			atomic_store_explicit(&mutex->word, FREE,
					      memory_order_relaxed);
	}
}
