/* SPDX-License-Identifier: MIT */
/*
 * A file appears once it is complete: abandoned, interrupted, name taken, no
 * space.
 */

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test.h"
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

TEST_OF(struct place *p, appears_when_complete, setup, teardown)
{
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

TEST_OF(struct place *p, abandoned, setup, teardown)
{
	struct sp_output *o;

	put(p->path, "old");
	assert_int_equal(sp_output_open(p->path, &o, NULL), 0);
	fputs("new", o->stream);
	sp_output_abandon(o);
	assert_content(p->path, "old");
}

/* As if killed: nobody is there to clean up. */
TEST_OF(struct place *p, interrupted, setup, teardown)
{
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
TEST_OF(struct place *p, name_is_taken, setup, teardown)
{
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

TEST(no_space)
{
	struct sp_error err = {0};
	struct sp_output *o;

	assert_int_equal(sp_output_open("/dev/full", &o, NULL), 0);
	for (int i = 0; i < 100000; i++)
		putc('x', o->stream);
	assert_int_equal(sp_output_commit(o, &err), -ENOSPC);
	assert_has(err.message, "No space left");
	assert_string_equal(err.file, "/dev/full");
}

/* A directory came meanwhile. */
TEST_OF(struct place *p, cannot_replace, setup, teardown)
{
	struct sp_error err = {0};
	struct sp_output *o;

	assert_int_equal(sp_output_open(p->path, &o, NULL), 0);
	assert_int_equal(mkdir(p->path, 0700), 0);
	assert_int_equal(sp_output_commit(o, &err), -EISDIR);
	assert_has(err.message, "cannot write it");
	assert_int_equal(rmdir(p->path), 0);
}

TEST(cannot_create)
{
	struct sp_error err = {0};
	struct sp_output *o;

	assert_int_equal(sp_output_open("/nonexistent/out", &o, &err), -ENOENT);
	assert_has(err.message, "cannot create it");
	assert_int_equal(sp_output_open("/tmp", &o, &err), -EISDIR);
}

TEST_MAIN(NULL, NULL)
