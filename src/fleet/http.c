/* SPDX-License-Identifier: MIT */
#include "fleet/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CONNECT_S 10L
/* What a program that is told to end still waits for a server. */
#define END_S 5
/* Slower than that is silence. */
#define SLOW_BYTES 100L
/* An answer waits in the network when so much of it is here. */
#define BUFFER_BYTES ((size_t)4 << 20)
#define REST_BYTES   4096u

struct sp_http {
	const char *name;
	char *url, *password;
	CURL *easy;
	CURLM *multi;
	struct curl_slist *headers;
	long timeout_s;
	bool is_running, is_paused;
	time_t told_s; /* when it was seen that this has to end; 0: not */
	bool has_answer, has_end; /* it began; it says where it ends */
	CURLcode code;            /* when it is not running */
	unsigned char *bytes;
	size_t from, to, room; /* of bytes, what is to be read */
	char rest[REST_BYTES];
	char detail[CURL_ERROR_SIZE]; /* what libcurl says of a failure */
};

/* ---- what comes ---- */

static size_t take_bytes(char *data, size_t size, size_t n, void *arg)
{
	struct sp_http *h = arg;
	unsigned char *bytes;

	n *= size;
	if (h->to - h->from > BUFFER_BYTES) {
		h->is_paused = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	if (h->from) {
		memmove(h->bytes, h->bytes + h->from, h->to - h->from);
		h->to -= h->from;
		h->from = 0;
	}
	if (h->room - h->to < n) {
		bytes = realloc(h->bytes, 2 * (h->to + n));
		if (!bytes)
			return 0;
		h->bytes = bytes;
		h->room = 2 * (h->to + n);
	}
	memcpy(h->bytes + h->to, data, n);
	h->to += n;
	return n;
}

/* An answer that ends where the connection does may have been cut. */
static size_t take_header(char *data, size_t size, size_t n, void *arg)
{
	static const char *const ends[] = {"Transfer-Encoding: chunked",
					   "Content-Length:"};
	struct sp_http *h = arg;

	h->has_answer = true;
	for (size_t i = 0; i < 2; i++)
		if (size * n >= strlen(ends[i]) &&
		    strncasecmp(data, ends[i], strlen(ends[i])) == 0)
			h->has_end = true;
	return size * n;
}

/* What a server says may hold anything, even what it was told. */
static void clean_text(const struct sp_http *h, char *text)
{
	char *at;

	while (h->password && *h->password &&
	       (at = strstr(text, h->password)) != NULL)
		memset(at, '*', strlen(h->password));
	for (at = text; *at; at++)
		if ((unsigned char)*at < ' ' || (unsigned char)*at >= 127)
			*at = ' ';
	while (at > text && at[-1] == ' ')
		*--at = '\0';
}

static long connect_s(long timeout_s)
{
	return timeout_s < CONNECT_S ? timeout_s : CONNECT_S;
}

/* A connection that was made and silent, or none within the time for that. */
static int fail_timeout(struct sp_http *h, struct sp_error *err)
{
	double s = 0;

	curl_easy_getinfo(h->easy, CURLINFO_PRETRANSFER_TIME, &s);
	if (s > 0)
		return sp_error_set(err, -ETIMEDOUT, h->name,
				    "the server sent nothing for %ld s: check "
				    "that it works; if the question is large, "
				    "give it more with ?timeout= in --db",
				    h->timeout_s);
	return sp_error_set(err, -ETIMEDOUT, h->name,
			    "no connection to the server within %ld s: are "
			    "host, port and secure= right?",
			    connect_s(h->timeout_s));
}

/* Nothing that is HTTP came back: so does a port for https end what is sent to
 * it in plain text. */
static bool may_want_tls(const struct sp_http *h)
{
	return !h->has_answer && strncmp(h->url, "http:", 5) == 0 &&
	       (h->code == CURLE_GOT_NOTHING || h->code == CURLE_RECV_ERROR ||
		h->code == CURLE_SEND_ERROR ||
		h->code == CURLE_UNSUPPORTED_PROTOCOL ||
		h->code == CURLE_WEIRD_SERVER_REPLY);
}

static int fail_curl(struct sp_http *h, struct sp_error *err)
{
	const char *detail = h->detail;

	clean_text(h, h->detail);
	if (!*detail)
		detail = curl_easy_strerror(h->code);
	switch (h->code) {
	case CURLE_OUT_OF_MEMORY:
	case CURLE_WRITE_ERROR:
		return sp_error_memory(err, h->name);
	case CURLE_OPERATION_TIMEDOUT:
		return fail_timeout(h, err);
	case CURLE_ABORTED_BY_CALLBACK:
		return sp_error_set(err, -EINTR, h->name,
				    "interrupted before the server answered");
	case CURLE_PEER_FAILED_VERIFICATION:
		return sp_error_set(
			err, -EPERM, h->name,
			"the server's certificate is not trusted (%.100s): "
			"name the certificate of its issuer with ?ca=PATH",
			detail);
	case CURLE_SSL_CACERT_BADFILE:
		return sp_error_set(err, -EINVAL, h->name,
				    "the file of ca= has no certificate that "
				    "can be read");
	case CURLE_SSL_CONNECT_ERROR:
		return sp_error_set(err, -EIO, h->name,
				    "no TLS with the server (%.100s): is that "
				    "its port for https?",
				    detail);
	case CURLE_COULDNT_CONNECT:
	case CURLE_COULDNT_RESOLVE_HOST:
		return sp_error_set(err, -ECONNREFUSED, h->name,
				    "the server cannot be reached (%s)",
				    curl_easy_strerror(h->code));
	default:
		return sp_error_set(err, -EIO, h->name,
				    "the connection failed (%s): try again%s",
				    curl_easy_strerror(h->code),
				    may_want_tls(h)
					    ? "; if that is a port for https, "
					      "add ?secure=on to --db"
					    : "");
	}
}

void sp_http_stop(struct sp_http *h)
{
	if (h->is_running)
		curl_multi_remove_handle(h->multi, h->easy);
	h->is_running = h->is_paused = false;
}

/* Programs that end between two steps hold SIGINT and SIGTERM back.  A server
 * that is slow or silent must not keep them. */
static bool is_over(struct sp_http *h)
{
	struct timespec now;
	sigset_t held;

	if (sigpending(&held) != 0 ||
	    (!sigismember(&held, SIGINT) && !sigismember(&held, SIGTERM)))
		return false;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!h->told_s)
		h->told_s = now.tv_sec;
	return now.tv_sec - h->told_s > END_S;
}

