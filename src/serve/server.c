/* SPDX-License-Identifier: MIT */
/*
 * One thread talks to all connections.  What has to be read is a job of one of
 * two others: of the one for the directory, and then, for a profile, of the one
 * for profiles; the connection sleeps meanwhile.  So a connection costs little,
 * a profile that is written keeps no scrape waiting, and one profile at a time
 * is in memory.  A fourth thread reads what nobody should wait for.
 */
#include "serve/server.h"

#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/patience.h"
#include "serve/address.h"
#include "serve/ask.h"
#include "serve/reply.h"

#define IDLE_S 30u
/* Connections beyond the limit, which are told so. */
#define CONNECTIONS_SPARE 64u
/* Descriptors for all else. */
#define FILES_SPARE 128u
#define SECOND_NS   1000000000ull

/* A request that something has to be read for. */
struct job {
	struct job *next;
	struct MHD_Connection *connection;
	struct sp_reply_request request;
	uint64_t due_ns; /* monotonic; before that nothing is to be done */
	struct sp_reply reply;
};

struct queue {
	struct job *first, **end; /* by their coming */
	pthread_cond_t changed;
};

/* A connection.  Those that wait for a request are in the list, the longest
 * first. */
struct peer {
	struct peer *prev, *next;
	int fd;
	bool is_silent; /* in the list */
};

struct server {
	const struct sp_server_options *options;
	struct sp_replies *replies;
	pthread_mutex_t lock; /* of queues and is_ending */
	struct queue to_read, to_write;
	pthread_cond_t ends;
	bool is_ending;
	unsigned int n_jobs;
	unsigned int connections_max;
	/* Of the thread that talks. */
	struct peer silent; /* head of the list */
	unsigned int n_peers;
};

/* ---- jobs ---- */

static void queue_init(struct queue *q, const pthread_condattr_t *monotonic)
{
	q->first = NULL;
	q->end = &q->first;
	pthread_cond_init(&q->changed, monotonic);
}

/* False if the server ends. */
static bool put_job(struct server *s, struct queue *q, struct job *job)
{
	bool is_ending;

	pthread_mutex_lock(&s->lock);
	is_ending = s->is_ending;
	if (!is_ending) {
		job->next = NULL;
		*q->end = job;
		q->end = &job->next;
		pthread_cond_signal(&q->changed);
	}
	pthread_mutex_unlock(&s->lock);
	if (is_ending)
		sp_reply_text(&job->reply, MHD_HTTP_SERVICE_UNAVAILABLE,
			      "the server ends");
	return !is_ending;
}

static void wait_until(struct server *s, pthread_cond_t *of, uint64_t ns)
{
	const struct timespec until = {
		.tv_sec = (time_t)(ns / SECOND_NS),
		.tv_nsec = (long)(ns % SECOND_NS),
	};

	if (ns == UINT64_MAX)
		pthread_cond_wait(of, &s->lock);
	else
		pthread_cond_timedwait(of, &s->lock, &until);
}

/* The first job that is due, when there is one; of a server that ends any, and
 * NULL at last. */
static struct job *take_job(struct server *s, struct queue *q)
{
	struct job *job = NULL;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		const uint64_t now_ns = sp_clock_ns();
		uint64_t due_ns = UINT64_MAX;
		struct job **at = &q->first;

		for (; *at && !s->is_ending && (*at)->due_ns > now_ns;
		     at = &(*at)->next)
			if ((*at)->due_ns < due_ns)
				due_ns = (*at)->due_ns;
		job = *at;
		if (job) {
			*at = job->next;
			if (!*at)
				q->end = at;
			break;
		}
		if (s->is_ending)
			break;
		wait_until(s, &q->changed, due_ns);
	}
	pthread_mutex_unlock(&s->lock);
	return job;
}

static bool is_ending(struct server *s, struct job *job)
{
	bool ends;

	pthread_mutex_lock(&s->lock);
	ends = s->is_ending;
	pthread_mutex_unlock(&s->lock);
	if (ends)
		sp_reply_text(&job->reply, MHD_HTTP_SERVICE_UNAVAILABLE,
			      "the server ends");
	return ends;
}

static void *read_directory(void *arg)
{
	struct server *s = arg;
	struct job *job;

	while ((job = take_job(s, &s->to_read))) {
		if (!is_ending(s, job) &&
		    sp_replies_read(s->replies, &job->request, &job->reply)) {
			if (job->request.seconds)
				job->due_ns = sp_clock_ns() +
					      job->request.seconds * SECOND_NS;
			if (put_job(s, &s->to_write, job))
				continue;
		}
		MHD_resume_connection(job->connection);
	}
	return NULL;
}

