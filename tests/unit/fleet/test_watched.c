/* SPDX-License-Identifier: MIT */
/*
 * The backlog of a watched directory in which somebody else exchanges names
 * between the look and the keeping: what was seen is kept, and nothing else.
 */
#include <errno.h>
#include <ftw.h>
#include <unistd.h>

#include "fleet/watched.h"
#include "support/test.h"
#include "support/text_checks.h"

struct watched {
	char dir[64]; /* with a slash */
	char file[96], other[96], backlog[96];
	struct sp_watched_files files;
};

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

/* What begins as a packed file is watched. */
static void put(const char *path)
{
	static const unsigned char magic[] = {0x28, 0xb5, 0x2f, 0xfd};
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fwrite(magic, 1, sizeof(magic), f);
	fclose(f);
}

static void ignore_file(void *arg, const struct sp_watched *file)
{
	(void)arg, (void)file;
}

static int setup(void **state)
{
	struct watched *w = calloc(1, sizeof(*w));

	strcpy(w->dir, "/tmp/sampleprof-watched-XXXXXX");
	if (!mkdtemp(w->dir))
		return -1;
	strcat(w->dir, "/");
	snprintf(w->file, sizeof(w->file), "%sfile", w->dir);
	snprintf(w->other, sizeof(w->other), "%s.other", w->dir);
	snprintf(w->backlog, sizeof(w->backlog), "%s.sampleprof-backlog",
		 w->dir);
	put(w->file);
	if (sp_watched_init(&w->files, w->dir, 0, NULL) < 0 ||
	    sp_watched_look(&w->files, ignore_file, NULL, NULL) < 0 ||
	    w->files.n != 1)
		return -1;
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct watched *w = *state;

	sp_watched_done(&w->files);
	nftw(w->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(w);
	return 0;
}

static nlink_t links_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_nlink;
}

TEST_OF(struct watched *w, kept_and_released, setup, teardown)
{
	struct sp_watched *f = w->files.list[0];

	assert_int_equal(sp_watched_keep(&w->files, f, NULL), 0);
	assert_int_equal(links_of(w->file), 2);
	sp_watched_release(&w->files, f);
	assert_int_equal(links_of(w->file), 1);
	assert_int_equal(rmdir(w->backlog), 0);
}

TEST_OF(struct watched *w, another_file_has_the_name, setup, teardown)
{
	put(w->other);
	assert_int_equal(rename(w->other, w->file), 0);
	assert_int_equal(sp_watched_keep(&w->files, w->files.list[0], NULL), 0);
	assert_int_equal(links_of(w->file), 1);
}

TEST_OF(struct watched *w, backlog_became_a_link, setup, teardown)
{
	struct sp_watched *f = w->files.list[0];
	struct sp_error err = {.message = ""};
	char kept[160];

	assert_int_equal(sp_watched_keep(&w->files, f, NULL), 0);
	snprintf(kept, sizeof(kept), "%s/%ju.file", w->other,
		 (uintmax_t)f->ino);
	assert_int_equal(rename(w->backlog, w->other), 0);
	assert_int_equal(symlink(".other", w->backlog), 0);
	/* It may lead to any directory of ours. */
	sp_watched_release(&w->files, f);
	assert_int_equal(access(kept, F_OK), 0);
	assert_int_equal(sp_watched_keep(&w->files, f, &err), -EPERM);
	assert_has(err.message, "is not a directory that only this user can");
}

TEST_MAIN(NULL, NULL)