/* Until there are n bytes, or there is no more to come. */
static void receive_bytes(struct sp_http *h, size_t n)
{
	int running = 0, left;
	CURLMsg *message;

	while (h->is_running && h->to - h->from < n) {
		if (h->is_paused) {
			h->is_paused = false;
			curl_easy_pause(h->easy, CURLPAUSE_CONT);
		}
		if (curl_multi_perform(h->multi, &running) != CURLM_OK) {
			h->code = CURLE_RECV_ERROR;
			sp_http_stop(h);
			return;
		}
		while ((message = curl_multi_info_read(h->multi, &left)))
			if (message->msg == CURLMSG_DONE) {
				h->code = message->data.result;
				sp_http_stop(h);
				return;
			}
		if (h->to - h->from >= n)
			return;
		if (is_over(h)) {
			h->code = CURLE_ABORTED_BY_CALLBACK;
			sp_http_stop(h);
			return;
		}
		curl_multi_wait(h->multi, NULL, 0, 1000, NULL);
	}
}

int sp_http_read(struct sp_http *h, void *to, size_t n, struct sp_error *err)
{
	unsigned char *out = to;

	while (n) {
		size_t some;

		receive_bytes(h, 1);
		some = h->to - h->from < n ? h->to - h->from : n;
		if (!some)
			break;
		memcpy(out, h->bytes + h->from, some);
		out += some;
		h->from += some;
		n -= some;
	}
	if (!n)
		return 1;
	if (h->code != CURLE_OK)
		return fail_curl(h, err);
	if (!h->has_end || out != to)
		return sp_error_set(err, h->has_end ? -EPIPE : -EIO, h->name,
				    "the answer of the server was cut: try "
				    "again");
	return 0;
}

const char *sp_http_rest(struct sp_http *h)
{
	size_t n;

	receive_bytes(h, sizeof(h->rest));
	n = h->to - h->from;
	if (n > sizeof(h->rest) - 1)
		n = sizeof(h->rest) - 1;
	memcpy(h->rest, n ? h->bytes + h->from : (const void *)"", n);
	h->rest[n] = '\0';
	for (size_t i = 0; i < n; i++)
		if (!h->rest[i])
			h->rest[i] = ' ';
	clean_text(h, h->rest);
	return h->rest;
}

int sp_http_expect(struct sp_http *h, const char *type, struct sp_error *err)
{
	const char *is = NULL;

	curl_easy_getinfo(h->easy, CURLINFO_CONTENT_TYPE, &is);
	if (is && strncasecmp(is, type, strlen(type)) == 0)
		return 0;
	return sp_error_set(err, -EUCLEAN, h->name,
			    "the answer makes no sense: is that the HTTP port "
			    "of a ClickHouse server? It says %.100s",
			    sp_http_rest(h));
}

/* ---- requests ---- */

static int fail_status(struct sp_http *h, long status, struct sp_error *err)
{
	const char *said = sp_http_rest(h);

	if (status == 401 || status == 403 ||
	    strstr(said, "Password required") ||
	    strstr(said, "Wrong password") ||
	    strstr(said, "Authentication failed"))
		return sp_error_set(err, -EPERM, h->name,
				    "the server does not let this user in: "
				    "set SAMPLEPROF_DB_PASSWORD, or add "
				    "?password-file=PATH to --db");
	return sp_error_set(err, -EIO, h->name,
			    "the server refused (%ld): %.170s", status,
			    *said ? said : "no reason given");
}

