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
		assert_int_equal(sp_output_open(p->path, 0600, &o, NULL), 0);
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
	assert_int_equal(sp_output_open(p->path, 0600, &o, NULL), 0);
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

		if (sp_output_open(p->path, 0600, &o, NULL) < 0)
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

/* ---- modes ---- */

static void write_with(const char *path, mode_t mode)
{
	struct sp_output *o;

	assert_int_equal(sp_output_open(path, mode, &o, NULL), 0);
	fputs("new", o->stream);
	assert_int_equal(sp_output_commit(o, NULL), 0);
	assert_content(path, "new");
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 0777;
}

TEST_OF(struct place *p, modes_of_new_files, setup, teardown)
{
	static const struct {
		mode_t umask, mode, want;
	} cases[] = {
		{0, SP_OUTPUT_PRIVATE, 0600},    {022, SP_OUTPUT_PRIVATE, 0600},
		{0277, SP_OUTPUT_PRIVATE, 0400}, {0, SP_OUTPUT_TEXT, 0666},
		{027, SP_OUTPUT_TEXT, 0640},
	};
	const mode_t before = umask(0);

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		umask(cases[i].umask);
		write_with(p->path, cases[i].mode);
		assert_int_equal(mode_of(p->path), cases[i].want);
		unlink(p->path);
	}
	umask(before);
}

/* What was given to others stays so; but where others can give names, the file
 * may be any of ours, and only less counts. */
TEST_OF(struct place *p, modes_of_replaced_files, setup, teardown)
{
	put(p->path, "old");
	for (mode_t mode = 0400; mode <= 0644; mode += 0244) {
		chmod(p->path, mode);
		write_with(p->path, SP_OUTPUT_PRIVATE);
		assert_int_equal(mode_of(p->path), mode);
	}
	chmod(p->dir, 0777);
	write_with(p->path, SP_OUTPUT_PRIVATE);
	assert_int_equal(mode_of(p->path), 0600);
	chmod(p->path, 0400);
	write_with(p->path, SP_OUTPUT_PRIVATE);
	assert_int_equal(mode_of(p->path), 0400);
}

TEST_OF(struct place *p, mode_of_another, setup, teardown)
{
	struct stat st;

	if (geteuid() != 0)
		skip(); /* it takes root to give a file away */
	put(p->path, "old");
	chmod(p->path, 0666);
	assert_int_equal(chown(p->path, 65534, 65534), 0);
	write_with(p->path, SP_OUTPUT_PRIVATE);
	assert_int_equal(mode_of(p->path), 0600);
	assert_int_equal(stat(p->path, &st), 0);
	assert_int_equal(st.st_uid, 0);
}

/* Where files without a name cannot be given one, there is a file beside it
 * from the beginning. */
TEST_OF(struct place *p, without_proc, setup, teardown)
{
	int status;
	pid_t child;

	if (geteuid() != 0)
		skip(); /* it takes root to leave /proc behind */
	child = fork();
	if (child == 0) {
		struct sp_output *o;

		umask(0);
		if (chroot(p->dir) != 0 || chdir("/") != 0 ||
		    sp_output_open("out", 0666, &o, NULL) < 0 ||
		    strncmp(o->temporary, "out.tmp-", 8) != 0 ||
		    access(o->temporary, F_OK) != 0 || access("out", F_OK) == 0)
			_exit(1);
		fputs("new", o->stream);
		_exit(sp_output_commit(o, NULL) < 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_content(p->path, "new");
	assert_int_equal(mode_of(p->path), 0666);
}

/* ---- what others exchange ---- */

TEST_OF(struct place *p, link_of_another, setup, teardown)
{
	struct sp_error err = {0};
	struct sp_output *o;
	char victim[160];

	if (geteuid() != 0)
		skip();
	snprintf(victim, sizeof(victim), "%s/victim", p->dir);
	put(victim, "precious");
	assert_int_equal(symlink(victim, p->path), 0);
	assert_int_equal(lchown(p->path, 65534, 65534), 0);
	assert_int_equal(sp_output_open(p->path, 0600, &o, &err), -EPERM);
	assert_has(err.message, "symbolic link of another user");
	assert_content(victim, "precious");
	/* One of ours is what it leads to. */
	assert_int_equal(lchown(p->path, 0, 0), 0);
	write_with(p->path, 0600);
	assert_content(victim, "new");
	assert_int_equal(unlink(victim), 0);
}

/* Each of these gets the name when all is written: it is replaced. */
TEST_OF(struct place *p, name_is_exchanged, setup, teardown)
{
	char victim[160];

	snprintf(victim, sizeof(victim), "%s/victim", p->dir);
	put(victim, "precious");
	for (int i = 0; i < 3; i++) {
		struct sp_output *o;

		assert_int_equal(sp_output_open(p->path, 0600, &o, NULL), 0);
		fputs("new", o->stream);
		unlink(p->path);
		assert_int_equal(i == 0   ? symlink(victim, p->path)
				 : i == 1 ? link(victim, p->path)
					  : mkfifo(p->path, 0600),
				 0);
		assert_int_equal(sp_output_commit(o, NULL), 0);
		assert_content(p->path, "new");
		assert_content(victim, "precious");
	}
	assert_int_equal(unlink(victim), 0);
}

/* The file goes where the directory went that was opened. */
TEST_OF(struct place *p, directory_is_exchanged, setup, teardown)
{
	char away[160], victims[160], victim[200], path[200];
	struct sp_output *o;

	snprintf(away, sizeof(away), "%s-away", p->dir);
	snprintf(victims, sizeof(victims), "%s-victims", p->dir);
	snprintf(victim, sizeof(victim), "%s/out", victims);
	snprintf(path, sizeof(path), "%s/out", away);
	assert_int_equal(mkdir(victims, 0700), 0);
	put(victim, "precious");
	assert_int_equal(sp_output_open(p->path, 0600, &o, NULL), 0);
	fputs("new", o->stream);
	assert_int_equal(rename(p->dir, away), 0);
	assert_int_equal(symlink(victims, p->dir), 0);
	assert_int_equal(sp_output_commit(o, NULL), 0);
	assert_content(victim, "precious");
	assert_content(path, "new");
	unlink(p->dir);
	unlink(path);
	unlink(victim);
	assert_int_equal(rmdir(victims), 0);
	assert_int_equal(rename(away, p->dir), 0);
}

/* ---- what cannot be written ---- */

TEST(no_space)
{
	struct sp_error err = {0};
	struct sp_output *o;

	assert_int_equal(sp_output_open("/dev/full", 0600, &o, NULL), 0);
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

	assert_int_equal(sp_output_open(p->path, 0600, &o, NULL), 0);
	assert_int_equal(mkdir(p->path, 0700), 0);
	assert_int_equal(sp_output_commit(o, &err), -EISDIR);
	assert_has(err.message, "cannot write it");
	assert_int_equal(rmdir(p->path), 0);
}

TEST(cannot_create)
{
	struct sp_error err = {0};
	struct sp_output *o;

	assert_int_equal(sp_output_open("/nonexistent/out", 0600, &o, &err),
			 -ENOENT);
	assert_has(err.message, "cannot create it");
	assert_int_equal(sp_output_open("/tmp", 0600, &o, &err), -EISDIR);
}

TEST_MAIN(NULL, NULL)
