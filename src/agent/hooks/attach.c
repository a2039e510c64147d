/* SPDX-License-Identifier: MIT */
/*
 * The library's side of attach and detach.  `sampleprof attach` loads the
 * library into a running process (RTLD_LOCAL), and makes one of its threads
 * call sampleprof_agent_attach() on a separate stack.  That thread is in
 * neither an allocator nor the loader.  From then on everything works as under
 * preload.
 */
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "agent/divert/divert.h"
#include "agent/event/agent.h"
#include "agent/event/lifecycle.h"
#include "agent/hooks/alive.h"
#include "agent/hooks/patch.h"
#include "agent/process/process.h"
#include "agent/sys/allocator.h"
#include "agent/sys/export.h"
#include "agent/sys/linkmap.h"
#include "agent/sys/next.h"
#include "agent/sys/sys.h"
#include "format/attach.h"

#define SETTINGS_MAX 64

void sampleprof_agent_attach(struct sp_attach_request *request);
void sampleprof_agent_under_lock(void);

/* is_attached: the program's pointers lead to this library.  has_profile: there
 * is a profile for that.  It outlives is_attached while a thread is still
 * inside a call that records to it. */
static bool is_attached, has_profile;
static uint64_t attached_by; /* process id of the command */

/* ---- under the loader's lock ---- */

/*
 * While words are written, no object may be loaded, unloaded or half relocated.
 * The loader's lock cannot be taken directly, but dlsym holds it while the
 * resolver of an indirect function runs.  So the work is done in a resolver.
 */
static struct {
	void (*work)(struct sp_attach_request *request);
	struct sp_attach_request *request;
} locked;

static void do_nothing(void)
{
}

static __attribute__((used)) void (*resolve_under_lock(void))(void)
{
	if (locked.work)
		locked.work(locked.request);
	locked.work = NULL;
	return do_nothing;
}

SP_EXPORT void sampleprof_agent_under_lock(void)
	__attribute__((ifunc("resolve_under_lock")));

static bool call_under_lock(void (*work)(struct sp_attach_request *),
			    struct sp_attach_request *request)
{
	void *(*find)(void *, const char *);
	void *address = sp_linkmap_libc("dlsym");
	void *handle = (void *)(uintptr_t)sp_linkmap_self();

	if (!address || !handle)
		return false;
	memcpy(&find, &address, sizeof(address));
	locked.work = work;
	locked.request = request;
	find(handle, "sampleprof_agent_under_lock");
	if (!locked.work)
		return true;
	locked.work = NULL;
	return false;
}

/* ---- attach ---- */

/* Copies the settings to memory that lasts as long as the process. */
static char **unpack_settings(const char *packed)
{
	static char text[SP_ATTACH_SETTINGS];
	static char *settings[SETTINGS_MAX + 1];
	char *at = text;
	size_t n = 0;

	memcpy(text, packed, sizeof(text) - 2);
	while (*at && n < SETTINGS_MAX) {
		settings[n++] = at;
		at += strlen(at) + 1;
	}
	settings[n] = NULL;
	return settings;
}

static void answer_request(struct sp_attach_request *request, uint32_t result,
			   int error)
{
	request->result = result;
	request->error = error;
}

static bool is_given_up(const struct sp_attach_request *request)
{
	return __atomic_load_n(&request->given_up, __ATOMIC_SEQ_CST);
}

/* No call is redirected any more. */
static void discard_profile(void)
{
	is_attached = false;
	sp_divert_detach();
	has_profile = sp_lifecycle_end_attached() == -EAGAIN &&
		      sp_lifecycle_end_attached() == -EAGAIN;
	sp_lifecycle_discard_file();
}

static bool begin_profile(struct sp_attach_request *request)
{
	struct sp_process_attached attached = {
		.is_it = true,
		.main_thread = request->main_thread,
		.age_ms = request->age_ms,
	};
	int r;

	attached.knows_before =
		sp_alive_bytes(request->knows_glibc, request->glibc_bytes,
			       &attached.before_bytes);
	r = sp_lifecycle_begin_attached(&attached,
					unpack_settings(request->settings));
	if (r == -EBUSY)
		answer_request(request,
			       sp_process_is_running() ? SP_ATTACH_IS_PRELOADED
						       : SP_ATTACH_IS_OFF,
			       0);
	else if (r == -EINVAL)
		answer_request(request, SP_ATTACH_REFUSED, 0);
	else if (r < 0)
		answer_request(request, SP_ATTACH_NO_FILE, r);
	return r == 0;
}

/* The executable calls a malloc of its own directly. */
static bool may_be_seen(void)
{
	uintptr_t malloc_below;

	memcpy(&malloc_below, &sp_next.malloc, sizeof(malloc_below));
	return sp_next_provider_map() != sp_linkmap_first() ||
	       sp_divert_is_entry(malloc_below);
}

