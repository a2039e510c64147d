/* SPDX-License-Identifier: MIT */
#include "serve/receiver.h"

#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/ending.h"

/* Sample types that are sums of the time since the last profile, and those that
 * are states. */
static const char sample_types[] =
	"{\"alloc_objects\":{\"units\":\"objects\",\"cumulative\":false},"
	"\"alloc_space\":{\"units\":\"bytes\",\"cumulative\":false},"
	"\"inuse_objects\":{\"units\":\"objects\",\"aggregation\":\"average\"},"
	"\"inuse_space\":{\"units\":\"bytes\",\"aggregation\":\"average\"}}";

struct sp_receiver {
	const struct sp_receiver_options *options;
	CURL *curl;
	struct curl_slist *headers;
	char *base; /* URL without a slash at its end */
	char problem[CURL_ERROR_SIZE];
	char said[512]; /* the beginning of an answer */
	size_t n_said;
	uint64_t wait_s;
};

const char *sp_receiver_check(const char *url)
{
	const char *const host = strstr(url, "://");

	if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
		return "begins with http:// or https://";
	if (!host[3] || host[3] == '/')
		return "needs a host";
	if (memchr(host + 3, '@', strcspn(host + 3, "/")))
		return "must not have a user and password, which others could "
		       "see: put them into ~/.netrc";
	if (strpbrk(url, "?# "))
		return "must not have ?, # or spaces";
	return NULL;
}

static size_t take_answer(char *data, size_t size, size_t n, void *arg)
{
	struct sp_receiver *to = arg;
	size_t room = sizeof(to->said) - 1 - to->n_said;

	if (room > size * n)
		room = size * n;
	memcpy(to->said + to->n_said, data, room);
	to->n_said += room;
	to->said[to->n_said] = '\0';
	return size * n;
}

/* Not 0: the transfer ends. */
static int look_for_end(void *arg, curl_off_t down_all, curl_off_t down,
			curl_off_t up_all, curl_off_t up)
{
	(void)arg;
	(void)down_all;
	(void)down;
	(void)up_all;
	(void)up;
	return sp_ending_has_come();
}

static bool add_header(struct sp_receiver *to, const char *line)
{
	struct curl_slist *more = curl_slist_append(to->headers, line);

	if (more)
		to->headers = more;
	return more != NULL;
}

static bool add_headers(struct sp_receiver *to)
{
	const struct sp_receiver_options *o = to->options;
	char *line = NULL;
	/* No "Expect": some servers never answer it. */
	bool is_fine = add_header(to, "Expect:");

	if (is_fine && o->is_otlp)
		is_fine = add_header(to, "Content-Type: application/"
					 "x-protobuf") &&
			  add_header(to, "Content-Encoding: gzip");
	if (is_fine && o->token) {
		is_fine = asprintf(&line, "Authorization: Bearer %s",
				   o->token) >= 0 &&
			  add_header(to, line);
		free(line);
	}
	for (size_t i = 0; is_fine && i < o->n_headers; i++)
		is_fine = add_header(to, o->headers[i]);
	return is_fine;
}

static bool set_up(struct sp_receiver *to)
{
	CURL *c = to->curl;

	if (!add_headers(to))
		return false;
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, to->headers);
	if (to->options->ca_file)
		curl_easy_setopt(c, CURLOPT_CAINFO, to->options->ca_file);
#if LIBCURL_VERSION_NUM >= 0x075500
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	curl_easy_setopt(c, CURLOPT_PROTOCOLS,
			 (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
	curl_easy_setopt(c, CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
	curl_easy_setopt(c, CURLOPT_USERAGENT, "sampleprof");
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT,
			 (long)SP_RECEIVER_CONNECT_S);
	curl_easy_setopt(c, CURLOPT_TIMEOUT, (long)SP_RECEIVER_ANSWER_S);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, to->problem);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_answer);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, to);
	curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, look_for_end);
	curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
	return true;
}

int sp_receiver_new(const struct sp_receiver_options *options,
		    struct sp_receiver **ret, struct sp_error *err)
{
	struct sp_receiver *to = calloc(1, sizeof(*to));
	size_t n = strlen(options->url);

	while (n && options->url[n - 1] == '/')
		n--;
	if (to) {
		to->options = options;
		to->base = strndup(options->url, n);
		to->curl = curl_easy_init();
	}
	if (!to || !to->base || !to->curl || !set_up(to)) {
		sp_receiver_free(to);
		return sp_error_memory(err, NULL);
	}
	*ret = to;
	return 0;
}

void sp_receiver_free(struct sp_receiver *to)
{
	if (!to)
		return;
	curl_slist_free_all(to->headers);
	curl_easy_cleanup(to->curl);
	free(to->base);
	free(to);
}

static bool add_part(curl_mime *form, const char *name, const char *file,
		     const void *data, size_t bytes)
{
	curl_mimepart *part = curl_mime_addpart(form);

	return part && curl_mime_name(part, name) == CURLE_OK &&
	       curl_mime_filename(part, file) == CURLE_OK &&
	       curl_mime_data(part, data, bytes) == CURLE_OK;
}

static char *url_of(const struct sp_receiver *to,
		    const struct sp_receiver_profile *p)
{
	char *name = NULL, *url = NULL;
	int r;

	if (to->options->is_otlp)
		return asprintf(&url, "%s/v1development/profiles", to->base) < 0
			       ? NULL
			       : url;
	name = curl_easy_escape(to->curl, p->name, 0);
	r = name ? asprintf(&url,
			    "%s/ingest?name=%s&from=%" PRIu64 "&until=%" PRIu64
			    "&format=pprof&spyName=sampleprof&sampleRate=100",
			    to->base, name, p->from_unix_s, p->until_unix_s)
		 : -1;
	curl_free(name);
	return r < 0 ? NULL : url;
}

