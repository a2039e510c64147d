/* SPDX-License-Identifier: MIT */
/*
 * A process goes through: nothing known (the loader allocates) -> started (the
 * environment is there: settings, modules, seed, file) -> constructed (thread
 * and fork handlers are in place).  Allocations before "started" are the
 * loader's own and are not counted; from then on all are counted and sampled,
 * before and after main.
 *
 * I1  The generation changes in a forked child, before anything else is done
 *     there; a thread whose state has another generation is set up again.
 */
#include "agent/event/lifecycle.h"

#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#include "agent/divert/divert.h"
#include "agent/event/look.h"
#include "agent/event/maps.h"
#include "agent/event/marks.h"
#include "agent/event/recorder.h"
#include "agent/event/remote.h"
#include "agent/event/thread_life.h"
#include "agent/file/livemaps.h"
#include "agent/file/mapping.h"
#include "agent/file/names.h"
#include "agent/file/outfile.h"
#include "agent/file/slots.h"
#include "agent/file/slots_copy.h"
#include "agent/file/slots_total.h"
#include "agent/file/stack.h"
#include "agent/file/places.h"
#include "agent/file/stacktab.h"
#include "agent/file/writer.h"
#include "agent/process/process.h"
#include "agent/process/checkin.h"
#include "agent/process/suspend.h"
#include "agent/sys/allocator.h"
#include "agent/sys/diag.h"
#include "agent/sys/hooks.h"
#include "agent/sys/next.h"
#include "agent/sys/sys.h"
#include "agent/thread/inside.h"
#include "agent/thread/size_counts.h"
#include "agent/unwind/lane.h"
#include "agent/unwind/modules.h"
#include "agent/unwind/peer.h"
#include "agent/unwind/stack_bounds.h"

#include "agent/sys/poison.h"

/* Where nothing is recorded, or not yet. */
static void rest_thread(struct sp_thread *t)
{
	sp_thread_life_rest(t, atomic_load(&sp_process.phase) == SP_PROCESS_OFF
				       ? SP_SUSPENDED
				       : 0);
}

/* ---- start ---- */

/* Create the file now rather than with the first sample: the process that was
 * started under us always leaves one. */
static void open_early(struct sp_thread *t)
{
	if (sp_recorder_open_file(t) || !sp_process.file_error)
		return;
	sp_process_explain_file(&sp_process);
	atomic_store(&sp_process.phase, SP_PROCESS_OFF);
}

static void choose_unwinder(void)
{
	static char why[SP_PEER_WHY_BYTES];

	if (sp_process.config.unwind == SP_CONFIG_UNWIND_FP)
		sp_stack_follow(SP_STACK_POINTERS);
	if (sp_process.config.unwind != SP_CONFIG_UNWIND_PEER)
		return;
	/* As much as the file may take. */
	if (sp_peer_init_beside(sp_memory_limit_of_file(&sp_process.limit),
				why))
		sp_stack_follow(SP_STACK_LIBUNWIND);
	else
		sp_process_diagnose(&sp_process,
				    "stacks are found by tables, not by "
				    "libunwind: ",
				    why, "");
}

/* From "nothing known" to "started", once the settings are there, which stand
 * in the environment. */
static void start_process(struct sp_thread *t, char *const *settings)
{
	int expected = SP_PROCESS_NOTHING;

	if (!settings ||
	    !atomic_compare_exchange_strong(&sp_process.phase, &expected,
					    SP_PROCESS_STARTING))
		return;
	if (!sp_process_init(&sp_process, settings)) {
		atomic_store(&sp_process.phase, SP_PROCESS_OFF);
		return;
	}
	sp_recorder_init(&sp_process, sp_marks_complete);
	sp_maps_init(&sp_process);
	sp_names_begin_program(sp_process.exe_path);
	if (sp_process.attached.is_it)
		sp_modules_init_running(sp_process.exe_path);
	else
		sp_modules_init(sp_process.exe_path);
	sp_stack_bounds_init(environ, sp_process.attached.main_thread);
	choose_unwinder();
	atomic_store_explicit(&sp_process.phase, SP_PROCESS_RUNNING,
			      memory_order_release);
	if (!sp_thread_life_begin(t))
		return;
	if (sp_process.is_root || !sp_thread_life_is_sampling(t))
		open_early(t);
}