static void *write_profiles(void *arg)
{
	struct server *s = arg;
	struct job *job;

	while ((job = take_job(s, &s->to_write))) {
		if (!is_ending(s, job))
			sp_replies_write(s->replies, &job->request,
					 &job->reply);
		MHD_resume_connection(job->connection);
	}
	return NULL;
}

/* Looks each second for a large file that it is time for. */
static void *read_slow_files(void *arg)
{
	struct server *s = arg;
	bool ends = false;

	while (!ends) {
		const bool has_read = sp_replies_read_slow(s->replies);

		pthread_mutex_lock(&s->lock);
		if (!has_read && !s->is_ending)
			wait_until(s, &s->ends, sp_clock_ns() + SECOND_NS);
		ends = s->is_ending;
		pthread_mutex_unlock(&s->lock);
	}
	return NULL;
}

/* ---- connections ---- */

static void leave_list(struct peer *peer)
{
	if (!peer->is_silent)
		return;
	peer->prev->next = peer->next;
	peer->next->prev = peer->prev;
	peer->is_silent = false;
}

static void enter_list(struct server *s, struct peer *peer)
{
	leave_list(peer);
	peer->prev = s->silent.prev;
	peer->next = &s->silent;
	peer->prev->next = peer->next->prev = peer;
	peer->is_silent = true;
}

static struct peer *peer_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

/* Beyond the limit the connection that has said nothing for longest makes
 * room: clients keep connections that they do not need. */
static void note_connection(void *arg, struct MHD_Connection *c, void **context,
			    enum MHD_ConnectionNotificationCode code)
{
	struct server *s = arg;
	struct peer *peer = *context;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		s->n_peers--;
		if (peer)
			leave_list(peer);
		free(peer);
		return;
	}
	s->n_peers++;
	if (s->n_peers > s->connections_max && s->silent.next != &s->silent) {
		shutdown(s->silent.next->fd, SHUT_RDWR);
		leave_list(s->silent.next);
	}
	*context = peer = calloc(1, sizeof(*peer));
	if (!peer)
		return;
	peer->fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)
			   ->connect_fd;
	enter_list(s, peer);
}

/* ---- requests ---- */

/* Frees the text. */
static enum MHD_Result send_reply(struct MHD_Connection *c,
				  struct sp_reply *reply)
{
	struct MHD_Response *response;
	enum MHD_Result result;

	if (!reply->text)
		return MHD_NO;
	response = MHD_create_response_from_buffer(reply->bytes, reply->text,
						   MHD_RESPMEM_MUST_FREE);
	if (!response)
		free(reply->text);
	reply->text = NULL;
	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, "Content-Type", reply->type);
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	if (reply->status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, "Allow", "GET");
	if (reply->status == MHD_HTTP_UNAUTHORIZED)
		MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
	if (reply->status == MHD_HTTP_SERVICE_UNAVAILABLE)
		MHD_add_response_header(response, "Retry-After", "1");
	result = MHD_queue_response(c, reply->status, response);
	MHD_destroy_response(response);
	return result;
}

/* False: there is no room for another one. */
static bool count_job(struct server *s, int change)
{
	bool has_room;

	pthread_mutex_lock(&s->lock);
	has_room = change < 0 || s->n_jobs < s->connections_max;
	if (has_room)
		s->n_jobs += (unsigned int)change;
	if (!s->n_jobs && s->is_ending)
		pthread_cond_broadcast(&s->ends);
	pthread_mutex_unlock(&s->lock);
	return has_room;
}

/* NULL, and the reply, if it cannot be done. */
static struct job *new_job(struct server *s, struct MHD_Connection *c,
			   struct sp_reply *reply)
{
	struct job *job = calloc(1, sizeof(*job));

	if (job && count_job(s, 1)) {
		job->connection = c;
		return job;
	}
	free(job);
	sp_reply_text(reply, MHD_HTTP_SERVICE_UNAVAILABLE,
		      "too many requests at a time");
	return NULL;
}

/* Is called for the head of a request, for the body that no request should
 * have, at its end, and when its job is done. */
static enum MHD_Result serve_request(void *arg, struct MHD_Connection *c,
				     const char *url, const char *method,
				     const char *version,
				     const char *upload_data, size_t *upload_n,
				     void **state)
{
	struct sp_reply_request request = {0};
	struct sp_reply reply = {0};
	struct server *s = arg;
	struct peer *peer;
	struct job *job;

	(void)version;
	(void)upload_data;
	if (!*state || *upload_n) {
		*state = s;
		*upload_n = 0;
		return MHD_YES;
	}
	if (*state != s) {
		job = *state;
		return send_reply(c, &job->reply);
	}
	if (!sp_ask(s->options, c, url, method, &request, &reply) ||
	    !(job = new_job(s, c, &reply)))
		return send_reply(c, &reply);
	job->request = request;
	*state = job;
	peer = peer_of(c);
	if (peer)
		leave_list(peer);
	MHD_suspend_connection(c);
	if (!put_job(s, &s->to_read, job))
		MHD_resume_connection(c);
	return MHD_YES;
}

