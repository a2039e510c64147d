/* SPDX-License-Identifier: MIT */
/*
 * A file appears once it is complete: abandoned, interrupted, name taken, no
 * space.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/text_checks.h"
#include "text/output.h"

struct place {
	char dir[64];
	char path[96];
};

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	strcpy(p->dir, "/tmp/sampleprof-output-XXXXXX");
	if (!mkdtemp(p->dir))
		return -1;
	snprintf(p->path, sizeof(p->path), "%s/out", p->dir);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;
	int r;

	unlink(p->path);
	r = rmdir(p->dir); /* nothing else is in it */
	free(p);
	return r;
}

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	fputs(text, f);
	fclose(f);
}

static void assert_content(const char *path, const char *want)
{
	char text[64] = "";
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	assert_string_equal(text, want);
}

static void test_appears_when_complete(void **state)
{
	struct place *p = *state;
	struct sp_output *o;

	for (int round = 0; round < 2; round++) {
		assert_int_equal(sp_output_open(p->path, &o, NULL), 0);
		fputs(round ? "new" : "old", o->stream);
		fflush(o->stream);
		if (round)
			assert_content(p->path, "old");
		else
			assert_int_equal(access(p->path, F_OK), -1);
		assert_int_equal(sp_output_commit(o, NULL), 0);
		assert_content(p->path, round ? "new" : "old");
	}
}

static void test_abandoned(void **state)
{
	struct place *p = *state;
	struct sp_output *o;

	put(p->path, "old");
	assert_int_equal(sp_output_open(p->path, &o, NULL), 0);
	fputs("new", o->stream);
	sp_output_abandon(o);
	assert_content(p->path, "old");
}

/* As if killed: nobody is there to clean up. */
static void test_interrupted(void **state)
{
	struct place *p = *state;
	int probe = open(p->dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	pid_t child;
	int status;

	if (probe < 0)
		skip(); /* no such files here */
	close(probe);
	child = fork();
	if (child == 0) {
		struct sp_output *o;

		if (sp_output_open(p->path, &o, NULL) < 0)
			_exit(1);
		fputs("half", o->stream);
		fflush(o->stream);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(rmdir(p->dir), 0);
	assert_int_equal(mkdir(p->dir, 0700), 0);
}

/* The names that would be taken first are taken. */
static void test_name_is_taken(void **state)
{
	struct place *p = *state;
	struct sp_output *o;
	char other[160];

	put(p->path, "old");
	snprintf(other, sizeof(other), "%s.tmp-%ld-0", p->path, (long)getpid());
	put(other, "other");
	assert_int_equal(sp_output_open(p->path, &o, NULL), 0);
	fputs("new", o->stream);
	assert_int_equal(sp_output_commit(o, NULL), 0);
	assert_content(p->path, "new");
	assert_content(other, "other");
	assert_int_equal(unlink(other), 0);
}

static void test_no_space(void **state)
{
	struct sp_error err = {0};
	struct sp_output *o;

	(void)state;
	assert_int_equal(sp_output_open("/dev/full", &o, NULL), 0);
	for (int i = 0; i < 100000; i++)
		putc('x', o->stream);
	assert_int_equal(sp_output_commit(o, &err), -ENOSPC);
	assert_has(err.message, "No space left");
	assert_string_equal(err.file, "/dev/full");
}

/* A directory came meanwhile. */
static void test_cannot_replace(void **state)
{
	struct place *p = *state;
	struct sp_error err = {0};
	struct sp_output *o;

	assert_int_equal(sp_output_open(p->path, &o, NULL), 0);
	assert_int_equal(mkdir(p->path, 0700), 0);
	assert_int_equal(sp_output_commit(o, &err), -EISDIR);
	assert_has(err.message, "cannot write it");
	assert_int_equal(rmdir(p->path), 0);
}

static void test_cannot_create(void **state)
{
	struct sp_error err = {0};
	struct sp_output *o;

	(void)state;
	assert_int_equal(sp_output_open("/nonexistent/out", &o, &err), -ENOENT);
	assert_has(err.message, "cannot create it");
	assert_int_equal(sp_output_open("/tmp", &o, &err), -EISDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_appears_when_complete,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_abandoned, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_interrupted, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_name_is_taken, setup,
						teardown),
		cmocka_unit_test(test_no_space),
		cmocka_unit_test_setup_teardown(test_cannot_replace, setup,
						teardown),
		cmocka_unit_test(test_cannot_create),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
