/* SPDX-License-Identifier: MIT */
/*
 * A thread for each connection; one at a time reads profiles (`reading`).  A
 * request that waits for its seconds holds nothing.  One more thread reads what
 * nobody should wait for.
 */
#include "serve/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/patience.h"
#include "serve/metrics.h"
#include "serve/request.h"
#include "symbols/symbol_cache.h"
#include "text/text.h"

#define CONNECTIONS_MAX 32u
#define IDLE_S          30u

#define TEXT_TYPE          "text/plain; charset=utf-8"
#define OPEN_TYPE          "application/openmetrics-text"
#define PLAIN_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define OPEN_METRICS_TYPE  OPEN_TYPE "; version=1.0.0; charset=utf-8"
#define PPROF_TYPE         "application/octet-stream"

/* Names of functions: bytes that are kept, and for how long. */
#define SYMBOLS_BYTES  (64u << 20)
#define SYMBOLS_AGE_NS 3600000000000ull

struct server {
	struct sp_metrics *metrics; /* `reading` */
	pthread_mutex_t reading;
	/* One profile at a time is in memory; /metrics does not wait for it. */
	pthread_mutex_t exporting;
	struct sp_symbol_cache *symbols; /* `exporting` */
	pthread_mutex_t ending;
	pthread_cond_t ends;
	bool is_ending; /* `ending` */
};

/* What is answered: a status, and a text that is freed with it. */
struct answer {
	unsigned int status;
	const char *type;
	char *text;
	size_t bytes;
};

