/* SPDX-License-Identifier: MIT */
/*
 * All functions are looked up: their symbol versions, and which of them exist,
 * differ between C libraries, and a reference would keep a program from
 * starting where one is missing.
 */
#include "agent/sys/hooks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "agent/sys/linkmap.h"

#include "agent/sys/poison.h"

static int (*set_specific)(pthread_key_t, const void *);
static pthread_key_t end_key;
/* Stored with release after the two above; pairs with sp_hooks_watch_thread. */
static _Atomic int has_end_key;

/* musl has no __register_atfork, and glibc exports no pthread_atfork. */
static void install_fork_handler(void (*forked)(void))
{
	int (*with_handle)(void (*)(void), void (*)(void), void (*)(void),
			   void *);
	int (*without)(void (*)(void), void (*)(void), void (*)(void));
	void *address = sp_linkmap_libc("__register_atfork");

	if (address) {
		memcpy(&with_handle, &address, sizeof(address));
		with_handle(NULL, NULL, forked, NULL);
		return;
	}
	address = sp_linkmap_libc("pthread_atfork");
	if (!address)
		return;
	memcpy(&without, &address, sizeof(address));
	without(NULL, NULL, forked);
}

void sp_hooks_install(void (*forked)(void), void (*thread_ended)(void *))
{
	static bool is_installed;
	int (*create)(pthread_key_t *, void (*)(void *));
	void *address = sp_linkmap_libc("pthread_key_create");
	void *setter = sp_linkmap_libc("pthread_setspecific");

	if (is_installed)
		return;
	is_installed = true;
	install_fork_handler(forked);
	if (!address || !setter)
		return;
	memcpy(&create, &address, sizeof(address));
	memcpy(&set_specific, &setter, sizeof(setter));
	if (create(&end_key, thread_ended) == 0)
		atomic_store_explicit(&has_end_key, 1, memory_order_release);
}

bool sp_hooks_watch_thread(void *arg)
{
	return atomic_load_explicit(&has_end_key, memory_order_acquire) &&
	       set_specific(end_key, arg) == 0;
}
