/* SPDX-License-Identifier: MIT */
#include "serve/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/parse.h"

#define UNIX "unix:"

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un un;
};

bool sp_address_is_unix(const char *text)
{
	return strncmp(text, UNIX, sizeof(UNIX) - 1) == 0;
}

static bool parse_unix(const char *text, union address *ret)
{
	const char *path = text + sizeof(UNIX) - 1;

	if (!*path || strlen(path) >= sizeof(ret->un.sun_path))
		return false;
	ret->un.sun_family = AF_UNIX;
	strcpy(ret->un.sun_path, path);
	return true;
}

static bool parse_address(const char *text, union address *ret)
{
	const char *colon = strrchr(text, ':');
	char host[64];
	uint64_t port;
	size_t n;

	memset(ret, 0, sizeof(*ret));
	if (sp_address_is_unix(text))
		return parse_unix(text, ret);
	if (!colon || !sp_parse_u64(colon + 1, &port) || port > 65535)
		return false;
	n = (size_t)(colon - text);
	if (n >= 2 && text[0] == '[' && text[n - 1] == ']') {
		text++;
		n -= 2;
	}
	if (n >= sizeof(host))
		return false;
	memcpy(host, text, n);
	host[n] = '\0';
	if (inet_pton(AF_INET, host, &ret->v4.sin_addr) == 1) {
		ret->v4.sin_family = AF_INET;
		ret->v4.sin_port = htons((uint16_t)port);
		return true;
	}
	if (inet_pton(AF_INET6, host, &ret->v6.sin6_addr) != 1)
		return false;
	ret->v6.sin6_family = AF_INET6;
	ret->v6.sin6_port = htons((uint16_t)port);
	return true;
}

bool sp_address_check(const char *text)
{
	union address address;

	return parse_address(text, &address);
}

bool sp_address_is_local(const char *text)
{
	union address address;

	if (!parse_address(text, &address))
		return false;
	switch (address.any.sa_family) {
	case AF_INET:
		return ntohl(address.v4.sin_addr.s_addr) >> 24 == 127;
	case AF_INET6:
		return IN6_IS_ADDR_LOOPBACK(&address.v6.sin6_addr);
	default:
		return true;
	}
}

static socklen_t length_of(const union address *address)
{
	switch (address->any.sa_family) {
	case AF_INET:
		return sizeof(address->v4);
	case AF_INET6:
		return sizeof(address->v6);
	default:
		return sizeof(address->un);
	}
}

/* The name of a socket in a directory that is open. */
static bool name_by_place(struct sockaddr_un *un, const struct sp_place *place)
{
	return snprintf(un->sun_path, sizeof(un->sun_path),
			"/proc/self/fd/%d/%s", place->dir,
			place->name) < (int)sizeof(un->sun_path);
}

/* A server that was killed leaves its socket. */
static void remove_dead(const struct sp_place *place,
			const struct sockaddr_un *un)
{
	int fd;

	if (!S_ISSOCK(place->there.st_mode) || place->there.st_uid != geteuid())
		return;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (connect(fd, (const struct sockaddr *)un, sizeof(*un)) < 0 &&
	    errno == ECONNREFUSED)
		unlinkat(place->dir, place->name, 0);
	close(fd);
}

static int bind_unix(struct sp_listener *l, union address *address,
		     struct sp_error *err)
{
	const int code = sp_place_find(address->un.sun_path, &l->place, err);
	mode_t mask;
	int r;

	if (code < 0) {
		errno = -code;
		return -1;
	}
	if (l->place.is_given || !name_by_place(&address->un, &l->place)) {
		errno = EINVAL;
		return -1;
	}
	remove_dead(&l->place, &address->un);
	mask = umask(0177);
	r = bind(l->fd, &address->any, length_of(address));
	umask(mask);
	return r;
}

static int bind_to(struct sp_listener *l, union address *address,
		   struct sp_error *err)
{
	const int one = 1, zero = 0;

	if (address->any.sa_family == AF_UNIX)
		return bind_unix(l, address, err);
	setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (address->any.sa_family == AF_INET6)
		setsockopt(l->fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero,
			   sizeof(zero));
	return bind(l->fd, &address->any, length_of(address));
}

static unsigned int port_of(const union address *address)
{
	switch (address->any.sa_family) {
	case AF_INET:
		return ntohs(address->v4.sin_port);
	case AF_INET6:
		return ntohs(address->v6.sin6_port);
	default:
		return 0;
	}
}

int sp_listener_open(const char *text, struct sp_listener *ret,
		     struct sp_error *err)
{
	union address address;
	socklen_t length = sizeof(address);
	int code = -EINVAL;

	*ret = (struct sp_listener){.fd = -1, .place.dir = -1};
	if (parse_address(text, &address)) {
		ret->fd = socket(address.any.sa_family,
				 SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (ret->fd >= 0 && bind_to(ret, &address, err) == 0 &&
		    listen(ret->fd, SOMAXCONN) == 0 &&
		    getsockname(ret->fd, &address.any, &length) == 0) {
			ret->port = port_of(&address);
			return 0;
		}
		code = -errno;
	}
	if (ret->fd >= 0)
		close(ret->fd);
	sp_place_close(&ret->place);
	return sp_error_set(err, code, NULL, "cannot listen on %.100s: %s",
			    text, strerror(-code));
}

void sp_listener_done(struct sp_listener *listener)
{
	if (listener->place.dir >= 0)
		unlinkat(listener->place.dir, listener->place.name, 0);
	sp_place_close(&listener->place);
}
