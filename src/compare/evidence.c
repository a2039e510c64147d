/* SPDX-License-Identifier: MIT */
#include "compare/evidence.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text/output.h"
#include "text/text.h"

static int fail_output(const char *path, const char *what, struct sp_error *err)
{
	const int code = errno;

	return sp_error_set(err, -code, path, "cannot %s: %s", what,
			    strerror(code));
}

static int copy_bytes(int fd, FILE *out, const char *from, struct sp_error *err)
{
	char buffer[65536];
	ssize_t n;

	do {
		n = read(fd, buffer, sizeof(buffer));
		if (n > 0)
			fwrite(buffer, 1, (size_t)n, out);
	} while (n > 0 || (n < 0 && errno == EINTR));
	return n < 0 ? fail_output(from, "read", err) : 0;
}

/* Into DIR/PREFIX-NUMBER-NAME. */
static int keep_copy(const char *dir, const char *prefix, size_t number,
		     const char *from, struct sp_error *err)
{
	struct sp_output *out;
	char *to;
	int fd, r;

	if (asprintf(&to, "%s/%s-%zu-%s", dir, prefix, number,
		     sp_text_base_name(from)) < 0)
		return sp_error_memory(err, NULL);
	fd = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		free(to);
		return fail_output(from, "open", err);
	}
	r = sp_output_open(to, SP_OUTPUT_PRIVATE, &out, err);
	if (r >= 0) {
		r = copy_bytes(fd, out->stream, from, err);
		if (r < 0)
			sp_output_abandon(out);
		else
			r = sp_output_commit(out, err);
	}
	if (r < 0 && err->file == to)
		err->file = dir;
	free(to);
	close(fd);
	return r;
}

static int keep_text(const struct sp_result *result, const char *name,
		     int (*write)(FILE *out, const struct sp_result *result),
		     struct sp_error *err)
{
	struct sp_output *out;
	char *to;
	int r;

	if (asprintf(&to, "%s/%s", result->evidence, name) < 0)
		return sp_error_memory(err, NULL);
	r = sp_output_open(to, SP_OUTPUT_TEXT, &out, err);
	if (r >= 0) {
		/* neither of the two needs memory */
		write(out->stream, result);
		r = sp_output_commit(out, err);
	}
	if (r < 0 && err->file == to)
		err->file = result->evidence;
	free(to);
	return r;
}

static int make_directory(const char *dir, struct sp_error *err)
{
	struct sp_place place;
	int r = sp_place_find(dir, &place, err);

	if (r >= 0 && !place.there.st_mode &&
	    mkdirat(place.dir, place.name, 0777) < 0 && errno != EEXIST)
		r = fail_output(dir, "make the directory", err);
	sp_place_close(&place);
	return r;
}

int sp_evidence_keep(const struct sp_result *result, const char *const *new,
		     size_t n_new, const char *const *old, size_t n_old,
		     struct sp_error *err)
{
	const char *dir = result->evidence;
	int r = make_directory(dir, err);

	for (size_t i = 0; r >= 0 && i < n_new; i++)
		r = keep_copy(dir, "new", i + 1, new[i], err);
	for (size_t i = 0; r >= 0 && i < n_old; i++)
		r = keep_copy(dir, "old", i + 1, old[i], err);
	if (r >= 0)
		r = keep_text(result, "check.txt", sp_check_text_write, err);
	if (r >= 0)
		r = keep_text(result, "check.json", sp_check_json_write, err);
	return r;
}
