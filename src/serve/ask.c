/* SPDX-License-Identifier: MIT */
#include "serve/ask.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/utsname.h>

#include "base/parse.h"
#include "serve/address.h"

/* Is the name in the request one of this server?  A page of another site can
 * give its name our address, and would read what we say.  Numbers are no names.
 */
static bool is_own_host(const struct sp_server_options *o, const char *host)
{
	struct utsname self;
	char name[256];
	size_t n = strcspn(host, ":");

	if (*host == '[')
		return true;
	if (n >= sizeof(name))
		return false;
	memcpy(name, host, n);
	name[n] = '\0';
	if (inet_pton(AF_INET, name, &(struct in_addr){0}) == 1 ||
	    strcasecmp(name, "localhost") == 0)
		return true;
	for (size_t i = 0; i < o->n_hosts; i++)
		if (strcasecmp(name, o->hosts[i]) == 0)
			return true;
	/* Not with any domain behind it: that could be another site's. */
	return !sp_address_is_local(o->listen) && uname(&self) == 0 &&
	       strcasecmp(name, self.nodename) == 0;
}

/* Takes as long wherever they differ. */
static bool is_equal(const char *a, const char *b)
{
	const size_t n_a = strlen(a), n = strlen(b);
	unsigned int differs = n_a != n;

	for (size_t i = 0; i < n; i++)
		differs |= (unsigned char)b[i] ^
			   (i < n_a ? (unsigned char)a[i] : 0u);
	return !differs;
}

static bool is_allowed(const struct sp_server_options *o,
		       struct MHD_Connection *c)
{
	static const char bearer[] = "Bearer ";
	const char *given = MHD_lookup_connection_value(
		c, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);

	if (!o->token)
		return true;
	return given && strncasecmp(given, bearer, sizeof(bearer) - 1) == 0 &&
	       is_equal(given + sizeof(bearer) - 1, o->token);
}

/* A number of the query: 0 and *ret unless it is there; -EINVAL. */
static int number_of(struct MHD_Connection *c, const char *key, uint64_t max,
		     uint64_t *ret)
{
	const char *text =
		MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, key);

	if (!text)
		return 0;
	return sp_parse_u64(text, ret) && *ret <= max ? 0 : -EINVAL;
}

static const struct {
	const char *name, *view;
} pprof_views[] = {{"allocs", "alloc"}, {"heap", "live"}, {"peak", "peak"}};

static bool ask_for_profile(struct MHD_Connection *c, const char *name,
			    struct sp_reply_request *q, struct sp_reply *reply)
{
	q->kind = SP_REPLY_PROFILE;
	for (size_t i = 0; i < sizeof(pprof_views) / sizeof(*pprof_views); i++)
		if (strcmp(name, pprof_views[i].name) == 0)
			q->view = pprof_views[i].view;
	if (!q->view)
		sp_reply_text(reply, MHD_HTTP_NOT_FOUND,
			      "there are allocs, heap and peak");
	else if (number_of(c, "pid", UINT32_MAX, &q->pid) < 0)
		sp_reply_text(reply, MHD_HTTP_BAD_REQUEST,
			      "pid takes a process id");
	else if (number_of(c, "seconds", SP_SERVER_SECONDS_MAX, &q->seconds) <
		 0)
		sp_reply_text(reply, MHD_HTTP_BAD_REQUEST,
			      "seconds takes 0 to %u", SP_SERVER_SECONDS_MAX);
	else
		return true;
	return false;
}

bool sp_ask(const struct sp_server_options *o, struct MHD_Connection *c,
	    const char *url, const char *method, struct sp_reply_request *q,
	    struct sp_reply *reply)
{
	static const char pprof[] = "/debug/pprof/";
	const char *accept = MHD_lookup_connection_value(
		c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	const char *host = MHD_lookup_connection_value(c, MHD_HEADER_KIND,
						       MHD_HTTP_HEADER_HOST);

	if (host && !sp_address_is_unix(o->listen) && !is_own_host(o, host))
		sp_reply_text(reply, MHD_HTTP_MISDIRECTED_REQUEST,
			      "this server is not called %.*s: --host makes it "
			      "so",
			      (int)strcspn(host, ":"), host);
	else if (!is_allowed(o, c))
		sp_reply_text(reply, MHD_HTTP_UNAUTHORIZED,
			      "Authorization: Bearer needs the server's token");
	else if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
		 strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		sp_reply_text(reply, MHD_HTTP_METHOD_NOT_ALLOWED, "GET only");
	else if (strncmp(url, pprof, sizeof(pprof) - 1) == 0)
		return ask_for_profile(c, url + sizeof(pprof) - 1, q, reply);
	else if (strcmp(url, "/metrics") == 0)
		q->kind =
			accept && strstr(accept, "application/openmetrics-text")
				? SP_REPLY_OPEN_METRICS
				: SP_REPLY_METRICS;
	else if (strcmp(url, "/") != 0)
		sp_reply_text(reply, MHD_HTTP_NOT_FOUND,
			      "not found; / says what there is");
	return !reply->status;
}
