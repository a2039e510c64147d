/* SPDX-License-Identifier: MIT */
#include "read/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/patience.h"
#include "base/regular.h"

#define CHUNK    SP_FORMAT_CHUNK_BYTES
#define IN_BYTES (128u << 10)
/* A process may serve zeros for ever. */
#define SERVED_MAX (1 << 30)

/* Unpacks chunk after chunk; the present one stays. */
struct sp_source_unpacker {
	ZSTD_DCtx *context;
	uint64_t index;    /* of the chunk that is there */
	size_t n;          /* bytes of it; fewer than a chunk: the last */
	bool is_started;   /* there is one */
	bool is_at_border; /* between frames: the file may end here */
	uint64_t packed_at;
	ZSTD_inBuffer in;
	uint8_t chunk[CHUNK];
	uint8_t packed[IN_BYTES];
};

/* Read up to n bytes at offset; fewer only at the end of the file.  The number,
 * or a negative errno. */
static ssize_t read_at(int fd, void *buf, size_t n, uint64_t offset)
{
	size_t have = 0;

	while (have < n) {
		ssize_t got =
			sp_regular_read_found(fd, (char *)buf + have, n - have,
					      (off_t)(offset + have));

		if (got == -EINTR)
			continue;
		if (got < 0)
			return got;
		if (got == 0)
			break;
		have += (size_t)got;
	}
	return (ssize_t)have;
}

/* ---- compressed ---- */

static bool is_compressed(int fd)
{
	uint32_t magic;

	return read_at(fd, &magic, sizeof(magic), 0) == sizeof(magic) &&
	       magic == ZSTD_MAGICNUMBER;
}

/* The unpacked length that the first frame promises. */
static uint64_t promised_bytes(const uint8_t *packed, size_t n)
{
	const unsigned long long bytes = ZSTD_getFrameContentSize(packed, n);

	return bytes == ZSTD_CONTENTSIZE_UNKNOWN ||
			       bytes == ZSTD_CONTENTSIZE_ERROR
		       ? UINT64_MAX
		       : bytes;
}

static int open_compressed(struct sp_source *s, struct sp_error *err)
{
	struct sp_source_unpacker *u = calloc(1, sizeof(*u));
	ssize_t n;

	s->unpacker = u;
	if (u)
		u->context = ZSTD_createDCtx();
	if (!u || !u->context)
		return sp_error_memory(err, s->path);
	u->in.src = u->packed;
	u->is_at_border = true;
	n = read_at(s->fd, u->packed, IN_BYTES, 0);
	if (n < 0)
		return sp_error_set(err, (int)n, s->path, "cannot be read: %s",
				    strerror((int)-n));
	u->in.size = u->packed_at = (size_t)n;
	s->bytes = promised_bytes(u->packed, (size_t)n);
	if (s->bytes != UINT64_MAX && s->bytes > SP_SOURCE_UNPACKED_MAX)
		return sp_error_set(err, -EFBIG, s->path, "%s",
				    sp_source_strerror(-EFBIG));
	return 0;
}

/* More packed bytes: their number, 0 at the end, or a negative errno. */
static ssize_t refill_buffer(const struct sp_source *s,
			     struct sp_source_unpacker *u)
{
	ssize_t n = read_at(s->fd, u->packed, IN_BYTES, u->packed_at);

	if (n <= 0)
		return n;
	u->in.size = (size_t)n;
	u->in.pos = 0;
	u->packed_at += (size_t)n;
	return n;
}

static int unpack_next(struct sp_source *s, struct sp_source_unpacker *u)
{
	ZSTD_outBuffer out = {u->chunk, CHUNK, 0};

	u->index += u->is_started;
	u->is_started = true;
	u->n = 0;
	if (u->index >= SP_SOURCE_UNPACKED_MAX / CHUNK)
		return -EFBIG;
	while (out.pos < out.size) {
		const size_t before = out.pos;
		ssize_t n;
		size_t left;

		if (u->in.pos == u->in.size) {
			n = refill_buffer(s, u);
			if (n < 0)
				return (int)n;
			/* What zstd still holds comes without more input. */
			if (n == 0 && u->is_at_border)
				break;
		}
		left = ZSTD_decompressStream(u->context, &out, &u->in);
		if (ZSTD_isError(left))
			return -EBADMSG;
		u->is_at_border = left == 0;
		if (!u->is_at_border && out.pos == before &&
		    u->in.pos == u->in.size && refill_buffer(s, u) <= 0)
			return -EBADMSG;
	}
	u->n = out.pos;
	if (u->n < CHUNK)
		s->bytes = u->index * CHUNK + u->n;
	return 0;
}

