/* SPDX-License-Identifier: MIT */
/* hazard_loader SCENARIO LIBRARY...: libraries that come, go, and have an
 * allocator of their own. */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>

#include "hazard.h"

static void *function_of(void *library, const char *name)
{
	void *address = dlsym(library, name);

	EXPECT(address);
	return address;
}

/* What the library makes is freed here, and the other way round. */
static void exchange(void *library)
{
	char *(*make)(size_t);
	void (*drop)(void *);
	void *address;

	address = function_of(library, "plugin_make");
	memcpy(&make, &address, sizeof(address));
	address = function_of(library, "plugin_drop");
	memcpy(&drop, &address, sizeof(address));
	for (size_t i = 1; i < 500; i++) {
		char *theirs = make(i * 7), *ours = malloc(i * 9);

		EXPECT(theirs && ours);
		theirs[i * 7 - 1] = 1;
		theirs = realloc(theirs, i * 20);
		EXPECT(theirs && theirs[i * 7 - 1] == 1);
		free(theirs);
		drop(ours);
	}
	puts("exchanged");
}

static void open_and_exchange(const char *path, int flags)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);

	EXPECT(library);
	exchange(library);
	EXPECT(!dlclose(library));
}

static void do_deepbind(char **arguments)
{
	open_and_exchange(arguments[0], RTLD_DEEPBIND);
}

/* In the library's own allocator, and what it gets from the C library. */
static void do_own_allocator(char **arguments)
{
	void *library = dlopen(arguments[0], RTLD_NOW | RTLD_LOCAL);
	int (*use)(int);
	void *address;

	EXPECT(library);
	address = function_of(library, "plugin_use");
	memcpy(&use, &address, sizeof(address));
	printf("used %d\n", use(500));
	EXPECT(!dlclose(library));
}

/* A second C library with an allocator of its own. */
static void do_namespace(char **arguments)
{
	for (int i = 0; i < 3; i++) {
		void *library = dlmopen(LM_ID_NEWLM, arguments[0], RTLD_NOW);
		void (*run)(int);
		void *address;

		EXPECT(library);
		address = function_of(library, "plugin_run");
		memcpy(&run, &address, sizeof(address));
		run(100);
		hazard_work(10);
		EXPECT(!dlclose(library));
	}
	puts("closed");
}

/* ---- storm ---- */

static atomic_int stop;

static void *load_and_unload(void *path)
{
	while (!stop) {
		void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		void (*run)(int);
		void *address;

		EXPECT(library);
		address = function_of(library, "plugin_run");
		memcpy(&run, &address, sizeof(address));
		run(3);
		EXPECT(!dlclose(library));
	}
	return NULL;
}

static int allocate_in_callback(struct dl_phdr_info *info, size_t size,
				void *arg)
{
	(void)info;
	(void)size;
	(void)arg;
	hazard_work(1);
	return 0;
}

static void *iterate(void *arg)
{
	while (!stop)
		dl_iterate_phdr(allocate_in_callback, NULL);
	return arg;
}

static void *look_up(void *arg)
{
	while (!stop) {
		Dl_info info;

		EXPECT(!dlsym(RTLD_DEFAULT, "no_such_function"));
		EXPECT(dlerror());
		EXPECT(dladdr((void *)iterate, &info));
	}
	return arg;
}

static void *work_on(void *arg)
{
	while (!stop)
		hazard_work(1);
	return arg;
}

/* Two threads load and unload, one walks the list and allocates under its
 * lock, one looks names up, four allocate; for ARGUMENT milliseconds, and
 * HUNG_S later SIGALRM. */
static void do_storm(char **arguments)
{
	unsigned int ms = (unsigned int)atoi(arguments[2]);
	pthread_t threads[8];
	int n = 0;

	alarm(ms / 1000 + HUNG_S);
	for (int i = 0; i < 2; i++)
		EXPECT(!pthread_create(&threads[n++], NULL, load_and_unload,
				       arguments[i]));
	EXPECT(!pthread_create(&threads[n++], NULL, iterate, NULL));
	EXPECT(!pthread_create(&threads[n++], NULL, look_up, NULL));
	while (n < 8)
		EXPECT(!pthread_create(&threads[n++], NULL, work_on, NULL));
	usleep(ms * 1000);
	stop = 1;
	while (n--)
		EXPECT(!pthread_join(threads[n], NULL));
	puts("calm");
}

/* ---- registered frames ---- */

/* The least that libgcc takes for a table: one CIE, and one FDE for a function
 * that is nowhere near. */
static const struct {
	uint32_t cie_bytes, cie_id;
	uint8_t version, augmentation, code_align, data_align, ra, pad[3];
	uint32_t fde_bytes, fde_cie;
	uint64_t start, bytes;
	uint32_t end;
} __attribute__((packed)) eh_frame = {
	12, 0, 1, 0, 1, 0x78, 16, {0}, 20, 20, 0x1000, 16, 0,
};

static void *register_and_forget(void *library)
{
	void (*add)(const void *), (*drop)(const void *);
	void *address;

	address = function_of(library, "__register_frame");
	memcpy(&add, &address, sizeof(address));
	address = function_of(library, "__deregister_frame");
	memcpy(&drop, &address, sizeof(address));
	while (!stop) {
		add(&eh_frame);
		drop(&eh_frame);
	}
	return NULL;
}

/* As just-in-time compilers do: libgcc's unwinder takes a mutex for it, and
 * allocates under it. */
static void do_registered_frames(char **arguments)
{
	void *library = dlopen("libgcc_s.so.1", RTLD_NOW);
	pthread_t threads[3];

	(void)arguments;
	EXPECT(library);
	alarm(HUNG_S);
	EXPECT(!pthread_create(&threads[0], NULL, register_and_forget,
			       library));
	for (int i = 1; i < 3; i++)
		EXPECT(!pthread_create(&threads[i], NULL, work_on, NULL));
	usleep(300000);
	stop = 1;
	for (int i = 0; i < 3; i++)
		EXPECT(!pthread_join(threads[i], NULL));
	puts("registered");
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{"deepbind", do_deepbind},
		{"own_allocator", do_own_allocator},
		{"namespace", do_namespace},
		{"storm", do_storm},
		{"registered_frames", do_registered_frames},
		{NULL, NULL},
	};

	(void)argc;
	return hazard_run(scenarios, argv);
}
