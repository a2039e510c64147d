/* SPDX-License-Identifier: MIT */
/*
 * A profiler as one would write it in an afternoon, with one mistake, the one
 * that NAIVE in the environment names.  The tests of hazards run their programs
 * under it too: a hazard that does not hurt it is not provoked.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../../support/arch.h"

#define MIB          ((size_t)1 << 20)
#define HEADER_BYTES 16

void *__libc_malloc(size_t n);

static void *(*real_malloc)(size_t);
static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static void (*real_free)(void *);
static const char *mistake = "";
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int log_fd = -1;
static char *table;
static size_t table_at;
static volatile int is_ready;

static void take_mutex(void)
{
	pthread_mutex_lock(&mutex);
}

static void give_mutex(void)
{
	pthread_mutex_unlock(&mutex);
}

static int makes(const char *which)
{
	return strcmp(mistake, which) == 0;
}

static void *idle(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void on_signal(int number)
{
	(void)number;
}

static void reserve(size_t bytes)
{
	table = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (table == MAP_FAILED)
		abort();
}

static void map_sparse(void)
{
	if (ftruncate(log_fd, (off_t)(64 * MIB)))
		abort();
	table = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, log_fd,
		     0);
	if (table == MAP_FAILED)
		abort();
}

static void __attribute__((constructor)) construct(void)
{
	const char *name = getenv("NAIVE"), *out = getenv("NAIVE_OUT");
	pthread_t thread;

	if (out)
		log_fd = open(out, O_RDWR | O_CREAT, 0644);
	if (name)
		mistake = name;
	if (makes("thread") && pthread_create(&thread, NULL, idle, NULL))
		abort();
	if (makes("handler"))
		signal(SIGPROF, on_signal);
	if (makes("reserve"))
		reserve(MIB << 13);
	if (makes("table"))
		reserve(64 * MIB);
	if (makes("sparse"))
		map_sparse();
	if (makes("early")) {
		is_ready = 1;
		usleep(1000);
		reserve(64 * MIB);
	}
	if (makes("atfork"))
		pthread_atfork(take_mutex, give_mutex, give_mutex);
}

static void resolve(void)
{
	void *address;

#define RESOLVE(name)                                                          \
	address = dlsym(RTLD_NEXT, #name);                                     \
	memcpy(&real_##name, &address, sizeof(address))
	RESOLVE(calloc);
	RESOLVE(realloc);
	RESOLVE(free);
	RESOLVE(malloc);
}

static int nobody(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)info;
	(void)size;
	(void)arg;
	return 0;
}

static void divide(void)
{
	volatile double one = 1, three = 3, third = one / three;

	(void)third;
}

static void go_deep(void)
{
	volatile char buffer[6000];

	for (size_t i = 0; i < sizeof(buffer); i += 64)
		buffer[i] = 1;
}

static void store_vector(void)
{
	char buffer[16] __attribute__((aligned(16)));

	TEST_STORE_VECTOR(buffer);
}

static void __attribute__((optimize("no-omit-frame-pointer")))
follow_frame_pointers(void)
{
	void **frame = __builtin_frame_address(0);

	for (int depth = 0; frame && depth < 100; depth++)
		frame = *(void **volatile *)frame;
}

static void ask_the_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
}

static void write_log(void)
{
	static const char text[4096] = "naive";

	if (write(log_fd, text, sizeof(text)) < 0)
		abort();
}

static void say(void)
{
	if (write(STDERR_FILENO, "naive\n", 6) < 0)
		errno = 0;
}

static void open_log(void)
{
	int fd = open(getenv("NAIVE_OUT"), O_RDWR);

	if (fd < 0)
		abort();
	close(fd);
}

static void record(void)
{
	if (!*mistake)
		return;
	if (makes("errno"))
		errno = EAGAIN;
	else if (makes("float"))
		divide();
	else if (makes("mask"))
		signal(SIGUSR2, SIG_IGN);
	else if (makes("deep"))
		go_deep();
	else if (makes("vector"))
		store_vector();
	else if (makes("frames"))
		follow_frame_pointers();
	else if (makes("cancel"))
		pthread_testcancel();
	else if (makes("loader"))
		dl_iterate_phdr(nobody, NULL);
	else if (makes("clock"))
		ask_the_clock();
	else if (makes("write"))
		write_log();
	else if (makes("open"))
		open_log();
	else if (makes("sparse"))
		table[table_at += 512] = 1;
	else if (makes("early") && is_ready)
		table[0] = 1;
	else if (makes("say"))
		say();
	else if (makes("syscall"))
		syscall(SYS_getpid);
}

static int locks(void)
{
	return makes("lock") || makes("atfork");
}

void *malloc(size_t n)
{
	char *p;

	if (!real_malloc)
		resolve();
	if (locks())
		take_mutex();
	record();
	p = real_malloc(n + HEADER_BYTES);
	if (makes("trusting"))
		*(volatile char *)p = 0;
	if (locks())
		give_mutex();
	return p && makes("header") ? p + HEADER_BYTES : p;
}

void *calloc(size_t n, size_t size)
{
	if (!real_malloc)
		resolve();
	return makes("header") ? memset(malloc(n * size), 0, n * size)
			       : real_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	void *q;

	if (!real_malloc)
		resolve();
	if (!makes("header"))
		return real_realloc(p, n);
	q = malloc(n);
	return p ? memcpy(q, p, n) : q;
}

void free(void *p)
{
	if (!real_malloc)
		resolve();
	if (p && *mistake)
		record();
	if (p && makes("header"))
		p = (char *)p - HEADER_BYTES;
	real_free(p);
}
