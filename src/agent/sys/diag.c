/* SPDX-License-Identifier: MIT */
#include "agent/sys/diag.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/sys/sys.h"

#include "agent/sys/poison.h"

/* Written with relaxed adds by any thread; readers need no order. */
static _Atomic uint64_t counters[SP_LOSS_COUNT];
static int quiet_mode;
static struct stat output; /* standard error; all zero: not there */

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

uint64_t sp_diag_lost(enum sp_loss loss)
{
	return atomic_load_explicit(&counters[loss], memory_order_relaxed);
}

void sp_diag_forget(enum sp_loss loss)
{
	atomic_store_explicit(&counters[loss], 0, memory_order_relaxed);
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

static size_t append_text(char *line, size_t at, size_t room, const char *text)
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
	size_t at = append_text(line, 0, sizeof(line) - 1, "sampleprof: ");
	va_list args;

	if (quiet_mode)
		return;
	va_start(args, part);
	for (; part; part = va_arg(args, const char *))
		at = append_text(line, at, sizeof(line) - 1, part);
	va_end(args);
	line[at++] = '\n';
	SP_SYS3(write, 2, line, at);
}

void sp_diag_remember_output(void)
{
	if (SP_SYS2(fstat, 2, &output))
		memset(&output, 0, sizeof(output));
}

/* A pipe without a reader would be a signal, and a full one would stop us. */
static bool takes_a_line(void)
{
	const struct timespec now = {0};
	struct pollfd error = {.fd = 2, .events = POLLOUT};
	struct stat st;

	return SP_SYS2(fstat, 2, &st) == 0 && st.st_ino == output.st_ino &&
	       st.st_dev == output.st_dev && st.st_rdev == output.st_rdev &&
	       SP_SYS4(ppoll, &error, 1, &now, NULL) == 1 &&
	       error.revents == POLLOUT;
}

void sp_diag_say_losses(uint64_t kinds)
{
	char text[480], digits[21];
	size_t at = 0, room = sizeof(text) - 1;

	for (unsigned int i = 0; i < SP_LOSS_COUNT; i++) {
		const uint64_t n = atomic_load_explicit(&counters[i],
							memory_order_relaxed);

		if (!n || !(kinds >> i & 1))
			continue;
		at = append_text(text, at, room, at ? ", " : "");
		at = append_text(text, at, room, sp_loss_name(i));
		at = append_text(text, at, room, " ");
		at = append_text(text, at, room, sp_diag_decimal(digits, n));
	}
	text[at] = '\0';
	if (at && !quiet_mode && takes_a_line())
		sp_diag_say("SAMPLEPROF_OUT=none: what the probes have not "
			    "seen, or not right: ",
			    text, NULL);
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

/* Of what file systems and sandboxes answer. */
static const char *name_of(int err)
{
#define N(error)                                                               \
	{                                                                      \
		error, #error                                                  \
	}
	static const struct {
		int err;
		char name[16];
	} names[] = {
		N(EPERM),        N(ENOENT),       N(ESRCH),
		N(EINTR),        N(EIO),          N(ENXIO),
		N(E2BIG),        N(ENOEXEC),      N(EBADF),
		N(ECHILD),       N(EAGAIN),       N(ENOMEM),
		N(EACCES),       N(EFAULT),       N(ENOTBLK),
		N(EBUSY),        N(EEXIST),       N(EXDEV),
		N(ENODEV),       N(ENOTDIR),      N(EISDIR),
		N(EINVAL),       N(ENFILE),       N(EMFILE),
		N(ENOTTY),       N(ETXTBSY),      N(EFBIG),
		N(ENOSPC),       N(ESPIPE),       N(EROFS),
		N(EMLINK),       N(EPIPE),        N(EDOM),
		N(ERANGE),       N(EDEADLK),      N(ENAMETOOLONG),
		N(ENOLCK),       N(ENOSYS),       N(ENOTEMPTY),
		N(ELOOP),        N(ENODATA),      N(ETIME),
		N(ENOLINK),      N(EPROTO),       N(EBADMSG),
		N(EOVERFLOW),    N(EILSEQ),       N(EUSERS),
		N(EOPNOTSUPP),   N(ECONNABORTED), N(ECONNRESET),
		N(ENOBUFS),      N(ENOTCONN),     N(ESHUTDOWN),
		N(ETIMEDOUT),    N(ECONNREFUSED), N(EHOSTDOWN),
		N(EHOSTUNREACH), N(EALREADY),     N(EINPROGRESS),
		N(ESTALE),       N(EUCLEAN),      N(EREMOTEIO),
		N(EDQUOT),       N(ENOMEDIUM),    N(EMEDIUMTYPE),
		N(ECANCELED),    N(ENOKEY),       N(EKEYEXPIRED),
		N(EKEYREVOKED),  N(EKEYREJECTED), N(EHWPOISON),
	};
#undef N

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (names[i].err == err)
			return names[i].name;
	return "an error that has no name here";
}

const char *sp_diag_errno(int err)
{
	static const struct {
		int err;
		const char *text;
	} known[] = {
		{EACCES, "permission denied (EACCES)"},
		{EDQUOT, "disk quota exceeded (EDQUOT)"},
		{EEXIST, "the name and its numbered variants are taken "
			 "(EEXIST)"},
		{EFBIG, "the file size limit of the process is too small "
			"(EFBIG)"},
		{EINVAL, "not a regular file (EINVAL)"},
		{EIO, "the device has failed (EIO)"},
		{ELOOP, "the name is a symbolic link (ELOOP)"},
		{EMFILE, "too many open files (EMFILE)"},
		{ENAMETOOLONG, "the name is too long (ENAMETOOLONG)"},
		{ENFILE, "too many open files in the system (ENFILE)"},
		{ENODEV, "files cannot be mapped there (ENODEV)"},
		{ENOENT, "no such directory (ENOENT)"},
		{ENOMEM, "no memory to map it (ENOMEM)"},
		{ENOSPC, "no space left on the device (ENOSPC)"},
		{ENOSYS, "a system call is not implemented (ENOSYS)"},
		{ENOTDIR, "a part of the path is not a directory (ENOTDIR)"},
		{EOPNOTSUPP, "the kernel cannot tell whether the disk is full "
			     "(EOPNOTSUPP)"},
		{EPERM, "not permitted (EPERM)"},
		{EROFS, "the file system is read-only (EROFS)"},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (known[i].err == err)
			return known[i].text;
	return name_of(err);
}
