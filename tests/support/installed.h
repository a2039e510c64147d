/* SPDX-License-Identifier: MIT */
#pragma once

#include <dlfcn.h>
#include <glob.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/unwind/modules.h"
#include "support/test.h"

/*
 * A test once more for every shared library of this machine, each in a process
 * of its own, which has the library's path in the environment: some libraries
 * end a program that loads them so late.
 */

#define INSTALLED_ONE  "SAMPLEPROF_TEST_OBJECT"
#define INSTALLED_SUMS 6

/* In such a process: the library; else NULL. */
static inline const char *installed_one(void)
{
	return getenv(INSTALLED_ONE);
}

static inline void installed_load(void)
{
	if (!dlopen(installed_one(), RTLD_LAZY))
		_exit(0);
	puts("loaded");
	fflush(stdout);
}

/* Is that the object to look at?  Outside of such a process all are. */
static inline bool installed_is(const char *path)
{
	struct stat wanted, found;

	return !installed_one() ||
	       (stat(installed_one(), &wanted) == 0 &&
		stat(path, &found) == 0 && wanted.st_dev == found.st_dev &&
		wanted.st_ino == found.st_ino);
}

/* The end of the test in such a process: all was right, and it counted that. */
static inline void installed_tell(const unsigned long counts[INSTALLED_SUMS])
{
	printf("\nsums");
	for (int i = 0; i < INSTALLED_SUMS; i++)
		printf(" %lu", counts[i]);
	puts("");
	fflush(stdout);
}

/* What the process of one library has written. */
static inline void installed_run(const char *test, const char *path, char *text,
				 size_t bytes)
{
	const int fd = memfd_create("output", MFD_CLOEXEC);
	pid_t child;
	ssize_t n;

	assert_true(fd >= 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		dup2(fd, STDOUT_FILENO);
		dup2(fd, STDERR_FILENO);
		alarm(HUNG_S);
		setenv(INSTALLED_ONE, path, 1);
		execl("/proc/self/exe", "unit", test, (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	n = pread(fd, text, bytes - 1, 0);
	assert_true(n >= 0);
	text[n] = '\0';
	close(fd);
}

/* Adds up what they counted.  The number of libraries; fails if one does. */
static inline unsigned int installed_check(const char *test,
					   unsigned long sums[INSTALLED_SUMS])
{
	unsigned int checked = 0, failed = 0;
	char text[16384];
	glob_t found;

	assert_int_equal(glob("/usr/lib/*/lib*.so*", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		const char *path = found.gl_pathv[i], *at;
		struct stat about;

		if (lstat(path, &about) != 0 || !S_ISREG(about.st_mode))
			continue;
		installed_run(test, path, text, sizeof(text));
		at = strstr(text, "\nsums");
		if (!at && !strstr(text, "loaded\n")) {
			print_message("cannot be loaded: %s\n", path);
			continue;
		}
		checked++;
		failed += !at;
		if (!at)
			print_error("%s:\n%s\n", path, text);
		for (int k = 0; at && k < INSTALLED_SUMS; k++) {
			char *end;

			sums[k] += strtoul(at + (k ? 0 : 5), &end, 10);
			at = end;
		}
	}
	globfree(&found);
	assert_int_equal(failed, 0);
	return checked;
}

/* A module's functions as its .eh_frame_hdr lists them; NULL: it has none. */
static inline const int32_t *installed_functions(struct sp_module_entry *e,
						 uintptr_t *ret_base,
						 uint32_t *ret_count)
{
	for (unsigned int i = 0; i < e->n_phdr; i++) {
		if (e->phdr[i].p_type != PT_GNU_EH_FRAME)
			continue;
		*ret_base = e->bias + e->phdr[i].p_vaddr;
		memcpy(ret_count, (const void *)(*ret_base + 8), 4);
		return (const int32_t *)(*ret_base + 12);
	}
	return NULL;
}

/* Assembly, exceptions, and much else: whatever there is. */
static inline int installed_begin(void **state)
{
	static const char *const libraries[] = {
		"libcrypto.so.3", "libcrypto.so.1.1", "libstdc++.so.6",
		"libpython3.11.so.1.0", "libunwind.so.8"};

	(void)state;
	if (installed_one())
		installed_load();
	for (size_t i = 0;
	     !installed_one() && i < sizeof(libraries) / sizeof(*libraries);
	     i++)
		dlopen(libraries[i], RTLD_LAZY);
	sp_modules_init("/proc/self/exe");
	return sp_modules_count() ? 0 : -1;
}
