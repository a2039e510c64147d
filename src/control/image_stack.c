/* SPDX-License-Identifier: MIT */
/* The stack of a stopped thread, and whether the thread may make calls there.
 */
#include <string.h>

#include "control/image_inner.h"

/* Functions of the C library in which a thread only waits. */
static const char *const waiting_names[] = {
	"pthread_cond_wait",
	"pthread_cond_timedwait",
	"pthread_cond_clockwait",
	"sem_wait",
	"sem_timedwait",
	"sem_clockwait",
	"pthread_join",
	"pthread_mutex_lock",
	"pthread_mutex_timedlock",
	"pthread_rwlock_rdlock",
	"pthread_rwlock_wrlock",
	"sched_yield",
	"syscall",
};

/* The first of them are those in which an allocator does not wait, at least not
 * with its locks held. */
#define WAITING_ELSEWHERE 7u
/* System calls that wait, and that allocators do not make.  (The loader makes
 * SYS_read, but by code of its own, which is not the C library's.) */
static const long waiting_calls[] = {
	SYS_read,          SYS_write,           SYS_readv,
	SYS_writev,        SYS_pread64,         SYS_pwrite64,
	SYS_ppoll,         SYS_pselect6,        SYS_epoll_pwait,
	SYS_nanosleep,     SYS_clock_nanosleep, SYS_accept,
	SYS_accept4,       SYS_recvfrom,        SYS_recvmsg,
	SYS_recvmmsg,      SYS_sendto,          SYS_sendmsg,
	SYS_sendmmsg,      SYS_connect,         SYS_wait4,
	SYS_waitid,        SYS_rt_sigtimedwait, SYS_restart_syscall,
	SYS_rt_sigsuspend, SYS_fsync,           SYS_fdatasync,
	SYS_flock,         SYS_io_getevents,    SYS_splice,
	SYS_sendfile,      SP_CPU_OLD_WAITS};

static enum sp_image_kind module_kind_at(const struct sp_image *image,
					 uint64_t pc)
{
	Dwfl_Module *mod = dwfl_addrmodule(image->dwfl, pc);
	void **data;

	if (!mod)
		return UNKNOWN;
	dwfl_module_info(mod, &data, NULL, NULL, NULL, NULL, NULL, NULL);
	return (enum sp_image_kind)(uintptr_t)*data;
}

static void find_waiting_functions(struct sp_image *image)
{
	for (size_t i = 0; i < sizeof(waiting_names) / sizeof(*waiting_names);
	     i++)
		for (size_t k = 0; k < image->n_libc; k++)
			if ((!image->has_own_malloc || i < WAITING_ELSEWHERE) &&
			    image->n_waiting < SP_IMAGE_WAITING &&
			    sp_image_function(
				    image->libc[k], waiting_names[i],
				    &image->waiting[image->n_waiting]))
				image->n_waiting++;
}

/* ---- stacks ---- */

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	struct sp_image *image = arg;

	(void)dwfl;
	if (*thread_arg)
		return 0;
	*thread_arg = image;
	return image->thread->tid;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread_arg)
{
	struct sp_image *image = arg;

	(void)dwfl;
	*thread_arg = image;
	return tid == image->thread->tid;
}

/* A return address on the stack may be signed, and libdw needs it without the
 * signature.  Any word may be such an address: it is taken for one if it then
 * lies in an object. */
static Dwarf_Word unsign_address(const struct sp_image *image, Dwarf_Word word)
{
	const uint64_t address =
		sp_cpu_strip_signature(&image->thread->regs, word);

	return address != word && dwfl_addrmodule(image->dwfl, address)
		       ? address
		       : word;
}

static bool read_word(Dwfl *dwfl, Dwarf_Addr at, Dwarf_Word *ret, void *arg)
{
	struct sp_image *image = arg;
	const uint64_t from = at - sp_cpu_sp(&image->thread->regs);
	bool ok = true;

	(void)dwfl;
	if (from <= image->stack_bytes &&
	    image->stack_bytes - from >= sizeof(*ret))
		memcpy(ret, image->stack + from, sizeof(*ret));
	else
		ok = sp_tracee_read(image->pid, at, ret, sizeof(*ret));
	if (ok)
		*ret = unsign_address(image, *ret);
	return ok;
}

static bool set_registers(Dwfl_Thread *thread, void *thread_arg)
{
	struct sp_image *image = thread_arg;
	Dwarf_Word regs[SP_CPU_DWARF_REGS];

	sp_cpu_dwarf(&image->thread->regs, regs);
	if (!dwfl_thread_state_registers(thread, 0, SP_CPU_DWARF_REGS, regs))
		return false;
	dwfl_thread_state_register_pc(thread, sp_cpu_pc(&image->thread->regs));
	return true;
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_word,
	.set_initial_registers = set_registers,
};