/* ---- addresses ---- */

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static bool parse_address(const char *text, union address *ret)
{
	const char *colon = strrchr(text, ':');
	char host[64];
	uint64_t port;
	size_t n;

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
	memset(ret, 0, sizeof(*ret));
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

bool sp_server_can_listen(const char *text)
{
	union address address;

	return parse_address(text, &address);
}

/* ---- answers ---- */

/* `format` makes lines of text; what is untrusted in them is cleaned. */
static void __attribute__((format(printf, 3, 4)))
answer_text(struct answer *to, unsigned int status, const char *format, ...)
{
	char line[1024];
	va_list args;
	FILE *out;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	free(to->text);
	*to = (struct answer){.status = status, .type = TEXT_TYPE};
	out = open_memstream(&to->text, &to->bytes);
	if (!out)
		return;
	sp_text_print(out, line);
	putc('\n', out);
	fclose(out);
}

/* Into memory; the rest of *to is that of a fine answer. */
static FILE *begin_answer(struct answer *to, const char *type)
{
	*to = (struct answer){.status = MHD_HTTP_OK, .type = type};
	return open_memstream(&to->text, &to->bytes);
}

static void end_answer(struct answer *to, FILE *out)
{
	if (!out || fclose(out) != 0)
		answer_text(to, MHD_HTTP_INTERNAL_SERVER_ERROR,
			    "not enough memory");
}

/* Context: `reading`. */
static bool read_directory(struct server *s, struct answer *ret)
{
	struct sp_error err;

	if (sp_metrics_read(s->metrics, sp_clock_unix_ns(), &err) >= 0)
		return true;
	answer_text(ret, MHD_HTTP_INTERNAL_SERVER_ERROR, "%s", err.message);
	return false;
}

static void answer_metrics(struct server *s, struct MHD_Connection *c,
			   struct answer *ret)
{
	const char *accept = MHD_lookup_connection_value(
		c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	const bool is_open = accept && strstr(accept, OPEN_TYPE);
	FILE *out;

	pthread_mutex_lock(&s->reading);
	if (read_directory(s, ret)) {
		out = begin_answer(ret, is_open ? OPEN_METRICS_TYPE
						: PLAIN_METRICS_TYPE);
		if (out)
			sp_metrics_write(s->metrics, is_open, out);
		end_answer(ret, out);
	}
	pthread_mutex_unlock(&s->reading);
}

static void answer_index(struct server *s, struct answer *ret)
{
	struct sp_metrics_process p;
	FILE *out;

	pthread_mutex_lock(&s->reading);
	if (read_directory(s, ret)) {
		out = begin_answer(ret, TEXT_TYPE);
		if (out)
			fputs("/metrics                 for Prometheus\n"
			      "/debug/pprof/allocs      what was allocated\n"
			      "/debug/pprof/heap        what is alive\n"
			      "/debug/pprof/peak        what was alive at the "
			      "peak\n"
			      "\n"
			      "?pid=N     of that process\n"
			      "?seconds=N of what is allocated from now on\n"
			      "\n"
			      "Processes:\n",
			      out);
		for (size_t i = 0; out && sp_metrics_process(s->metrics, i, &p);
		     i++) {
			fprintf(out, "%8" PRIu64 "  %-7s  ", p.pid,
				p.is_running ? "running" : "ended");
			sp_text_print(out, p.program);
			putc('\n', out);
		}
		end_answer(ret, out);
	}
	pthread_mutex_unlock(&s->reading);
}

/* ---- profiles ---- */

struct request {
	const char *view;
	uint64_t pid;     /* 0: not said */
	uint64_t seconds; /* 0: the whole run */
	char path[4200];
	uint64_t start_unix_ns;
	bool is_running;
};

/* The process that is meant: the one with that id that began last; without one
 * the only one that runs, or if none runs, that began last. */
static bool choose_process(struct server *s, struct request *q,
			   struct answer *ret)
{
	struct sp_metrics_process p, best = {0};
	size_t n_running = 0;

	pthread_mutex_lock(&s->reading);
	if (!read_directory(s, ret)) {
		pthread_mutex_unlock(&s->reading);
		return false;
	}
	for (size_t i = 0; sp_metrics_process(s->metrics, i, &p); i++) {
		if (q->pid && p.pid != q->pid)
			continue;
		n_running += p.is_running;
		if (!best.path || p.is_running > best.is_running ||
		    (p.is_running == best.is_running &&
		     p.start_unix_ns > best.start_unix_ns))
			best = p;
	}
	if (best.path) {
		snprintf(q->path, sizeof(q->path), "%s", best.path);
		q->start_unix_ns = best.start_unix_ns;
		q->is_running = best.is_running;
	}
	pthread_mutex_unlock(&s->reading);
	if (!best.path)
		answer_text(ret, MHD_HTTP_NOT_FOUND,
			    q->pid ? "no profile of that process is here"
				   : "no profile is here");
	else if (!q->pid && n_running > 1)
		answer_text(ret, MHD_HTTP_BAD_REQUEST,
			    "%zu processes run: say which one by ?pid=N; / "
			    "lists them",
			    n_running);
	else if (q->seconds && !best.is_running)
		answer_text(ret, MHD_HTTP_BAD_REQUEST,
			    "the process has ended: leave out seconds");
	else
		return true;
	return false;
}

/* False if the server ends meanwhile. */
static bool wait_seconds(struct server *s, uint64_t seconds)
{
	struct timespec until;
	bool is_ending;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += (time_t)seconds;
	pthread_mutex_lock(&s->ending);
	while (!s->is_ending &&
	       pthread_cond_timedwait(&s->ends, &s->ending, &until) == 0)
		;
	is_ending = s->is_ending;
	pthread_mutex_unlock(&s->ending);
	return !is_ending;
}

static uint64_t ms_since(uint64_t then_unix_ns)
{
	const uint64_t now = sp_clock_unix_ns();

	return now > then_unix_ns ? (now - then_unix_ns) / 1000000 : 0;
}

static void answer_profile(struct server *s, struct request *q,
			   struct answer *ret)
{
	struct sp_profile_request profile = {.view = q->view, .path = q->path};
	struct sp_error err;
	FILE *out;
	int r;

	if (!choose_process(s, q, ret))
		return;
	if (q->seconds)
		profile.from_ms = ms_since(q->start_unix_ns);
	if (q->seconds && !wait_seconds(s, q->seconds)) {
		answer_text(ret, MHD_HTTP_SERVICE_UNAVAILABLE,
			    "the server ends");
		return;
	}
	out = begin_answer(ret, PPROF_TYPE);
	if (!out)
		return;
	pthread_mutex_lock(&s->exporting);
	sp_symbol_cache_trim(s->symbols, sp_clock_unix_ns(), SYMBOLS_AGE_NS);
	if (q->is_running)
		profile.to_ms = ms_since(q->start_unix_ns);
	r = sp_profile_request_write(out, &profile, s->symbols, &err);
	pthread_mutex_unlock(&s->exporting);
	end_answer(ret, out);
	if (r == -ERANGE)
		answer_text(ret, MHD_HTTP_SERVICE_UNAVAILABLE,
			    "the process has recorded nothing in that time");
	else if (r < 0)
		answer_text(ret, MHD_HTTP_INTERNAL_SERVER_ERROR, "%s",
			    err.message);
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

static void answer_pprof(struct server *s, struct MHD_Connection *c,
			 const char *name, struct answer *ret)
{
	struct request q = {0};

	for (size_t i = 0; i < sizeof(pprof_views) / sizeof(*pprof_views); i++)
		if (strcmp(name, pprof_views[i].name) == 0)
			q.view = pprof_views[i].view;
	if (!q.view)
		answer_text(ret, MHD_HTTP_NOT_FOUND,
			    "there are allocs, heap and peak");
	else if (number_of(c, "pid", UINT32_MAX, &q.pid) < 0)
		answer_text(ret, MHD_HTTP_BAD_REQUEST,
			    "pid takes a process id");
	else if (number_of(c, "seconds", SP_SERVER_SECONDS_MAX, &q.seconds) < 0)
		answer_text(ret, MHD_HTTP_BAD_REQUEST, "seconds takes 0 to %u",
			    SP_SERVER_SECONDS_MAX);
	else if (MHD_set_connection_option(c, MHD_CONNECTION_OPTION_TIMEOUT,
					   (unsigned int)q.seconds + IDLE_S) ==
		 MHD_YES)
		answer_profile(s, &q, ret);
}

/* ---- connections ---- */

static enum MHD_Result send_answer(struct MHD_Connection *c,
				   struct answer *answer, bool is_get)
{
	struct MHD_Response *response;
	enum MHD_Result result;

	if (!answer->text)
		return MHD_NO;
	response = MHD_create_response_from_buffer(answer->bytes, answer->text,
						   MHD_RESPMEM_MUST_FREE);
	if (!response) {
		free(answer->text);
		return MHD_NO;
	}
	MHD_add_response_header(response, "Content-Type", answer->type);
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	if (!is_get)
		MHD_add_response_header(response, "Allow", "GET");
	result = MHD_queue_response(c, answer->status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result serve_request(void *arg, struct MHD_Connection *c,
				     const char *url, const char *method,
				     const char *version,
				     const char *upload_data, size_t *upload_n,
				     void **state)
{
	static const char pprof[] = "/debug/pprof/";
	const bool is_get = strcmp(method, MHD_HTTP_METHOD_GET) == 0 ||
			    strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
	struct answer answer = {0};
	struct server *s = arg;

	(void)version;
	(void)upload_data;
	/* The first call is of the head alone. */
	if (!*state) {
		*state = s;
		return MHD_YES;
	}
	if (*upload_n) {
		*upload_n = 0;
		return MHD_YES;
	}
	if (!is_get)
		answer_text(&answer, MHD_HTTP_METHOD_NOT_ALLOWED, "GET only");
	else if (strcmp(url, "/metrics") == 0)
		answer_metrics(s, c, &answer);
	else if (strncmp(url, pprof, sizeof(pprof) - 1) == 0)
		answer_pprof(s, c, url + sizeof(pprof) - 1, &answer);
	else if (strcmp(url, "/") == 0)
		answer_index(s, &answer);
	else
		answer_text(&answer, MHD_HTTP_NOT_FOUND,
			    "not found; / says what there is");
	return send_answer(c, &answer, is_get);
}

/* Looks each second for a large file that it is time for. */
static void *read_slow_files(void *arg)
{
	struct server *s = arg;
	struct sp_metrics_file *file = NULL;

	while (wait_seconds(s, file ? 0 : 1)) {
		pthread_mutex_lock(&s->reading);
		file = sp_metrics_begin_slow(s->metrics);
		pthread_mutex_unlock(&s->reading);
		if (!file)
			continue;
		sp_metrics_read_slow(file);
		pthread_mutex_lock(&s->reading);
		sp_metrics_end_slow(s->metrics, file);
		pthread_mutex_unlock(&s->reading);
	}
	return NULL;
}

static void wait_for_end(void)
{
	sigset_t signals;
	int number;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigwait(&signals, &number);
}

/* Threads of connections inherit that. */
static void block_signals(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

static struct MHD_Daemon *start_daemon(struct server *s,
				       const union address *address)
{
	const unsigned int flags =
		MHD_USE_INTERNAL_POLLING_THREAD |
		MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL |
		(address->any.sa_family == AF_INET6 ? MHD_USE_IPv6 : 0);

	errno = 0;
	return MHD_start_daemon(
		flags, 0, NULL, NULL, serve_request, s, MHD_OPTION_SOCK_ADDR,
		&address->any, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
		MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S,
		MHD_OPTION_LISTENING_ADDRESS_REUSE, 1u, MHD_OPTION_END);
}

static void end_waits(struct server *s)
{
	pthread_mutex_lock(&s->ending);
	s->is_ending = true;
	pthread_cond_broadcast(&s->ends);
	pthread_mutex_unlock(&s->ending);
}

static int serve_until_end(struct server *s, const char *listen,
			   const union address *address,
			   void (*on_ready)(void *arg, unsigned int port),
			   void *arg, struct sp_error *err)
{
	const union MHD_DaemonInfo *info;
	struct MHD_Daemon *daemon;
	pthread_t reader;
	int code;

	block_signals();
	code = pthread_create(&reader, NULL, read_slow_files, s);
	if (code)
		return sp_error_set(err, -code, NULL, "no thread: %s",
				    strerror(code));
	daemon = start_daemon(s, address);
	if (!daemon) {
		code = errno ? -errno : -EIO;
		end_waits(s);
		pthread_join(reader, NULL);
		return sp_error_set(err, code, NULL,
				    "cannot listen on %.100s: %s", listen,
				    strerror(-code));
	}
	info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
	on_ready(arg, info ? info->port : 0);
	wait_for_end();
	end_waits(s);
	MHD_stop_daemon(daemon);
	pthread_join(reader, NULL);
	return 0;
}

int sp_server_run(const struct sp_server_options *options,
		  void (*on_ready)(void *arg, unsigned int port), void *arg,
		  struct sp_error *err)
{
	struct server s = {
		.reading = PTHREAD_MUTEX_INITIALIZER,
		.exporting = PTHREAD_MUTEX_INITIALIZER,
		.ending = PTHREAD_MUTEX_INITIALIZER,
		.ends = PTHREAD_COND_INITIALIZER,
	};
	union address address;
	int r;

	if (!parse_address(options->listen, &address))
		return sp_error_set(err, -EINVAL, NULL,
				    "%.100s is no address to listen on: give "
				    "one such as " SP_SERVER_LISTEN,
				    options->listen);
	/* While it has little memory. */
	sp_patience_begin();
	s.metrics = sp_metrics_new(options->dir, options->keep_ns);
	s.symbols = sp_symbol_cache_new(SYMBOLS_BYTES);
	r = s.metrics && s.symbols
		    ? serve_until_end(&s, options->listen, &address, on_ready,
				      arg, err)
		    : sp_error_memory(err, NULL);
	sp_symbol_cache_free(s.symbols);
	sp_metrics_free(s.metrics);
	return r;
}
