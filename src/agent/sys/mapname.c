/* SPDX-License-Identifier: MIT */
#include "agent/sys/mapname.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "agent/sys/sys.h"

#include "agent/sys/poison.h"

#define PIECE_BYTES 4096u
#define NAME_BYTES  4096u

static bool is_local(const char *name)
{
	return *name && *name != '[' &&
	       (*name != '/' || strncmp(name, "/proc/", 6) == 0 ||
		strncmp(name, "/dev/fd/", 8) == 0);
}

/* The file, a byte at a time; -1 at its end. */
struct stream {
	long fd;
	long n, at;
	char piece[PIECE_BYTES];
};

static int next_byte(struct stream *in)
{
	if (in->at >= in->n) {
		in->n = SP_SYS3(read, in->fd, in->piece, PIECE_BYTES);
		in->at = 0;
	}
	return in->n <= 0 ? -1 : (unsigned char)in->piece[in->at++];
}

/* Ends behind the byte that is no digit, which is returned. */
static int read_hex(struct stream *in, uintptr_t *ret)
{
	int c;

	*ret = 0;
	for (;;) {
		c = next_byte(in);
		if (c >= '0' && c <= '9')
			*ret = *ret << 4 | (uintptr_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			*ret = *ret << 4 | (uintptr_t)(c - 'a' + 10);
		else
			return c;
	}
}

static int skip_to(struct stream *in, char end)
{
	int c;

	do
		c = next_byte(in);
	while (c >= 0 && c != end && c != '\n');
	return c;
}

/* Behind mode, offset, device and inode, and blanks. */
static bool read_name(struct stream *in, char *name, size_t size)
{
	size_t n = 0;
	int c = ' ';

	for (int i = 0; i < 4 && c == ' '; i++)
		c = skip_to(in, ' ');
	while (c == ' ')
		c = next_byte(in);
	for (; c >= 0 && c != '\n' && n + 1 < size; c = next_byte(in))
		name[n++] = (char)c;
	name[n] = '\0';
	return c == '\n' && name[0] == '/';
}

static bool read_maps(uintptr_t address, char *name, size_t size)
{
	static struct stream in;
	uintptr_t from, to;
	bool is_found = false;

	if (sp_sys_forbids_files())
		return false;
	in.n = in.at = 0;
	in.fd = SP_SYS4(openat, AT_FDCWD, "/proc/thread-self/maps",
			O_RDONLY | O_CLOEXEC, 0);
	if (in.fd < 0)
		return false;
	while (!is_found && read_hex(&in, &from) == '-' &&
	       read_hex(&in, &to) == ' ') {
		if (address >= from && address < to) {
			is_found = read_name(&in, name, size);
			break;
		}
		skip_to(&in, '\n');
	}
	SP_SYS1(close, in.fd);
	return is_found;
}

const char *sp_mapname_find(const char *name, uintptr_t address)
{
	static char path[NAME_BYTES];

	return is_local(name) && read_maps(address, path, sizeof(path)) ? path
									: "";
}
