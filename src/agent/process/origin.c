/* SPDX-License-Identifier: MIT */
#include "agent/process/origin.h"

#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/utsname.h>

#include "agent/sys/diag.h"
#include "agent/sys/linkmap.h"
#include "agent/sys/sys.h"

#include "agent/sys/poison.h"

#define ENVIRONMENT_PIECE (132u << 10)

/* `name` as seen from the root; how long it is. */
static long make_absolute(char *path, size_t size, const char *name)
{
	size_t at = 0;

	if (name[0] != '/') {
		/* With the 0 behind it, which becomes a slash. */
		long n = SP_SYS2(getcwd, path, size);

		if (n > 0 && path[0] == '/') {
			at = (size_t)n;
			path[at - 1] = '/';
		}
		if (name[0] == '.' && name[1] == '/')
			name += 2;
	}
	while (*name && at + 1 < size)
		path[at++] = *name++;
	return (long)at;
}

/* Without /proc: the name that was executed.  If that is a loader, with the
 * program as an argument, only the loader knows: glibc corrects AT_EXECFN, musl
 * names its first object. */
void sp_origin_read_exe(char *path, size_t size)
{
	const struct link_map *first = sp_linkmap_first();
	const char *name = (const char *)getauxval(AT_EXECFN);
	long n = 0;

	/* The second one also after the end of the main thread; but under
	 * valgrind that is valgrind. */
	if (getauxval(AT_BASE)) {
		n = SP_SYS4(readlinkat, AT_FDCWD, "/proc/self/exe", path,
			    size - 1);
		if (n <= 0)
			n = SP_SYS4(readlinkat, AT_FDCWD,
				    "/proc/thread-self/exe", path, size - 1);
	} else if (first && first->l_name && first->l_name[0]) {
		name = first->l_name;
	}
	if (n <= 0)
		n = name ? make_absolute(path, size, name) : 0;
	path[n] = '\0';
}

long sp_origin_read_arguments(char *text, size_t size)
{
	const long n = sp_sys_read_file("/proc/self/cmdline", text, size);

	/* Nothing is in it after the end of the main thread; by the thread,
	 * valgrind's own would be. */
	return n ? n
		 : sp_sys_read_file("/proc/thread-self/cmdline", text, size);
}

void sp_origin_read_host(char host[SP_ORIGIN_HOST_BYTES])
{
	struct utsname name;

	if (SP_SYS1(uname, &name) == 0)
		memcpy(host, name.nodename, SP_ORIGIN_HOST_BYTES);
}

static bool find_in(const char *at, const char *end, const char *what)
{
	size_t n = strlen(what);

	for (; (size_t)(end - at) >= n; at++)
		if (memcmp(at, what, n) == 0)
			return true;
	return false;
}

#define CONTAINER_DIGITS (SP_ORIGIN_CONTAINER_BYTES - 1)

static size_t count_hex(const char *text)
{
	size_t n = 0;

	while ((text[n] >= '0' && text[n] <= '9') ||
	       (text[n] >= 'a' && text[n] <= 'f'))
		n++;
	return n;
}

/* The first id of a container behind `mark`, if there is one. */
static bool find_container(char *id, const char *text, const char *mark)
{
	const size_t n = strlen(mark);

	for (const char *p = text; *p; p++) {
		size_t digits;

		if (strncmp(p, mark, n) != 0)
			continue;
		digits = count_hex(p + n);
		if (digits == CONTAINER_DIGITS) {
			memcpy(id, p + n, CONTAINER_DIGITS);
			return true;
		}
		p += n ? n - 1 + digits : digits;
		if (!*p)
			break;
	}
	return false;
}

/* By the name of the control group, /docker/ID or cri-containerd-ID.scope;
 * where the container sees none of that, by the files that are mounted into it.
 * Only the beginning is read: that has it, or nothing. */
void sp_origin_read_container(char id[SP_ORIGIN_CONTAINER_BYTES])
{
	static char text[8192];
	long n;

	id[CONTAINER_DIGITS] = '\0';
	id[0] = '\0';
	n = sp_sys_read_file("/proc/self/cgroup", text, sizeof(text));
	/* A container that does not see its group sees that as the root. */
	if (n > 0 &&
	    (find_container(id, text, "") || !find_in(text, text + n, ":/\n")))
		return;
	if (sp_sys_read_file("/proc/thread-self/mountinfo", text,
			     sizeof(text)) > 0)
		find_container(id, text, "/containers/");
}

static bool begins_with(const char *variable, const char *begin)
{
	return strncmp(variable, begin, strlen(begin)) == 0;
}

/* The variable that begins so among those in the text, each with a 0 behind it;
 * else the one that goes on behind the text, which is its end if there is none.
 */
static const char *find_variable(const char *text, const char *end,
				 const char *begin)
{
	while (text + strlen(text) < end && !begins_with(text, begin))
		text += strlen(text) + 1;
	return text;
}

/* The variable of that environment that begins so, or another text.  It may be
 * of any size, so it is read in pieces; each variable has 128 KiB at most. */
static const char *read_variable(long fd, const char *begin, char *text)
{
	size_t have = 0;
	const char *at;
	long n;

	while ((n = SP_SYS3(read, fd, text + have, ENVIRONMENT_PIECE - have)) >
	       0) {
		have += (size_t)n;
		text[have] = '\0';
		at = find_variable(text, text + have, begin);
		if (at + strlen(at) < text + have)
			break;
		have = (size_t)(text + have - at);
		for (size_t i = 0; i <= have; i++)
			text[i] = at[i];
	}
	return find_variable(text, text + have, begin);
}

/* Has the parent a variable that begins like that, and has `part` in it?  NULL:
 * and has no more.  Memory for its environment is there for the moment only. */
static bool ask_parent(const char *begin, const char *part)
{
	char path[64] = "/proc/";
	char digits[24];
	char *text = sp_sys_map(ENVIRONMENT_PIECE + 1);
	const char *at = "";
	bool has_it;
	long fd;

	if (!text)
		return false;
	strcpy(path + strlen(path),
	       sp_diag_decimal(digits, (uint64_t)SP_SYS0(getppid)));
	strcpy(path + strlen(path), "/environ");
	fd = SP_SYS4(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd >= 0) {
		at = read_variable(fd, begin, text);
		SP_SYS1(close, fd);
	}
	has_it = part ? begins_with(at, begin) &&
				 find_in(at, at + strlen(at), part)
		      : strcmp(at, begin) == 0;
	sp_sys_unmap(text, ENVIRONMENT_PIECE + 1);
	return has_it;
}

bool sp_origin_parent_is_profiled(void)
{
	return ask_parent("LD_PRELOAD=", "libsampleprof.so");
}

bool sp_origin_parent_has_said(const char *variable)
{
	return sp_origin_parent_is_profiled() && ask_parent(variable, NULL);
}