int sp_http_post(struct sp_http *h, const char *query, const void *body,
		 size_t n, struct sp_error *err)
{
	const size_t room = strlen(h->url) + strlen(query) + 1;
	char *url = malloc(room);
	long status = 0;

	sp_http_stop(h);
	h->from = h->to = 0;
	h->has_answer = h->has_end = false;
	h->code = CURLE_OK;
	h->detail[0] = '\0';
	if (!url)
		return sp_error_memory(err, h->name);
	snprintf(url, room, "%s%s", h->url, query);
	curl_easy_setopt(h->easy, CURLOPT_URL, url);
	free(url);
	curl_easy_setopt(h->easy, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(h->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)n);
	if (curl_multi_add_handle(h->multi, h->easy) != CURLM_OK)
		return sp_error_memory(err, h->name);
	h->is_running = true;
	receive_bytes(h, 1);
	if (h->code != CURLE_OK)
		return fail_curl(h, err);
	curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &status);
	return status == 200 ? 0 : fail_status(h, status, err);
}

static void set_options(struct sp_http *h, const struct sp_http_server *s)
{
	CURL *e = h->easy;

	curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(e, CURLOPT_POST, 1L);
	curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT, connect_s(s->timeout_s));
	curl_easy_setopt(e, CURLOPT_ERRORBUFFER, h->detail);
	curl_easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, SLOW_BYTES);
	curl_easy_setopt(e, CURLOPT_LOW_SPEED_TIME, s->timeout_s);
	curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, take_bytes);
	curl_easy_setopt(e, CURLOPT_WRITEDATA, h);
	curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, take_header);
	curl_easy_setopt(e, CURLOPT_HEADERDATA, h);
	curl_easy_setopt(e, CURLOPT_HTTPHEADER, h->headers);
	curl_easy_setopt(e, CURLOPT_BUFFERSIZE, 256L << 10);
	curl_easy_setopt(e, CURLOPT_UPLOAD_BUFFERSIZE, 256L << 10);
	if (s->ca_file)
		curl_easy_setopt(e, CURLOPT_CAINFO, s->ca_file);
}

static bool add_header(struct sp_http *h, const char *name, const char *value)
{
	char *line;
	struct curl_slist *list;

	if (!value)
		return true;
	if (asprintf(&line, "%s%s", name, value) < 0)
		return false;
	list = curl_slist_append(h->headers, line);
	explicit_bzero(line, strlen(line));
	free(line);
	if (list)
		h->headers = list;
	return list;
}

int sp_http_new(const struct sp_http_server *s, struct sp_http **ret,
		struct sp_error *err)
{
	struct sp_http *h;

	*ret = NULL;
	*ret = h = calloc(1, sizeof(*h));
	if (!h)
		return sp_error_memory(err, s->name);
	h->name = s->name;
	h->timeout_s = s->timeout_s;
	h->url = strdup(s->url);
	h->password = s->password ? strdup(s->password) : NULL;
	h->easy = curl_easy_init();
	h->multi = curl_multi_init();
	if (!h->url || (s->password && !h->password) || !h->easy || !h->multi ||
	    !add_header(h, "Expect:", "") ||
	    !add_header(h, "Content-Type: ", "application/octet-stream") ||
	    !add_header(h, "Content-Encoding: ", "gzip") ||
	    !add_header(h, "X-ClickHouse-User: ", s->user) ||
	    !add_header(h, "X-ClickHouse-Key: ", s->password))
		return sp_error_memory(err, s->name);
	set_options(h, s);
	return 0;
}

void sp_http_free(struct sp_http *h)
{
	if (!h)
		return;
	sp_http_stop(h);
	if (h->easy)
		curl_easy_cleanup(h->easy);
	if (h->multi)
		curl_multi_cleanup(h->multi);
	if (h->headers)
		curl_slist_free_all(h->headers);
	if (h->password)
		explicit_bzero(h->password, strlen(h->password));
	free(h->password);
	free(h->url);
	free(h->bytes);
	free(h);
}

char *sp_http_escape(const char *text)
{
	static const char digits[] = "0123456789ABCDEF";
	char *escaped = malloc(3 * strlen(text) + 1), *to = escaped;

	for (; escaped && *text; text++) {
		const unsigned char c = (unsigned char)*text;

		if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
		    (c >= 'a' && c <= 'z') || c == '_' || c == '-' ||
		    c == '.') {
			*to++ = *text;
			continue;
		}
		*to++ = '%';
		*to++ = digits[c >> 4];
		*to++ = digits[c & 15];
	}
	if (escaped)
		*to = '\0';
	return escaped;
}