static void end_request(void *arg, struct MHD_Connection *c, void **state,
			enum MHD_RequestTerminationCode code)
{
	struct server *s = arg;
	struct peer *peer = peer_of(c);
	struct job *job = *state;

	(void)code;
	if (peer)
		enter_list(s, peer);
	if (!job || *state == s)
		return;
	free(job->reply.text);
	free(job);
	count_job(s, -1);
}

/* ---- the server ---- */

static void wait_for_end(void)
{
	sigset_t signals;
	int number;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigwait(&signals, &number);
}

/* Other threads inherit that. */
static void block_signals(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

/* As many connections as are wanted, and as descriptors allow. */
static unsigned int limit_connections(unsigned int wanted)
{
	const rlim_t needed = wanted + CONNECTIONS_SPARE + FILES_SPARE;
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur >= needed)
		return wanted;
	files.rlim_cur = files.rlim_max < needed ? files.rlim_max : needed;
	setrlimit(RLIMIT_NOFILE, &files);
	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur >= needed)
		return wanted;
	return files.rlim_cur > needed - wanted
		       ? (unsigned int)(files.rlim_cur - (needed - wanted))
		       : 1;
}

static struct MHD_Daemon *start_daemon(struct server *s, int fd)
{
	errno = 0;
	return MHD_start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL |
			MHD_ALLOW_SUSPEND_RESUME,
		0, NULL, NULL, serve_request, s, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT,
		s->connections_max + CONNECTIONS_SPARE,
		MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S,
		MHD_OPTION_NOTIFY_CONNECTION, note_connection, s,
		MHD_OPTION_NOTIFY_COMPLETED, end_request, s, MHD_OPTION_END);
}

/* Each request that waits is answered. */
static void end_jobs(struct server *s)
{
	const uint64_t until_ns = sp_clock_ns() + 2 * SECOND_NS;

	pthread_mutex_lock(&s->lock);
	s->is_ending = true;
	pthread_cond_broadcast(&s->ends);
	pthread_cond_broadcast(&s->to_read.changed);
	pthread_cond_broadcast(&s->to_write.changed);
	while (s->n_jobs && sp_clock_ns() < until_ns)
		wait_until(s, &s->ends, until_ns);
	pthread_mutex_unlock(&s->lock);
}

static int serve_until_end(struct server *s, const struct sp_listener *l,
			   void (*on_ready)(void *arg, unsigned int port),
			   void *arg, struct sp_error *err)
{
	void *(*const works[])(void *) = {read_slow_files, read_directory,
					  write_profiles};
	struct MHD_Daemon *daemon = NULL;
	pthread_t threads[3];
	size_t n = 0;
	int code = 0;

	block_signals();
	while (n < 3 && !code) {
		code = pthread_create(&threads[n], NULL, works[n], s);
		n += !code;
	}
	if (!code) {
		daemon = start_daemon(s, l->fd);
		code = daemon ? 0 : errno ? errno : EIO;
	}
	if (!code) {
		on_ready(arg, l->port);
		wait_for_end();
	}
	end_jobs(s);
	for (size_t i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	if (daemon)
		MHD_stop_daemon(daemon);
	return code ? sp_error_set(err, -code, NULL, "cannot serve: %s",
				   strerror(code))
		    : 0;
}

int sp_server_run(const struct sp_server_options *options,
		  void (*on_ready)(void *arg, unsigned int port), void *arg,
		  struct sp_error *err)
{
	struct server s = {
		.options = options,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.connections_max = limit_connections(options->connections),
		.silent = {.prev = &s.silent, .next = &s.silent},
	};
	pthread_condattr_t monotonic;
	struct sp_listener listener;
	int r = sp_listener_open(options->listen, &listener, err);

	if (r < 0)
		return r;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&s.ends, &monotonic);
	queue_init(&s.to_read, &monotonic);
	queue_init(&s.to_write, &monotonic);
	/* While it has little memory. */
	sp_patience_begin();
	s.replies = sp_replies_new(options->dir, options->keep_ns,
				   options->no_classes);
	r = s.replies ? serve_until_end(&s, &listener, on_ready, arg, err)
		      : sp_error_memory(err, NULL);
	sp_replies_free(s.replies);
	sp_listener_done(&listener);
	return r;
}