/* ---- a forked child ---- */

/* What each module has of one profile. */
static void reset_records(void)
{
	sp_writer_reset();
	sp_lane_reset();
	sp_recorder_reset();
	sp_livemaps_reset();
	sp_stacktab_reset();
	sp_places_reset();
	sp_modules_reset();
	sp_slots_reset();
	sp_diag_reset();
	sp_marks_reset();
	sp_remote_reset();
}

/* All that is of one profile. */
static void forget_profile(void)
{
	atomic_fetch_add(&sp_process.generation, 1);
	reset_records();
	atomic_store(&sp_process.threads, 0);
	atomic_store(&sp_process.is_ending, false);
}

/* Begin anew, with a file of its own.  The thread that calls is the only one.
 */
static void begin_child(struct sp_thread *t)
{
	char name[SP_FORMAT_THREAD_NAME_MAX];

	sp_slots_name(sp_thread_life_is_of_process(t) ? t->slot : 0, name);
	sp_names_begin(name);
	forget_profile();
	sp_process_reseed(&sp_process);
	if (!sp_process.follows_forks)
		atomic_store(&sp_process.phase, SP_PROCESS_OFF);
	t->ended = 0;
	t->generation = 0;
}

static void after_fork_in_child(void)
{
	struct sp_thread *t = &sp_thread;
	volatile uint32_t mark;

	/* Another library's handler may have come first, and allocated. */
	if (atomic_load(&sp_process.phase) != SP_PROCESS_RUNNING ||
	    (sp_process.alive && !sp_process_is_new(&sp_process)))
		return;
	if (sp_thread_life_is_in_event(t, &mark, NULL) || t->writing) {
		/* A signal handler forked while it interrupted the agent, which
		 * will go on in this child: let it write into nowhere, and
		 * begin anew with the next event. */
		sp_writer_detach();
		begin_child(t);
		if (!t->suspended)
			sp_thread_swap(0);
	} else {
		sp_suspend_begin(t, &mark);
		begin_child(t);
		if (sp_thread_life_begin(t))
			sp_thread_life_resume(t, &mark);
		else
			rest_thread(t);
	}
	sp_process_mark_seen(&sp_process);
}

/* A child that no handler announced (clone, _Fork): the bytes since the fork
 * cannot be told from those before it. */
static void notice_child(struct sp_thread *t)
{
	if (!sp_process_is_new(&sp_process))
		return;
	begin_child(t);
	sp_process_mark_seen(&sp_process);
	sp_diag_lose(SP_LOSS_FORK_RESET, 1);
}

/* ---- an event ---- */

bool sp_lifecycle_make_ready(struct sp_thread *t, uint64_t *used)
{
	const int now =
		atomic_load_explicit(&sp_process.phase, memory_order_acquire);
	bool is_new = false;

	if (now != SP_PROCESS_RUNNING) {
		if (now == SP_PROCESS_STARTING)
			sp_diag_lose(SP_LOSS_INIT_RACE, 1);
		start_process(t, environ);
		is_new = true;
	}
	if (sp_process_is_running())
		notice_child(t);
	if (!sp_process_is_running()) {
		rest_thread(t);
		return false;
	}
	if (!sp_thread_life_is_of_process(t)) {
		if (!sp_thread_life_begin(t)) {
			rest_thread(t);
			return false;
		}
		is_new = true;
	}
	if (is_new)
		*used = 0; /* nothing was counted yet */
	return true;
}

bool sp_lifecycle_go_in(struct sp_thread *t, volatile uint32_t *mark)
{
	uint64_t used = sp_suspend_begin(t, mark);

	/* Again: who ends an attached profile can see by now that this thread
	 * is inside. */
	if (sp_process_is_running()) {
		notice_child(t);
		if (sp_thread_life_is_of_process(t)) {
			sp_thread_life_settle(t, used);
			return true;
		}
		if (sp_thread_life_begin(t))
			return true;
	}
	rest_thread(t);
	return false;
}

/* ---- before main and after exit ---- */