/* No answer came, or none that is one. */
static enum sp_receiver_answer no_answer(struct sp_receiver *to, CURLcode r,
					 size_t bytes, struct sp_error *err)
{
	curl_off_t sent = 0;
	const char *problem =
		*to->problem ? to->problem : curl_easy_strerror(r);

	curl_easy_getinfo(to->curl, CURLINFO_SIZE_UPLOAD_T, &sent);
	sp_error_set(err, r == CURLE_ABORTED_BY_CALLBACK ? -ECANCELED : -EIO,
		     NULL, "%.200s", problem);
	return sent >= (curl_off_t)bytes ? SP_RECEIVER_UNKNOWN
					 : SP_RECEIVER_NOT_TAKEN;
}

/* The next field of a message of untrusted bytes: its number and its value or
 * length, with *at behind it or, of a length, at the bytes, which are all
 * there.  0: there is none. */
static unsigned int next_field(const uint8_t **at, const uint8_t *end,
			       uint64_t *value)
{
	uint64_t words[2] = {0};

	for (int i = 0; i < 2; i++)
		for (unsigned int shift = 0;; shift += 7) {
			if (*at == end || shift > 63)
				return 0;
			words[i] |= (uint64_t)(**at & 0x7f) << shift;
			if (*(*at)++ < 0x80)
				break;
		}
	*value = words[1];
	if ((words[0] & 7) == 2 && words[1] > (uint64_t)(end - *at))
		*value = (uint64_t)(end - *at);
	return (words[0] & 7) == 0 || (words[0] & 7) == 2
		       ? (unsigned int)words[0]
		       : 0;
}

/* An ExportProfilesServiceResponse, {1: {1: rejected profiles, 2: why}}. */
static enum sp_receiver_answer read_otlp(const struct sp_receiver *to,
					 struct sp_error *err)
{
	const uint8_t *at = (const uint8_t *)to->said, *end = at + to->n_said;
	uint64_t value = 0, rejected = 0;
	unsigned int key = next_field(&at, end, &value);
	const char *why = "";
	int n_why = 0;

	if (key != (1 << 3 | 2))
		return SP_RECEIVER_TAKEN;
	end = at + value;
	while ((key = next_field(&at, end, &value)))
		if (key == 1 << 3) {
			rejected = value;
		} else if ((key & 7) == 2) {
			why = (const char *)at;
			n_why = (int)value;
			at += value;
		}
	if (!rejected)
		return SP_RECEIVER_TAKEN;
	sp_error_set(err, -EPROTO, NULL, "it dropped %" PRIu64 " of them%s%.*s",
		     rejected, n_why ? ": " : "", n_why, why);
	return SP_RECEIVER_DROPPED;
}

static enum sp_receiver_answer read_answer(struct sp_receiver *to,
					   struct sp_error *err)
{
	long status = 0;
#if LIBCURL_VERSION_NUM >= 0x074200
	curl_off_t wait_s = 0;

	curl_easy_getinfo(to->curl, CURLINFO_RETRY_AFTER, &wait_s);
	to->wait_s = wait_s > 0 ? (uint64_t)wait_s : 0;
#endif
	curl_easy_getinfo(to->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status >= 200 && status < 300)
		return to->options->is_otlp ? read_otlp(to, err)
					    : SP_RECEIVER_TAKEN;
	/* OTLP's refusals are messages, not text. */
	sp_error_set(err, -EPROTO, NULL, "it answered %ld%s%.*s", status,
		     *to->said ? ": " : "", (int)strcspn(to->said, "\r\n"),
		     to->said);
	return SP_RECEIVER_NOT_TAKEN;
}

uint64_t sp_receiver_wait_s(const struct sp_receiver *to)
{
	return to->wait_s;
}

/* The body of a request: `form`, which is empty, or for OTLP the message. */
static bool set_body(struct sp_receiver *to, curl_mime *form,
		     const struct sp_receiver_profile *profile)
{
	if (to->options->is_otlp) {
		curl_easy_setopt(to->curl, CURLOPT_POSTFIELDSIZE_LARGE,
				 (curl_off_t)profile->bytes);
		curl_easy_setopt(to->curl, CURLOPT_POSTFIELDS, profile->data);
		return true;
	}
	curl_easy_setopt(to->curl, CURLOPT_MIMEPOST, form);
	return add_part(form, "profile", "profile.pprof", profile->data,
			profile->bytes) &&
	       add_part(form, "sample_type_config", "sample_type_config.json",
			sample_types, sizeof(sample_types) - 1);
}

enum sp_receiver_answer sp_receiver_send(
	struct sp_receiver *to, const struct sp_receiver_profile *profile,
	struct sp_error *err)
{
	enum sp_receiver_answer answer = SP_RECEIVER_NOT_TAKEN;
	curl_mime *form = curl_mime_init(to->curl);
	char *url = url_of(to, profile);
	CURLcode r;

	to->n_said = 0;
	to->wait_s = 0;
	to->said[0] = to->problem[0] = '\0';
	if (form && url && set_body(to, form, profile)) {
		curl_easy_setopt(to->curl, CURLOPT_URL, url);
		r = curl_easy_perform(to->curl);
		answer = r == CURLE_OK ? read_answer(to, err)
				       : no_answer(to, r, profile->bytes, err);
	} else {
		sp_error_memory(err, NULL);
	}
	curl_easy_setopt(to->curl, CURLOPT_MIMEPOST, NULL);
	curl_mime_free(form);
	free(url);
	return answer;
}
