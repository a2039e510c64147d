/* SPDX-License-Identifier: MIT */
#include "rss/look.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "format/look.h"

#define CONFIDENCE 0.95
#define BACKLOG    256
/* A process that connects has to send within that time. */
#define GREETING_S 2

int sp_rss_look_open(const char *name, struct sp_error *err)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	const int room = (int)sizeof(at.sun_path) - 1;
	/* Behind the zero byte of the kernel's own names. */
	const int n = snprintf(at.sun_path + 1, (size_t)room, "%s%s",
			       SP_LOOK_PREFIX, name);
	int fd, r = 0;

	if (n < 0 || n >= room)
		return sp_error_set(err, -ENAMETOOLONG, NULL,
				    "the name of a socket is too long");
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 ||
	    bind(fd, (struct sockaddr *)&at,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			     (size_t)n)) != 0 ||
	    listen(fd, BACKLOG) != 0)
		r = -errno;
	if (r == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return sp_error_set(err, r, NULL,
			    "cannot make the socket on which processes ask for "
			    "their ledger: %s",
			    strerror(-r));
}

/* A process of ours, or of anybody if we are root; and only the wanted one, if
 * that is not 0. */
static int read_peer(int fd, uint64_t wanted, uint64_t *ret_pid,
		     struct sp_look *ret)
{
	const struct timeval wait = {.tv_sec = GREETING_S};
	struct ucred peer;
	socklen_t n = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) != 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) != 0)
		return -errno;
	if (peer.pid <= 0 || (geteuid() && peer.uid != geteuid()) ||
	    (wanted && (uint64_t)peer.pid != wanted))
		return -EACCES;
	if (recv(fd, ret, sizeof(*ret), 0) != (ssize_t)sizeof(*ret) ||
	    ret->version != SP_LOOK_VERSION)
		return -EPROTO;
	*ret_pid = (uint64_t)peer.pid;
	return 0;
}

static enum sp_ledger_why why_of(const struct sp_look *look)
{
	return look->why == SP_LOOK_PEAK       ? SP_LEDGER_PEAK
	       : look->why == SP_LOOK_SNAPSHOT ? SP_LEDGER_SNAPSHOT
					       : SP_LEDGER_END;
}

/* The JSON; *ret to be freed.  0 or -ENOMEM. */
static int make_text(const struct sp_rss_ledger *ledger, const char *absent,
		     double left_out, char **ret, size_t *ret_size)
{
	FILE *out = open_memstream(ret, ret_size);

	if (!out)
		return -ENOMEM;
	sp_rss_print_json(out, ledger, absent, left_out);
	return fclose(out) == 0 ? 0 : -ENOMEM;
}

/* The digits of what is left out. */
#define DIGITS 20

/* With as many of the absent objects as there is room for beside the rest. */
static int add_absent(const struct sp_rss_ledger *ledger, char **text,
		      size_t *size)
{
	double left_out = 0;
	char *absent;
	int r = make_text(ledger, "", left_out, text, size);

	if (r < 0 || !ledger->absent || *size + DIGITS > SP_LOOK_TEXT_MAX)
		return r;
	absent = sp_absent_write(ledger->absent, ledger->n_absent,
				 SP_LOOK_TEXT_MAX - *size - DIGITS, &left_out);
	if (!absent)
		return -ENOMEM;
	free(*text);
	*text = NULL;
	r = make_text(ledger, absent, left_out, text, size);
	free(absent);
	return r;
}

static int send_text(int fd, const struct sp_rss_ledger *ledger)
{
	char *text = NULL;
	size_t size = 0;
	int r = ledger->absent ? add_absent(ledger, &text, &size)
			       : make_text(ledger, NULL, 0, &text, &size);

	if (r < 0)
		;
	else if (size > SP_LOOK_TEXT_MAX)
		r = -EMSGSIZE;
	else if (send(fd, text, size, MSG_NOSIGNAL) != (ssize_t)size)
		r = -errno;
	free(text);
	return r;
}

static int look_at(int fd, uint64_t wanted, const char *mark,
		   struct sp_rss_ledger *ret, struct sp_error *err)
{
	struct sp_rss_options options = {.confidence = CONFIDENCE,
					 .absent = true};
	struct sp_rss_answer answer;
	struct sp_look look = {.version = 0};
	int r = read_peer(fd, wanted, &options.pid, &look);

	if (r < 0)
		return sp_error_set(
			err, r, NULL,
			"cannot tell which process asks for its ledger: %s",
			strerror(-r));
	answer = (struct sp_rss_answer){look.memory, look.classes};
	options.answer = &answer;
	r = sp_rss_ledger_make(&options, ret, err);
	if (r < 0)
		return r;
	/* Where its memory is the process has said in any case. */
	if (look.why == SP_LOOK_END_AT_ONCE)
		ret->was_asked = false;
	ret->why = why_of(&look);
	ret->time_ns = look.time_ns;
	if (ret->why == SP_LEDGER_SNAPSHOT)
		snprintf(ret->mark, sizeof(ret->mark), "%s", mark ? mark : "");
	r = send_text(fd, ret);
	free(ret->absent);
	ret->absent = NULL;
	return r < 0 ? sp_error_set(err, r, NULL,
				    "process %ld did not take its ledger: %s",
				    (long)options.pid, strerror(-r))
		     : 0;
}

/* The descriptor of a peer; -ETIMEDOUT: none came; or -errno. */
static int wait_for_peer(int fd, int stop, uint64_t left_ns)
{
	struct pollfd wait[] = {{.fd = fd, .events = POLLIN},
				{.fd = stop, .events = POLLIN}};
	const uint64_t ms = left_ns / 1000000;
	const int r = poll(wait, 2, ms < INT32_MAX ? (int)ms : -1);
	int peer;

	if (r <= 0 || !(wait[0].revents & POLLIN))
		return -ETIMEDOUT;
	/* cppcheck-suppress nullPointer ; its address is not asked for */
	peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	return peer < 0 ? -errno : peer;
}

int sp_rss_look_serve(int fd, int stop, uint64_t pid, const char *mark,
		      uint64_t timeout_ns, struct sp_rss_ledger *ret,
		      struct sp_error *err)
{
	const uint64_t begin = sp_clock_ns();
	uint64_t waited = 0;
	int peer, r;

	do {
		peer = wait_for_peer(fd, stop, timeout_ns - waited);
		if (peer == -ETIMEDOUT)
			break;
		if (peer < 0)
			return sp_error_set(err, peer, NULL, "%s",
					    strerror(-peer));
		r = look_at(peer, pid, mark, ret, err);
		close(peer);
		if (r != -EACCES || !pid)
			return r;
		/* It is not the one that is waited for. */
		waited = sp_clock_ns() - begin;
	} while (waited < timeout_ns);
	return sp_error_set(err, -ETIMEDOUT, NULL, "nobody came");
}

int sp_rss_look_open_for_files(const char *run, struct sp_error *err)
{
	char name[sizeof(((struct sockaddr_un *)0)->sun_path)];

	snprintf(name, sizeof(name), "%s" SP_LOOK_FILES_SUFFIX, run);
	return sp_rss_look_open(name, err);
}

int sp_rss_look_meet(int fd, uint64_t *ret_pid)
{
	/* cppcheck-suppress nullPointer ; its address is not asked for */
	const int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	struct sp_look look;
	int r = peer < 0 ? -errno : read_peer(peer, 0, ret_pid, &look);

	if (r == 0)
		return peer;
	if (peer >= 0)
		close(peer);
	return r;
}