/* Twice: the second pass changes what a thread was binding lazily, without the
 * loader's lock, during the first. */
static int write_pointers(struct sp_attach_request *request)
{
	size_t places = 0;
	int r = sp_patch_write(&places, &request->words);

	request->places = places;
	return r ? r : sp_patch_write(&places, &request->words);
}

static void begin_recording(struct sp_attach_request *request)
{
	int r;

	/* While the lock was waited for. */
	if (is_given_up(request)) {
		answer_request(request, SP_ATTACH_GIVEN_UP, 0);
		return;
	}
	if (!has_profile && sp_process_is_running()) {
		answer_request(request, SP_ATTACH_IS_PRELOADED, 0);
		return;
	}
	if (!sp_next_resolve_last()) {
		answer_request(request, SP_ATTACH_NO_ALLOCATOR, 0);
		return;
	}
	/* If not: this is a child process that is not to be recorded. */
	if (is_attached) {
		answer_request(request,
			       sp_process_is_running() ? SP_ATTACH_IS_ATTACHED
						       : SP_ATTACH_IS_OFF,
			       0);
		request->attached_by = attached_by;
		return;
	}
	/* A thread is still inside a call of the profile before. */
	if (has_profile && sp_lifecycle_end_attached() == -EAGAIN) {
		answer_request(request, SP_ATTACH_BUSY, 0);
		return;
	}
	if (sp_divert_attach(&sp_divert_hooks))
		sp_allocator_note_other();
	if (!may_be_seen()) {
		sp_divert_detach();
		answer_request(request, SP_ATTACH_NO_ALLOCATOR, 0);
		return;
	}
	if (!begin_profile(request)) {
		sp_divert_detach();
		return;
	}
	has_profile = true;
	attached_by = request->attached_by;
	r = write_pointers(request);
	if (r < 0)
		discard_profile();
	else
		is_attached = true;
	/* As our prctl() does before a program installs a seccomp filter. */
	if (is_attached && request->is_filtered) {
		sp_sys_forbid_files();
		sp_agent_enter_sandbox();
	}
	answer_request(request, r < 0 ? SP_ATTACH_NO_WRITE : SP_ATTACH_DONE, r);
}

/* ---- detach ---- */

static void restore_pointers(struct sp_attach_request *request)
{
	size_t places = 0;
	int r = sp_patch_restore(&places, &request->words);

	sp_divert_detach();
	request->places = places;
	answer_request(request, r < 0 ? SP_ATTACH_NO_WRITE : SP_ATTACH_DONE, r);
}

static void end_recording(struct sp_attach_request *request)
{
	int r;

	if (!has_profile) {
		answer_request(request,
			       sp_process_is_running() ? SP_ATTACH_IS_PRELOADED
						       : SP_ATTACH_NOT_THERE,
			       0);
		return;
	}
	if (is_attached && !call_under_lock(restore_pointers, request)) {
		answer_request(request, SP_ATTACH_NO_ALLOCATOR, 0);
		return;
	}
	if (is_attached && request->result != SP_ATTACH_DONE)
		return;
	is_attached = false;
	r = sp_lifecycle_end_attached();
	has_profile = r == -EAGAIN;
	answer_request(request,
		       r == -EAGAIN ? SP_ATTACH_BUSY
		       : r < 0      ? SP_ATTACH_NOT_THERE
				    : SP_ATTACH_DONE,
		       0);
}

static void begin_or_undo(struct sp_attach_request *request)
{
	const bool was_attached = is_attached;

	if (!call_under_lock(begin_recording, request)) {
		answer_request(request, SP_ATTACH_NO_ALLOCATOR, 0);
		return;
	}
	__atomic_store_n(&request->answered, 1, __ATOMIC_SEQ_CST);
	if (was_attached || !is_attached || !is_given_up(request) ||
	    !call_under_lock(restore_pointers, request) ||
	    request->result != SP_ATTACH_DONE)
		return;
	discard_profile();
	answer_request(request, SP_ATTACH_GIVEN_UP, 0);
}

static_assert(offsetof(struct sp_attach_request, result) ==
		      40 + SP_ATTACH_SETTINGS,
	      "commands of other versions read the answer there");

SP_EXPORT void sampleprof_agent_attach(struct sp_attach_request *request)
{
	const int saved_errno = errno;

	request->places = 0;
	if (request->version != SP_ATTACH_VERSION) {
		answer_request(request, SP_ATTACH_OTHER_VERSION, 0);
	} else {
		request->words.n = 0;
		if (request->command == SP_ATTACH_END)
			end_recording(request);
		else
			begin_or_undo(request);
	}
	errno = saved_errno;
}
