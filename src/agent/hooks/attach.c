/* SPDX-License-Identifier: MIT */
/*
 * The library's side of attach and detach.  `sampleprof attach` loads the
 * library into a running process (RTLD_LOCAL), and makes one of its threads
 * call sampleprof_agent_attach() on a separate stack.  That thread is in
 * neither an allocator nor the loader.  From then on everything works as under
 * preload.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "agent/event/agent.h"
#include "agent/event/lifecycle.h"
#include "agent/event/recorder.h"
#include "agent/event/resident.h"
#include "agent/hooks/alive.h"
#include "agent/hooks/patch.h"
#include "agent/process/process.h"
#include "agent/sys/export.h"
#include "agent/sys/linkmap.h"
#include "agent/sys/next.h"
#include "format/attach.h"

#define SETTINGS_MAX 64

void sampleprof_agent_attach(struct sp_attach_request *request);
void sampleprof_agent_under_lock(void);

/* is_attached: the program's pointers lead to this library.  has_profile: there
 * is a profile for that.  It outlives is_attached while a thread is still
 * inside a call that records to it. */
static bool is_attached, has_profile;

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
	void *address = sp_linkmap_global("dlsym", NULL);
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

static void begin_recording(struct sp_attach_request *request)
{
	size_t places = 0;
	int r;

	if (!has_profile && sp_process_is_running()) {
		answer_request(request, SP_ATTACH_IS_PRELOADED, 0);
		return;
	}
	if (!sp_next_resolve_last()) {
		answer_request(request, SP_ATTACH_NO_ALLOCATOR, 0);
		return;
	}
	/* This is a child process that is not to be recorded. */
	if (is_attached && !sp_process_is_running()) {
		answer_request(request, SP_ATTACH_IS_OFF, 0);
		return;
	}
	/* A thread is still inside a call of the profile before. */
	if (has_profile && !is_attached &&
	    sp_lifecycle_end_attached() == -EAGAIN) {
		answer_request(request, SP_ATTACH_BUSY, 0);
		return;
	}
	if (!is_attached && !begin_profile(request))
		return;
	has_profile = true;
	r = sp_patch_write(&places);
	request->places = places;
	/* The second pass changes what a thread was binding lazily, without
	 * the loader's lock, during the first. */
	if (r == 0)
		r = sp_patch_write(&places);
	if (r < 0 && !is_attached)
		has_profile = sp_lifecycle_end_attached() == -EAGAIN &&
			      sp_lifecycle_end_attached() == -EAGAIN;
	else
		is_attached = true;
	/* As our prctl() does before a program installs a seccomp filter. */
	if (is_attached && request->is_filtered) {
		sp_resident_forbid_files();
		sp_agent_enter_sandbox();
	}
	answer_request(request, r < 0 ? SP_ATTACH_NO_WRITE : SP_ATTACH_DONE, r);
}

/* ---- detach ---- */

static void restore_pointers(struct sp_attach_request *request)
{
	size_t places = 0;
	int r = sp_patch_restore(&places);

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

SP_EXPORT void sampleprof_agent_attach(struct sp_attach_request *request)
{
	const int saved_errno = errno;

	request->places = 0;
	if (request->version != SP_ATTACH_VERSION)
		answer_request(request, SP_ATTACH_OTHER_VERSION, 0);
	else if (request->command == SP_ATTACH_END)
		end_recording(request);
	else if (!call_under_lock(begin_recording, request))
		answer_request(request, SP_ATTACH_NO_ALLOCATOR, 0);
	errno = saved_errno;
}