/* The last time that this thread runs one of its destructors: what it still
 * allocates afterwards is published call by call. */
static void thread_ends(void *arg)
{
	struct sp_thread *t = arg;
	volatile uint32_t mark;
	uint64_t used;
	int saved_errno = errno;

	if (atomic_load(&sp_process.phase) == SP_PROCESS_ENDED)
		return;
	/* Whatever it was in the middle of it does not come back to. */
	if (t->inside || t->suspended)
		sp_thread_life_recover(t);
	used = sp_suspend_begin(t, &mark);
	if (atomic_load(&sp_process.phase) == SP_PROCESS_ENDED ||
	    sp_process_is_new(&sp_process)) {
		/* All that an unannounced child has done is to end. */
		sp_thread_life_rest(t, SP_SUSPENDED);
		return;
	}
	/* It has counted nothing since the process was attached to again, and
	 * its slot is of the profile before. */
	if (!sp_thread_life_is_of_process(t)) {
		sp_thread_life_rest(t, 0);
		return;
	}
	sp_thread_life_settle(t, used);
	sp_thread_life_publish(t);
	sp_remote_poll(t);
	sp_slots_copy_size_counts(t->slot);
	if (t->recorded)
		sp_recorder_thread_end(t);
	t->counts = sp_size_counts_void(t);
	t->slot = sp_slots_release(t->slot);
	t->ended = 1;
	sp_thread_life_resume(t, &mark);
	errno = saved_errno;
}

/* What needs a process past its start, and this thread in the agent. */
static void finish_start(struct sp_thread *t)
{
	/* What is allocated meanwhile is ours. */
	struct sp_inside_pause pause = sp_inside_pause_counting();

	sp_hooks_install(after_fork_in_child, thread_ends);
	sp_remote_listen(&sp_process);
	sp_inside_watch_end(t);
	atomic_store(&sp_process.constructed, true);
	sp_recorder_describe_late(t);
	sp_inside_resume_counting(&pause);
}

static void explain_bypass(void)
{
	struct sp_inside_pause pause = sp_inside_pause_counting();

	sp_process_explain_bypass(&sp_process);
	sp_inside_resume_counting(&pause);
}

static void divert_families(void)
{
	if (sp_divert_begin(&sp_divert_hooks))
		sp_allocator_note_other();
}

/* Only glibc gives arguments to constructors. */
static void __attribute__((constructor)) construct(void)
{
	struct sp_thread *t = &sp_thread;
	volatile uint32_t mark;
	int saved_errno = errno;

	if (!sp_next_resolve())
		return;
	if (sp_process_is_running()) {
		sp_lifecycle_go_in(t, &mark);
	} else {
		sp_suspend_begin(t, &mark);
		start_process(t, environ);
	}
	if (!sp_process_is_running()) {
		rest_thread(t);
		return;
	}
	divert_families();
	explain_bypass();
	finish_start(t);
	sp_thread_life_resume(t, &mark);
	errno = saved_errno;
}

/* A reader sees by itself that size counts are missing. */
static void copy_all_counts(void)
{
	bool has_all;

	sp_mapping_ask_again();
	sp_slots_copy_all();
	has_all = !sp_diag_lost(SP_LOSS_PAGE);
	sp_slots_copy_all_size_counts();
	if (has_all)
		sp_diag_forget(SP_LOSS_PAGE);
}

static void end_profile(struct sp_thread *t, bool may_go_on)
{
	volatile uint32_t mark;

	/* A handler that exits does not go back to what it interrupted. */
	if (t->inside || t->suspended)
		sp_thread_life_recover(t);
	if (!sp_lifecycle_go_in(t, &mark))
		return;
	sp_remote_poll(t);
	sp_thread_life_publish(t);
	sp_look_keep_files(&sp_process);
	sp_look_at_end(&sp_process, !may_go_on, false);
	sp_marks_end(t);
	sp_maps_finish();
	sp_recorder_describe_end(t, !may_go_on);
	/* Other threads publish each call, as soon as they have an event. */
	atomic_store(&sp_process.is_ending, true);
	if (may_go_on)
		sp_diag_lose(
			SP_LOSS_AFTER_EXIT,
			sp_slots_total_unseen(t->slot, SP_CHECKIN_BYTES_MAX));
	copy_all_counts();
	sp_writer_end(sp_thread_life_seen(),
		      may_go_on && !sp_process.is_sandboxed);
	sp_thread_life_resume(t, &mark);
}

