/* SPDX-License-Identifier: MIT */
#include "agent/diag.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include "agent/sys.h"

#include "agent/poison.h"

/* Written with relaxed adds by anybody; readers need no order. */
static _Atomic uint64_t counters[SP_LOSS_COUNT];
static int quiet_mode;

void sp_diag_lose(enum sp_loss loss, uint64_t n)
{
	atomic_fetch_add_explicit(&counters[loss], n, memory_order_relaxed);
}

void sp_diag_read(uint64_t losses[SP_FORMAT_LOSSES])
{
	memset(losses, 0, SP_FORMAT_LOSSES * sizeof(losses[0]));
	for (int i = 0; i < SP_LOSS_COUNT; i++)
		losses[i] = atomic_load_explicit(&counters[i],
						 memory_order_relaxed);
}

void sp_diag_reset(void)
{
	for (int i = 0; i < SP_LOSS_COUNT; i++)
		atomic_store_explicit(&counters[i], 0, memory_order_relaxed);
}

void sp_diag_set_quiet(int quiet)
{
	quiet_mode = quiet;
}

static size_t append(char *line, size_t at, size_t room, const char *text)
{
	while (*text && at < room) {
		/* Names come from the environment: keep the terminal safe. */
		unsigned char c = (unsigned char)*text++;

		line[at++] = c < 0x20 || c >= 0x7f ? '?' : (char)c;
	}
	return at;
}

void sp_diag_say(const char *part, ...)
{
	char line[600];
	size_t at = append(line, 0, sizeof(line) - 1, "sampleprof: ");
	va_list args;

	if (quiet_mode)
		return;
	va_start(args, part);
	for (; part; part = va_arg(args, const char *))
		at = append(line, at, sizeof(line) - 1, part);
	va_end(args);
	line[at++] = '\n';
	SP_SYS3(write, 2, line, at);
}

const char *sp_diag_decimal(char *buf, uint64_t v)
{
	char digits[21];
	int n = 0, at = 0;

	do {
		digits[n++] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	while (n)
		buf[at++] = digits[--n];
	buf[at] = '\0';
	return buf;
}

const char *sp_diag_errno(char *buf, int err)
{
	static const struct {
		int err;
		const char *text;
	} known[] = {
		{EACCES, "permission denied"},
		{EDQUOT, "disk quota exceeded"},
		{EEXIST, "the name and its numbered variants are taken"},
		{EFBIG, "the file size limit of the process is too small"},
		{EINVAL, "not a regular file"},
		{ELOOP, "the name is a symbolic link"},
		{EMFILE, "too many open files"},
		{ENAMETOOLONG, "the name is too long"},
		{ENFILE, "too many open files in the system"},
		{ENOENT, "no such directory"},
		{ENOMEM, "no memory to map it"},
		{ENOSPC, "no space left on the device"},
		{ENOTDIR, "a part of the path is not a directory"},
		{EPERM, "not permitted"},
		{EROFS, "the file system is read-only"},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (known[i].err == err)
			return known[i].text;
	return sp_diag_decimal(buf, (uint64_t)err);
}
