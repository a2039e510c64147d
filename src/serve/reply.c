/* SPDX-License-Identifier: MIT */
#include "serve/reply.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "serve/metrics.h"
#include "serve/request.h"
#include "symbols/symbol_cache.h"
#include "text/text.h"

#define TEXT_TYPE          "text/plain; charset=utf-8"
#define PLAIN_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define OPEN_METRICS_TYPE                                                      \
	"application/openmetrics-text; version=1.0.0; charset=utf-8"
#define PPROF_TYPE "application/octet-stream"

/* Names of functions: bytes that are kept, and for how long. */
#define SYMBOLS_BYTES  (64u << 20)
#define SYMBOLS_AGE_NS 3600000000000ull

enum {
	OK = 200,
	BAD_REQUEST = 400,
	NOT_FOUND = 404,
	FAILED = 500,
};

struct sp_replies {
	struct sp_metrics *metrics; /* `reading` */
	pthread_mutex_t reading;
	bool no_classes;
	struct sp_symbol_cache *symbols;
};

struct sp_replies *sp_replies_new(const char *dir, uint64_t keep_ns,
				  bool no_classes)
{
	struct sp_replies *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	pthread_mutex_init(&s->reading, NULL);
	s->no_classes = no_classes;
	s->metrics = sp_metrics_new(dir, keep_ns);
	s->symbols = sp_symbol_cache_new(SYMBOLS_BYTES);
	if (s->metrics && s->symbols)
		return s;
	sp_replies_free(s);
	return NULL;
}

void sp_replies_free(struct sp_replies *s)
{
	if (!s)
		return;
	sp_symbol_cache_free(s->symbols);
	sp_metrics_free(s->metrics);
	pthread_mutex_destroy(&s->reading);
	free(s);
}

void sp_reply_text(struct sp_reply *reply, unsigned int status,
		   const char *format, ...)
{
	char line[1024];
	va_list args;
	FILE *out;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	free(reply->text);
	*reply = (struct sp_reply){.status = status, .type = TEXT_TYPE};
	out = open_memstream(&reply->text, &reply->bytes);
	if (!out)
		return;
	sp_text_print(out, line);
	putc('\n', out);
	fclose(out);
}

/* Into memory; the rest of *to is that of a fine answer. */
static FILE *begin_reply(struct sp_reply *to, const char *type)
{
	*to = (struct sp_reply){.status = OK, .type = type};
	return open_memstream(&to->text, &to->bytes);
}

static void end_reply(struct sp_reply *to, FILE *out)
{
	if (!out || fclose(out) != 0)
		sp_reply_text(to, FAILED, "not enough memory");
}

/* Context: `reading`. */
static bool read_directory(struct sp_replies *s, struct sp_reply *ret)
{
	struct sp_error err;

	if (sp_metrics_read(s->metrics, sp_clock_unix_ns(), &err) >= 0)
		return true;
	sp_reply_text(ret, FAILED, "%s", err.message);
	return false;
}

/* Context: `reading`. */
static void reply_metrics(struct sp_replies *s, bool is_open,
			  struct sp_reply *reply)
{
	FILE *out = begin_reply(reply, is_open ? OPEN_METRICS_TYPE
					       : PLAIN_METRICS_TYPE);

	if (out)
		sp_metrics_write(s->metrics, is_open, !s->no_classes, out);
	end_reply(reply, out);
}

/* The same. */
static void reply_index(struct sp_replies *s, struct sp_reply *reply)
{
	struct sp_metrics_process p;
	FILE *out = begin_reply(reply, TEXT_TYPE);

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
	for (size_t i = 0; out && sp_metrics_process(s->metrics, i, &p); i++) {
		fprintf(out, "%8" PRIu64 "  %-7s  ", p.pid,
			p.is_running ? "running" : "ended");
		sp_text_print(out, p.program);
		putc('\n', out);
	}
	end_reply(reply, out);
}

/* ---- profiles ---- */

static uint64_t ms_since(uint64_t then_unix_ns)
{
	const uint64_t now = sp_clock_unix_ns();

	return now > then_unix_ns ? (now - then_unix_ns) / 1000000 : 0;
}

/* Choose the process that is meant: the one with that id that began last;
 * without one the only one that runs, or if none runs, that began last.
 * Returns whether there is one, and how many of them run. */
static bool find_process(struct sp_replies *s, struct sp_reply_request *q,
			 size_t *ret_n_running)
{
	struct sp_metrics_process p, best = {0};
	size_t n_running = 0;

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
	*ret_n_running = n_running;
	return best.path != NULL;
}

/* Context: `reading`. */
static bool choose_process(struct sp_replies *s, struct sp_reply_request *q,
			   struct sp_reply *reply)
{
	size_t n_running;
	bool is_there;

	if (!read_directory(s, reply))
		return false;
	is_there = find_process(s, q, &n_running);
	if (!is_there)
		sp_reply_text(reply, NOT_FOUND,
			      q->pid ? "no profile of that process is here"
				     : "no profile is here");
	else if (!q->pid && n_running > 1)
		sp_reply_text(reply, BAD_REQUEST,
			      "%zu processes run: say which one by ?pid=N; / "
			      "lists them",
			      n_running);
	else if (q->seconds && !q->is_running)
		sp_reply_text(reply, BAD_REQUEST,
			      "the process has ended: leave out seconds");
	else {
		q->from_ms = q->seconds ? ms_since(q->start_unix_ns) : 0;
		return true;
	}
	return false;
}

bool sp_replies_read(struct sp_replies *s, struct sp_reply_request *request,
		     struct sp_reply *reply)
{
	bool goes_on = false;

	pthread_mutex_lock(&s->reading);
	switch (request->kind) {
	case SP_REPLY_INDEX:
		if (read_directory(s, reply))
			reply_index(s, reply);
		break;
	case SP_REPLY_METRICS:
	case SP_REPLY_OPEN_METRICS:
		if (read_directory(s, reply))
			reply_metrics(s, request->kind == SP_REPLY_OPEN_METRICS,
				      reply);
		break;
	case SP_REPLY_PROFILE:
		goes_on = choose_process(s, request, reply);
	}
	pthread_mutex_unlock(&s->reading);
	return goes_on;
}

void sp_replies_write(struct sp_replies *s,
		      const struct sp_reply_request *request,
		      struct sp_reply *reply)
{
	struct sp_profile_request profile = {.view = request->view,
					     .path = request->path,
					     .from_ms = request->from_ms};
	struct sp_error err;
	FILE *out = begin_reply(reply, PPROF_TYPE);
	int r;

	if (!out)
		return;
	sp_symbol_cache_trim(s->symbols, sp_clock_unix_ns(), SYMBOLS_AGE_NS);
	if (request->is_running)
		profile.to_ms = ms_since(request->start_unix_ns);
	r = sp_profile_request_write(out, &profile, s->symbols, &err);
	end_reply(reply, out);
	if (r < 0)
		sp_reply_text(reply, FAILED, "%s", err.message);
}

bool sp_replies_read_slow(struct sp_replies *s)
{
	struct sp_metrics_file *file;

	pthread_mutex_lock(&s->reading);
	file = sp_metrics_begin_slow(s->metrics);
	pthread_mutex_unlock(&s->reading);
	if (!file)
		return false;
	sp_metrics_read_slow(file);
	pthread_mutex_lock(&s->reading);
	sp_metrics_end_slow(s->metrics, file);
	pthread_mutex_unlock(&s->reading);
	return true;
}