static ssize_t read_compressed(struct sp_source *s, void *buf, size_t n,
			       uint64_t offset)
{
	struct sp_source_unpacker *u = s->unpacker;
	const uint64_t index = offset / CHUNK;
	const size_t from = (size_t)(offset % CHUNK);
	int r;

	while (!u->is_started || (u->index < index && u->n == CHUNK)) {
		r = unpack_next(s, u);
		if (r < 0)
			return r;
	}
	if (u->index != index || from >= u->n)
		return 0;
	if (n > u->n - from)
		n = u->n - from;
	memcpy(buf, u->chunk + from, n);
	return (ssize_t)n;
}

/* ---- either ---- */

static struct {
	const char *path; /* NULL: none */
	int fd;
} held;

static bool is_found;

void sp_source_are_found(void)
{
	is_found = true;
}

static int open_file(const char *path)
{
	int fd;

	if (!held.path || strcmp(held.path, path) != 0)
		return is_found ? sp_regular_open_found(path)
				: sp_regular_open(path, O_RDONLY);
	fd = fcntl(held.fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return fd < 0 ? -errno : fd;
}

int sp_source_open(struct sp_source *s, const char *path, struct sp_error *err)
{
	int r;

	memset(s, 0, sizeof(*s));
	s->path = path;
	s->fd = open_file(path);
	r = s->fd < 0 ? s->fd : sp_regular_stat_found(s->fd, &s->stat);
	if (r == 0 && s->stat.st_size > SERVED_MAX &&
	    sp_patience_is_place(s->fd))
		r = -EFBIG;
	if (r == -EINVAL)
		return sp_error_set(err, r, path, "is not a regular file");
	if (r == -ENOENT && *path && !path[strspn(path, "0123456789")])
		return sp_error_set(err, r, path,
				    "no such file; of a process: "
				    "`sampleprof attach %.20s` records it",
				    path);
	if (r < 0)
		return sp_error_set(err, r, path, "cannot be opened: %s",
				    sp_source_strerror(r));
	s->bytes = (uint64_t)s->stat.st_size;
	return is_compressed(s->fd) ? open_compressed(s, err) : 0;
}

int sp_source_hold(const char *path, struct stat *ret, struct sp_error *err)
{
	struct sp_source s;
	int r = sp_source_open(&s, path, err);

	if (r >= 0) {
		*ret = s.stat;
		held.path = path;
		held.fd = r = s.fd;
		s.fd = -1;
	}
	sp_source_close(&s);
	return r;
}

ssize_t sp_source_read(struct sp_source *s, void *buf, size_t n,
		       uint64_t offset)
{
	return s->unpacker ? read_compressed(s, buf, n, offset)
			   : read_at(s->fd, buf, n, offset);
}

uint64_t sp_source_next_data(const struct sp_source *s, uint64_t offset)
{
	off_t data;

	if (s->unpacker)
		return offset;
	data = lseek(s->fd, (off_t)offset, SEEK_DATA);
	if (data < 0 && errno == ENXIO)
		return UINT64_MAX;
	/* Where holes cannot be skipped, they are read. */
	return data > (off_t)offset ? (uint64_t)data : offset;
}

uint64_t sp_source_progress(const struct sp_source *s, uint64_t offset,
			    uint64_t *ret_total)
{
	*ret_total = (uint64_t)s->stat.st_size;
	return s->unpacker ? s->unpacker->packed_at - s->unpacker->in.size +
				     s->unpacker->in.pos
			   : offset;
}

const char *sp_source_strerror(int code)
{
	if (code == -EBADMSG)
		return "the compressed file is damaged or cut short";
	if (code == -EFBIG)
		return "unpacked it is longer than 8 GiB, which no profile is";
	if (code == -ETIMEDOUT)
		return "who serves it did not answer in time";
	return strerror(-code);
}

void sp_source_close(struct sp_source *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	if (s->unpacker)
		ZSTD_freeDCtx(s->unpacker->context);
	free(s->unpacker);
	s->unpacker = NULL;
}
