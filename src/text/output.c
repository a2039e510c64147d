/* SPDX-License-Identifier: MIT */
#include "text/output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* Nobody can guess names that would be in the way of so many. */
#define MAX_NAMES 100

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
static int fail_create(const char *path, int r, struct sp_error *err)
{
	char *copy = strdup(path);

	if (copy && (r == -EACCES || r == -EROFS))
		sp_error_set(err, r, path,
			     "cannot create it: the directory %.150s is not "
			     "writable (%s)",
			     dirname(copy), strerror(-r));
	else
		fail_output(path, -r, "create it", err);
	free(copy);
	return r;
}

/* ---- the file beside the target ---- */

/* The name of a file beside the target. */
static void draw_name(struct sp_output *o)
{
	uint64_t random = 0;

	if (getrandom(&random, sizeof(random), 0) < 0)
		random = (uint64_t)getpid();
	snprintf(o->temporary, sizeof(o->temporary), "%.200s.tmp-%016" PRIx64,
		 o->place.name, random);
}

/* A file without a name, so that nothing is left of it if we are killed.  Not
 * every file system has them; giving one its name needs /proc. */
static int open_nameless(struct sp_output *o, mode_t mode)
{
	if (access("/proc/self/fd", X_OK) == 0)
		o->fd = openat(o->place.dir, ".",
			       O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
	return o->fd;
}

static int open_temporary(struct sp_output *o, mode_t mode)
{
	for (unsigned int i = 0; i < MAX_NAMES; i++) {
		draw_name(o);
		o->fd = openat(o->place.dir, o->temporary,
			       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW |
				       O_CLOEXEC,
			       mode);
		if (o->fd >= 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	o->temporary[0] = '\0';
	return -errno;
}

/* As far as the old file is ours: in a directory where others can give it a
 * name, it may be one that was never meant to be replaced. */
static int inherit_mode(const struct sp_output *o)
{
	const mode_t old = o->place.there.st_mode & 0777;
	struct stat st;

	if (fstat(o->fd, &st) != 0)
		return -errno;
	if (!o->place.there.st_mode || st.st_uid != o->place.there.st_uid)
		return 0;
	if (fchmod(o->fd,
		   sp_place_is_closed(&o->place) ? old : old & st.st_mode))
		return -errno;
	return 0;
}

static int open_beside(struct sp_output *o, mode_t mode, struct sp_error *err)
{
	int r = open_nameless(o, mode) < 0 ? open_temporary(o, mode) : 0;

	if (r >= 0)
		r = inherit_mode(o);
	return r < 0 ? fail_create(o->path, r, err) : 0;
}

/* ---- opening ---- */

/* Behind what is there by now: the shell has emptied it if it was to be. */
static int open_in_place(struct sp_output *o, struct sp_error *err)
{
	o->in_place = true;
	o->fd = sp_place_open(&o->place, o->path, O_WRONLY | O_APPEND, 0, err);
	return o->fd < 0 ? o->fd : 0;
}

static int open_file(struct sp_output *o, mode_t mode, struct sp_error *err)
{
	const mode_t there = o->place.there.st_mode;

	if (S_ISDIR(there))
		return fail_create(o->path, -EISDIR, err);
	if (o->place.is_given || (there && !S_ISREG(there)))
		return open_in_place(o, err);
	return open_beside(o, mode, err);
}

int sp_output_open(const char *path, mode_t mode, struct sp_output **ret_output,
		   struct sp_error *err)
{
	const cookie_io_functions_t functions = {.write = write_all};
	struct sp_output *o = calloc(1, sizeof(*o));
	int r;

	if (!o)
		return fail_output(path, ENOMEM, "write", err);
	o->path = path;
	o->fd = -1;
	r = sp_place_find(path, &o->place, err);
	if (r >= 0)
		r = open_file(o, mode, err);
	if (r >= 0) {
		o->stream = fopencookie(o, "w", functions);
		if (!o->stream)
			r = fail_create(path, -ENOMEM, err);
	}
	if (r < 0)
		sp_output_abandon(o);
	else
		*ret_output = o;
	return r;
}

/* ---- the end ---- */

/* A new name for the file without one.  Only a link can give it, and a link
 * replaces nothing. */
static int name_it(struct sp_output *o)
{
	char self[64];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", o->fd);
	for (unsigned int i = 0; i < MAX_NAMES; i++) {
		draw_name(o);
		if (linkat(AT_FDCWD, self, o->place.dir, o->temporary,
			   AT_SYMLINK_FOLLOW) == 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	o->temporary[0] = '\0';
	return errno;
}

/* A file system of another machine says at the close whether it has all: to
 * whoever closes first. */
int sp_output_flush(struct sp_output *output, struct sp_error *err)
{
	int copy;

	fflush(output->stream);
	copy = dup(output->fd);
	if (copy >= 0 && close(copy) < 0 && !output->error)
		output->error = errno;
	return output->error ? fail_output(output->path, output->error,
					   "write it", err)
			     : 0;
}

/* Whatever has the name by now, a link as well, is replaced and not touched. */
int sp_output_commit(struct sp_output *output, struct sp_error *err)
{
	const char *path = output->path;
	int code;

	fclose(output->stream);
	output->stream = NULL;
	code = output->error;
	if (!code && !output->in_place && !*output->temporary)
		code = name_it(output);
	if (close(output->fd) < 0 && !code)
		code = errno;
	output->fd = -1;
	if (!code && !output->in_place &&
	    renameat(output->place.dir, output->temporary, output->place.dir,
		     output->place.name) < 0)
		code = errno;
	if (!code)
		output->temporary[0] = '\0';
	sp_output_abandon(output);
	return code ? fail_output(path, code, "write it", err) : 0;
}

void sp_output_abandon(struct sp_output *output)
{
	if (output->stream)
		fclose(output->stream);
	if (output->fd >= 0)
		close(output->fd);
	if (*output->temporary)
		unlinkat(output->place.dir, output->temporary, 0);
	sp_place_close(&output->place);
	free(output);
}
