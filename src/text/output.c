/* SPDX-License-Identifier: MIT */
#include "text/output.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of files that others left, which would stand in the way. */
#define MAX_NAMES 1000

/* stdio forgets why a write failed. */
static ssize_t write_all(void *cookie, const char *bytes, size_t n)
{
	struct sp_output *output = cookie;
	size_t done = 0;

	while (done < n && !output->error) {
		ssize_t r = write(output->fd, bytes + done, n - done);

		if (r >= 0)
			done += (size_t)r;
		else if (errno != EINTR)
			output->error = errno;
	}
	return output->error ? 0 : (ssize_t)n;
}

static int fail_output(const char *path, int code, const char *what,
		       struct sp_error *err)
{
	return sp_error_set(err, -code, path, "cannot %s: %s", what,
			    strerror(code));
}

/* It is the directory that keeps a new file out, if it says so by itself. */
static int fail_create(const char *path, int code, struct sp_error *err)
{
	char *copy = strdup(path);
	const char *dir = copy ? dirname(copy) : "";
	struct stat st;

	if (*dir && stat(dir, &st) < 0 && errno == ENOENT)
		sp_error_set(err, -code, path,
			     "cannot create it: there is no directory %.150s",
			     dir);
	else if (*dir && access(dir, W_OK | X_OK) < 0)
		sp_error_set(err, -code, path,
			     "cannot create it: the directory %.150s is not "
			     "writable (%s)",
			     dir, strerror(errno));
	else
		fail_output(path, code, "create it", err);
	free(copy);
	return -code;
}

/* A file without a name, so that nothing is left of it if we are killed.  Not
 * every file system has them; giving one its name needs /proc. */
static int open_nameless(struct sp_output *o)
{
	char *dir = strdup(o->target);

	if (!dir)
		return -ENOMEM;
	if (access("/proc/self/fd", X_OK) == 0)
		o->fd = open(dirname(dir), O_TMPFILE | O_WRONLY | O_CLOEXEC,
			     0666);
	free(dir);
	return o->fd < 0 ? -EOPNOTSUPP : 0;
}

/* The file beside the target, readable as any new file would be. */
static int open_temporary(struct sp_output *o)
{
	const mode_t mask = umask(0);
	int r;

	umask(mask);
	r = open_nameless(o);
	if (r != -EOPNOTSUPP)
		return r;
	if (asprintf(&o->temporary, "%s.tmp-XXXXXX", o->target) < 0) {
		o->temporary = NULL;
		return -ENOMEM;
	}
	o->fd = mkostemp(o->temporary, O_CLOEXEC);
	if (o->fd < 0) {
		int code = errno;

		free(o->temporary);
		o->temporary = NULL;
		return -code;
	}
	return fchmod(o->fd, 0666 & ~mask) < 0 ? -errno : 0;
}

static int open_file(struct sp_output *o)
{
	struct stat st;
	const bool exists = stat(o->path, &st) == 0;

	o->target = exists ? realpath(o->path, NULL) : strdup(o->path);
	if (!o->target)
		return -errno;
	o->in_place = exists && !S_ISREG(st.st_mode);
	if (!o->in_place) {
		int r = open_temporary(o);

		/* A profile is its owner's; so is what replaces it. */
		if (r >= 0 && exists && fchmod(o->fd, st.st_mode & 0777))
			r = -errno;
		return r;
	}
	o->fd = open(o->path, O_WRONLY | O_CLOEXEC);
	return o->fd < 0 ? -errno : 0;
}

int sp_output_open(const char *path, struct sp_output **ret_output,
		   struct sp_error *err)
{
	const cookie_io_functions_t functions = {.write = write_all};
	struct sp_output *o = calloc(1, sizeof(*o));
	int r;

	if (!o)
		return fail_output(path, ENOMEM, "write", err);
	o->path = path;
	o->fd = -1;
	r = open_file(o);
	if (r >= 0) {
		o->stream = fopencookie(o, "w", functions);
		r = o->stream ? 0 : -ENOMEM;
	}
	if (r < 0) {
		sp_output_abandon(o);
		return fail_create(path, -r, err);
	}
	*ret_output = o;
	return 0;
}

/* A new name for the file without one.  Only a link can give it, and a link
 * replaces nothing. */
static int name_it(struct sp_output *o)
{
	char self[64];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", o->fd);
	for (unsigned int i = 0; i < MAX_NAMES; i++) {
		if (asprintf(&o->temporary, "%s.tmp-%ld-%u", o->target,
			     (long)getpid(), i) < 0) {
			o->temporary = NULL;
			return ENOMEM;
		}
		if (linkat(AT_FDCWD, self, AT_FDCWD, o->temporary,
			   AT_SYMLINK_FOLLOW) == 0)
			return 0;
		free(o->temporary);
		o->temporary = NULL;
		if (errno != EEXIST)
			return errno;
	}
	return EEXIST;
}

int sp_output_commit(struct sp_output *output, struct sp_error *err)
{
	const char *path = output->path;
	int code;

	fclose(output->stream);
	output->stream = NULL;
	code = output->error;
	if (!code && !output->in_place && !output->temporary)
		code = name_it(output);
	if (close(output->fd) < 0 && !code)
		code = errno;
	output->fd = -1;
	if (!code && output->temporary &&
	    rename(output->temporary, output->target) < 0)
		code = errno;
	if (!code) {
		free(output->temporary);
		output->temporary = NULL;
	}
	sp_output_abandon(output);
	return code ? fail_output(path, code, "write it", err) : 0;
}

void sp_output_abandon(struct sp_output *output)
{
	if (output->stream)
		fclose(output->stream);
	if (output->fd >= 0)
		close(output->fd);
	if (output->temporary)
		unlink(output->temporary);
	free(output->temporary);
	free(output->target);
	free(output);
}