static int note_frame(Dwfl_Frame *frame, void *arg)
{
	struct sp_image *image = arg;
	Dwarf_Addr pc;
	bool is_activation;

	if (image->n_frames == SP_IMAGE_FRAMES ||
	    !dwfl_frame_pc(frame, &pc, &is_activation))
		return DWARF_CB_ABORT;
	/* In an activation, pc is the next instruction; in a caller it is the
	 * return address, which may be outside the function.  The innermost
	 * frame is always an activation. */
	image->frames[image->n_frames] = (struct frame){
		is_activation ? pc : pc - 1,
		is_activation && image->n_frames > 0,
	};
	image->n_frames++;
	return DWARF_CB_OK;
}

/* Copy the stack from the stack pointer upwards.  Less is tried if the mapping
 * ends before; read_word reads the rest. */
static void read_stack(struct sp_image *image)
{
	const uint64_t sp = sp_cpu_sp(&image->thread->regs);

	for (image->stack_bytes = SP_IMAGE_STACK; image->stack_bytes >= 4096;
	     image->stack_bytes /= 2)
		if (sp_tracee_read(image->pid, sp, image->stack,
				   image->stack_bytes))
			return;
	image->stack_bytes = 0;
}

static bool read_frames(struct sp_image *image, const struct sp_tracee *t)
{
	image->thread = t;
	image->n_frames = 0;
	read_stack(image);
	return dwfl_getthread_frames(image->dwfl, t->tid, note_frame, image) ==
	       0;
}

/* ---- places where a thread may make calls ---- */

static bool range_contains(const struct sp_image_range *r, uint64_t pc)
{
	return pc >= r->start && pc < r->end;
}

static bool is_waiting_call(long n)
{
	for (size_t i = 0; i < sizeof(waiting_calls) / sizeof(*waiting_calls);
	     i++)
		if (waiting_calls[i] == n)
			return true;
	return false;
}

static bool is_in_waiting_function(const struct sp_image *image, uint64_t pc)
{
	for (size_t i = 0; i < image->n_waiting; i++)
		if (range_contains(&image->waiting[i], pc))
			return true;
	return false;
}

/* The n innermost frames, at least one, are of the C library.  Does the thread
 * only wait there? */
static bool is_thread_waiting(const struct sp_image *image, size_t n)
{
	const long call = sp_cpu_syscall(&image->thread->regs);

	return is_waiting_call(call) ||
	       (call == SYS_futex &&
		is_in_waiting_function(image, image->frames[n - 1].pc));
}

/* Frames from `at` outwards are of the C library.  Are they just those that
 * call main, or the first function of a thread? */
static bool is_thread_start(const struct sp_image *image, size_t at)
{
	size_t n = 0;

	for (; at + n < image->n_frames; n++)
		if (module_kind_at(image, image->frames[at + n].pc) != LIBC)
			break;
	/* One frame may follow: _start, or that of a language runtime. */
	return n <= 2 && at + n + 1 >= image->n_frames;
}

bool sp_image_may_call(struct sp_image *image, const struct sp_tracee *t)
{
	size_t inner = 0;

	image->is_stack_known = read_frames(image, t) && image->n_frames;
	if (!image->is_stack_known)
		return false;
	while (inner < image->n_frames &&
	       module_kind_at(image, image->frames[inner].pc) == LIBC)
		inner++;
	if (inner == image->n_frames ||
	    (inner ? !is_thread_waiting(image, inner) : image->has_own_malloc))
		return false;
	for (size_t i = 0; i < image->n_frames; i++) {
		const enum sp_image_kind kind =
			module_kind_at(image, image->frames[i].pc);

		if (image->frames[i].is_interrupted || kind == LOADER ||
		    kind == ALLOCATOR || kind == OURS || kind == UNKNOWN)
			return false;
		if (kind == LIBC && i >= inner)
			return is_thread_start(image, i);
	}
	return true;
}

bool sp_image_knew_stack(const struct sp_image *image)
{
	return image->is_stack_known;
}

bool sp_image_prepare_stacks(struct sp_image *image)
{
	GElf_Addr bias;

	find_waiting_functions(image);
	return dwfl_attach_state(image->dwfl,
				 dwfl_module_getelf(image->executable, &bias),
				 image->pid, &thread_callbacks, image);
}