static void __attribute__((destructor)) destruct(void)
{
	if (sp_process_is_running())
		end_profile(&sp_thread, true);
}

/* The size counts have it all.  Without a page that the kernel wipes this may
 * be a child that has not noticed: its parent's file is not mapped in it. */
void sp_lifecycle_leaving(bool is_exec)
{
	int saved_errno = errno;

	if (sp_process_is_running() && sp_process.alive &&
	    !sp_process_is_new(&sp_process)) {
		sp_look_keep_files(&sp_process);
		sp_look_at_end(&sp_process, is_exec, true);
		sp_slots_copy_all_size_counts();
		sp_writer_leave(sp_thread_life_seen(), is_exec);
	}
	errno = saved_errno;
}

/* ---- a program that was running before ---- */

int sp_lifecycle_begin_attached(const struct sp_process_attached *attached,
				char *const *settings)
{
	struct sp_thread *t = &sp_thread;
	volatile uint32_t mark;
	int now = atomic_load(&sp_process.phase);

	if (now != SP_PROCESS_NOTHING && now != SP_PROCESS_ENDED)
		return -EBUSY;
	sp_process.attached = *attached;
	sp_process.constructed = false;
	sp_lane_open();
	atomic_store(&sp_process.phase, SP_PROCESS_NOTHING);
	sp_suspend_begin(t, &mark);
	start_process(t, settings);
	if (sp_process_is_running()) {
		sp_process_explain_linked(&sp_process);
		finish_start(t);
		sp_thread_life_resume(t, &mark);
		return 0;
	}
	sp_thread_life_rest(t, 0);
	atomic_store(&sp_process.phase, SP_PROCESS_ENDED);
	forget_profile();
	return sp_process.file_error ? sp_process.file_error : -EINVAL;
}

/* The final totals, unless that is done; false: there is no profile. */
static bool stop_profile(void)
{
	if (sp_process_is_running()) {
		end_profile(&sp_thread, false);
		atomic_store(&sp_process.phase, SP_PROCESS_ENDED);
		return true;
	}
	return atomic_load(&sp_process.phase) == SP_PROCESS_ENDED &&
	       sp_process.constructed;
}

/* When no thread uses the profile any more: shorten the file, and all that is
 * of it is as before. */
static void forget_attached(void)
{
	sp_writer_end(sp_thread_life_seen(), !sp_process.is_sandboxed);
	sp_mapping_unmap();
	sp_process.constructed = false;
	forget_profile();
	sp_sys_wipe();
	sp_process_mark_seen(&sp_process);
}

/* A thread that is in one of our calls has its word, or a lane. */
static bool is_inside(struct sp_thread *t)
{
	return t != &sp_thread && __atomic_load_n(&t->inside, __ATOMIC_ACQUIRE);
}

/* Whatever it has counted, its next allocation is an event. */
static bool restart_thread(struct sp_thread *t)
{
	__atomic_store_n(&t->counts, sp_size_counts_void(t), __ATOMIC_RELAXED);
	__atomic_store_n(&t->limit, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&t->remaining, 0, __ATOMIC_RELEASE);
	return false;
}

/*
 * A thread that is about to come in when the profile ends either finds that it
 * has ended, or is inside by the time of the next call.  No thread records
 * without a lane.
 */
int sp_lifecycle_end_attached(void)
{
	const bool ends_now = sp_process_is_running();

	if (!stop_profile())
		return -ESRCH;
	if (ends_now || !sp_slots_know_all() || sp_slots_any_owner(is_inside) ||
	    !sp_lane_close() || sp_slots_any_owner(is_inside))
		return -EAGAIN;
	sp_slots_any_owner(restart_thread);
	forget_attached();
	return 0;
}

void sp_lifecycle_discard_file(void)
{
	if (!sp_process.is_sandboxed)
		sp_outfile_discard();
}
