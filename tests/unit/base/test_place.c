/* SPDX-License-Identifier: MIT */
/*
 * Where a file is written, in directories where another user has been at work:
 * links, second names, pipes and files of that user, and what is exchanged
 * between the finding and the opening.  Root becomes that user, so the tests
 * about one need root.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <unistd.h>

#include "base/place.h"
#include "support/test.h"
#include "support/text_checks.h"

#define ANOTHER 65534

struct ground {
	char dir[64]; /* closed: only we can write there */
	int before;   /* the directory that was current */
	struct sp_place place;
	struct sp_error err;
};

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

/* In the directory: "open" is one that everybody can write to. */
static int setup(void **state)
{
	struct ground *g = calloc(1, sizeof(*g));

	strcpy(g->dir, "/tmp/sampleprof-place-XXXXXX");
	g->before = open(".", O_PATH | O_CLOEXEC);
	g->place.dir = -1;
	if (!mkdtemp(g->dir) || chmod(g->dir, 0755) != 0 ||
	    chdir(g->dir) != 0 || mkdir("open", 0777) != 0 ||
	    chmod("open", 0777) != 0)
		return -1;
	*state = g;
	return 0;
}

static int teardown(void **state)
{
	struct ground *g = *state;

	sp_place_close(&g->place);
	if (fchdir(g->before) != 0)
		return -1;
	close(g->before);
	nftw(g->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(g);
	return 0;
}

static int find(struct ground *g, const char *path)
{
	sp_place_close(&g->place);
	g->err = (struct sp_error){.message = ""};
	return sp_place_find(path, &g->place, &g->err);
}

/* As a file is appended to; the descriptor is closed again. */
static int open_it(struct ground *g)
{
	int fd = sp_place_open(&g->place, "it", O_WRONLY | O_APPEND | O_CREAT,
			       0600, &g->err);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static int find_and_open(struct ground *g, const char *path)
{
	const int r = find(g, path);

	return r < 0 ? r : open_it(g);
}

static void put(const char *path, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void give(const char *path)
{
	assert_int_equal(lchown(path, ANOTHER, ANOTHER), 0);
}

static void needs_root(void)
{
	if (geteuid() != 0)
		skip();
}

/* ---- paths ---- */

TEST_OF(struct ground *g, plain_paths, setup, teardown)
{
	static const char *const paths[] = {"open/new", "./open/../open//new",
					    "open/./new"};
	struct stat st;

	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(find(g, paths[i]), 0);
		assert_string_equal(g->place.name, "new");
		assert_int_equal(g->place.there.st_mode, 0);
		assert_int_equal(fstatat(g->place.dir, "../open", &st, 0), 0);
	}
	assert_int_equal(find(g, "/"), 0);
	assert_true(S_ISDIR(g->place.there.st_mode));
	assert_int_equal(find(g, "open/"), 0);
	assert_string_equal(g->place.name, ".");
	assert_true(S_ISDIR(g->place.there.st_mode));
}

TEST_OF(struct ground *g, no_place, setup, teardown)
{
	char name[NAME_MAX + 3];

	put("file", 0600);
	assert_int_equal(find(g, ""), -ENOENT);
	assert_int_equal(find(g, "none/file"), -ENOENT);
	assert_has(g->err.message, "there is no directory none");
	assert_string_equal(g->err.file, "none/file");
	assert_int_equal(find(g, "file/new"), -ENOTDIR);
	assert_int_equal(find(g, "new/"), -ENOENT);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(find(g, name), -ENAMETOOLONG);
	assert_int_equal(symlink("loop", "loop"), 0);
	assert_int_equal(find(g, "loop"), -ELOOP);
	assert_int_equal(symlink("loop/x", "loop2"), 0);
	assert_int_equal(find(g, "loop2/y"), -ELOOP);
}

/* ---- links ---- */

TEST_OF(struct ground *g, links_of_ours, setup, teardown)
{
	char text[96];

	snprintf(text, sizeof(text), "%s/open/", g->dir);
	assert_int_equal(symlink(text, "absolute"), 0);
	assert_int_equal(symlink("absolute/file", "relative"), 0);
	assert_int_equal(symlink("open/../relative", "again"), 0);
	assert_int_equal(find_and_open(g, "again"), 0);
	assert_string_equal(g->place.name, "file");
	assert_int_equal(access("open/file", F_OK), 0);
	assert_int_equal(find_and_open(g, "absolute/other"), 0);
	assert_int_equal(access("open/other", F_OK), 0);
}

TEST_OF(struct ground *g, link_of_another, setup, teardown)
{
	needs_root();
	put("victim", 0600);
	assert_int_equal(symlink("../victim", "open/last"), 0);
	assert_int_equal(symlink("../victim2", "open/dangling"), 0);
	assert_int_equal(symlink("..", "open/middle"), 0);
	assert_int_equal(symlink("open/middle", "ours"), 0);
	give("open/last");
	give("open/dangling");
	give("open/middle");
	assert_int_equal(find(g, "open/last"), -EPERM);
	assert_has(g->err.message, "its part last is a symbolic link of "
				   "another user (uid 65534)");
	assert_int_equal(find(g, "open/dangling"), -EPERM);
	assert_int_equal(find(g, "open/middle/new"), -EPERM);
	assert_has(g->err.message, "its part middle is a symbolic link");
	assert_int_equal(find(g, "ours/new"), -EPERM);
	assert_int_equal(chmod("open", 01777), 0);
	assert_int_equal(find(g, "open/last"), -EPERM);
}

/* The directory that was found is the one that counts. */
TEST_OF(struct ground *g, directory_is_exchanged, setup, teardown)
{
	assert_int_equal(mkdir("elsewhere", 0700), 0);
	assert_int_equal(find(g, "open/new"), 0);
	assert_int_equal(rename("open", "away"), 0);
	assert_int_equal(symlink("elsewhere", "open"), 0);
	assert_int_equal(open_it(g), 0);
	assert_int_equal(access("away/new", F_OK), 0);
	assert_int_equal(access("elsewhere/new", F_OK), -1);
}

TEST_OF(struct ground *g, name_is_exchanged_for_a_link, setup, teardown)
{
	assert_int_equal(find(g, "open/new"), 0);
	assert_int_equal(symlink("../victim", "open/new"), 0);
	assert_int_equal(open_it(g), -ELOOP);
	assert_int_equal(access("victim", F_OK), -1);
}

/* ---- what is opened where it is ---- */

TEST_OF(struct ground *g, second_name, setup, teardown)
{
	put("victim", 0600);
	assert_int_equal(link("victim", "open/file"), 0);
	assert_int_equal(link("victim", "file"), 0);
	assert_int_equal(find_and_open(g, "open/file"), -EPERM);
	assert_has(g->err.message, "has a second name (a hard link)");
	assert_string_equal(g->err.file, "it");
	assert_int_equal(find_and_open(g, "file"), 0);
	/* It comes between. */
	assert_int_equal(unlink("open/file"), 0);
	assert_int_equal(find(g, "open/file"), 0);
	assert_int_equal(link("victim", "open/file"), 0);
	assert_int_equal(open_it(g), -EPERM);
}

TEST_OF(struct ground *g, file_of_another, setup, teardown)
{
	needs_root();
	put("open/file", 0666);
	give("open/file");
	assert_int_equal(find_and_open(g, "open/file"), -EPERM);
	assert_has(g->err.message, "belongs to another user");
	assert_int_equal(chmod("open", 01777), 0);
	assert_int_equal(find_and_open(g, "open/file"), -EPERM);
	/* In the user's own directory it is the user's we were to write to. */
	give("open");
	assert_int_equal(find_and_open(g, "open/file"), -EPERM);
	assert_int_equal(chmod("open", 0755), 0);
	assert_int_equal(find_and_open(g, "open/file"), 0);
	assert_false(sp_place_is_closed(&g->place));
}

TEST_OF(struct ground *g, file_of_a_group, setup, teardown)
{
	needs_root();
	put("open/file", 0660);
	give("open/file");
	assert_int_equal(chown("open", 0, ANOTHER), 0);
	assert_int_equal(chmod("open", 02775), 0);
	assert_int_equal(find_and_open(g, "open/file"), 0);
	assert_int_equal(chmod("open/file", 0640), 0);
	assert_int_equal(find_and_open(g, "open/file"), -EPERM);
}

TEST_OF(struct ground *g, closed, setup, teardown)
{
	assert_int_equal(find(g, "new"), 0);
	assert_true(sp_place_is_closed(&g->place));
	assert_int_equal(find(g, "open/new"), 0);
	assert_false(sp_place_is_closed(&g->place));
	assert_int_equal(chmod("open", 0775), 0);
	assert_false(sp_place_is_closed(&g->place));
	assert_int_equal(chmod("open", 0755), 0);
	assert_true(sp_place_is_closed(&g->place));
}

/* Nobody reads it: a wait would have no end. */
TEST_OF(struct ground *g, pipe_of_another, setup, teardown)
{
	needs_root();
	assert_int_equal(mkfifo("open/pipe", 0666), 0);
	give("open/pipe");
	assert_int_equal(find_and_open(g, "open/pipe"), -EPERM);
	assert_has(g->err.message, "is a pipe of another user");
	/* It comes between. */
	assert_int_equal(find(g, "open/later"), 0);
	assert_int_equal(rename("open/pipe", "open/later"), 0);
	assert_true(open_it(g) < 0);
}

TEST_OF(struct ground *g, pipe_of_ours, setup, teardown)
{
	int reader;

	assert_int_equal(mkfifo("open/pipe", 0600), 0);
	reader = open("open/pipe", O_RDONLY | O_NONBLOCK);
	assert_true(reader >= 0);
	assert_int_equal(find_and_open(g, "open/pipe"), 0);
	close(reader);
}

/* As /dev/stdout leads to it. */
TEST_OF(struct ground *g, given, setup, teardown)
{
	char path[64], bytes[8] = "";
	int ends[2], fd;

	assert_int_equal(pipe(ends), 0);
	snprintf(path, sizeof(path), "/dev/fd/%d", ends[1]);
	assert_int_equal(find(g, path), 0);
	assert_true(g->place.is_given);
	fd = sp_place_open(&g->place, path, O_WRONLY | O_APPEND, 0, &g->err);
	assert_int_equal(write(fd, "abc", 3), 3);
	assert_int_equal(read(ends[0], bytes, sizeof(bytes)), 3);
	assert_string_equal(bytes, "abc");
	close(fd);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(find(g, "/proc/self/cwd/open/new"), 0);
	assert_false(g->place.is_given);
	assert_int_equal(open_it(g), 0);
	assert_int_equal(access("open/new", F_OK), 0);
	assert_int_equal(find_and_open(g, "/dev/null"), 0);
}

TEST_MAIN(NULL, NULL)
