/* SPDX-License-Identifier: MIT */
#include "serve/pyroscope.h"

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

struct sp_pyroscope {
	CURL *curl;
	struct curl_slist *headers;
	char *base; /* URL without a slash at its end */
	char problem[CURL_ERROR_SIZE];
	char said[120]; /* the beginning of an answer */
	size_t n_said;
};

const char *sp_pyroscope_check(const char *url)
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
	struct sp_pyroscope *to = arg;
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

static bool set_up(struct sp_pyroscope *to, const char *token)
{
	CURL *c = to->curl;
	struct curl_slist *headers;
	char *line = NULL;

	/* No "Expect": some servers never answer it. */
	to->headers = curl_slist_append(NULL, "Expect:");
	if (token && asprintf(&line, "Authorization: Bearer %s", token) < 0)
		return false;
	if (line) {
		headers = curl_slist_append(to->headers, line);
		free(line);
		if (!headers)
			return false;
		to->headers = headers;
	}
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, to->headers);
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
			 (long)SP_PYROSCOPE_CONNECT_S);
	curl_easy_setopt(c, CURLOPT_TIMEOUT, (long)SP_PYROSCOPE_ANSWER_S);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, to->problem);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_answer);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, to);
	curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, look_for_end);
	curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
	return to->headers != NULL;
}

int sp_pyroscope_new(const char *url, const char *token,
		     struct sp_pyroscope **ret, struct sp_error *err)
{
	struct sp_pyroscope *to = calloc(1, sizeof(*to));
	size_t n = strlen(url);

	while (n && url[n - 1] == '/')
		n--;
	if (to) {
		to->base = strndup(url, n);
		to->curl = curl_easy_init();
	}
	if (!to || !to->base || !to->curl || !set_up(to, token)) {
		sp_pyroscope_free(to);
		return sp_error_memory(err, NULL);
	}
	*ret = to;
	return 0;
}

void sp_pyroscope_free(struct sp_pyroscope *to)
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

static char *url_of(const struct sp_pyroscope *to,
		    const struct sp_pyroscope_profile *p)
{
	char *name = curl_easy_escape(to->curl, p->name, 0);
	char *url = NULL;

	if (!name ||
	    asprintf(&url,
		     "%s/ingest?name=%s&from=%" PRIu64 "&until=%" PRIu64
		     "&format=pprof&spyName=sampleprof&sampleRate=100",
		     to->base, name, p->from_unix_s, p->until_unix_s) < 0)
		url = NULL;
	curl_free(name);
	return url;
}

/* No answer came, or none that is one. */
static enum sp_pyroscope_answer no_answer(struct sp_pyroscope *to, CURLcode r,
					  size_t bytes, struct sp_error *err)
{
	curl_off_t sent = 0;
	const char *problem =
		*to->problem ? to->problem : curl_easy_strerror(r);

	curl_easy_getinfo(to->curl, CURLINFO_SIZE_UPLOAD_T, &sent);
	sp_error_set(err, r == CURLE_ABORTED_BY_CALLBACK ? -ECANCELED : -EIO,
		     NULL, "%.200s", problem);
	return sent >= (curl_off_t)bytes ? SP_PYROSCOPE_UNKNOWN
					 : SP_PYROSCOPE_NOT_TAKEN;
}

static enum sp_pyroscope_answer read_answer(const struct sp_pyroscope *to,
					    struct sp_error *err)
{
	long status = 0;

	curl_easy_getinfo(to->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status >= 200 && status < 300)
		return SP_PYROSCOPE_TAKEN;
	sp_error_set(err, -EPROTO, NULL, "it answered %ld%s%.*s", status,
		     *to->said ? ": " : "", (int)strcspn(to->said, "\r\n"),
		     to->said);
	return SP_PYROSCOPE_NOT_TAKEN;
}

enum sp_pyroscope_answer sp_pyroscope_send(
	struct sp_pyroscope *to, const struct sp_pyroscope_profile *profile,
	struct sp_error *err)
{
	enum sp_pyroscope_answer answer = SP_PYROSCOPE_NOT_TAKEN;
	curl_mime *form = curl_mime_init(to->curl);
	char *url = url_of(to, profile);
	CURLcode r;

	to->n_said = 0;
	to->said[0] = to->problem[0] = '\0';
	if (form && url &&
	    add_part(form, "profile", "profile.pprof", profile->data,
		     profile->bytes) &&
	    add_part(form, "sample_type_config", "sample_type_config.json",
		     sample_types, sizeof(sample_types) - 1)) {
		curl_easy_setopt(to->curl, CURLOPT_URL, url);
		curl_easy_setopt(to->curl, CURLOPT_MIMEPOST, form);
		r = curl_easy_perform(to->curl);
		answer = r == CURLE_OK ? read_answer(to, err)
				       : no_answer(to, r, profile->bytes, err);
		curl_easy_setopt(to->curl, CURLOPT_MIMEPOST, NULL);
	} else {
		sp_error_memory(err, NULL);
	}
	curl_mime_free(form);
	free(url);
	return answer;
}
