/* SPDX-License-Identifier: MIT */
#include "fleet/clickhouse_url.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"

#define PASSWORD     "SAMPLEPROF_DB_PASSWORD"
#define PASSWORD_MAX 1024u
#define TIMEOUT_S    300L
#define TIMEOUT_MAX  86400u

static int fail_url(struct sp_error *err, const char *what)
{
	return sp_error_set(err, -EINVAL, NULL,
			    "--db clickhouse://[USER@]HOST[:PORT]/DATABASE: "
			    "%s",
			    what);
}

/* Texts of SQL are made of these: they need no quotes. */
static bool is_identifier(const char *text, size_t n)
{
	if (!n || isdigit((unsigned char)*text))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)text[i]) && text[i] != '_')
			return false;
	return true;
}

static bool copy_part(char *to, size_t room, const char *from, size_t n)
{
	if (n >= room)
		return false;
	memcpy(to, from, n);
	to[n] = '\0';
	return true;
}

/* ---- the password ---- */

/* It goes into a header of the request. */
static int check_password(const char *password, struct sp_error *err)
{
	return password[strcspn(password, "\r\n")]
		       ? sp_error_set(err, -EINVAL, NULL,
				      "the password has a line break")
		       : 0;
}

/* The first line of the file. */
static int read_password(const char *path, struct sp_clickhouse_url *url,
			 struct sp_error *err)
{
	FILE *in = fopen(path, "re");
	size_t n;

	if (!in)
		return sp_error_set(err, -errno, NULL,
				    "password-file %.120s cannot be opened: %s",
				    path, strerror(errno));
	sp_clickhouse_url_done(url);
	url->password = calloc(1, PASSWORD_MAX + 2);
	n = url->password ? fread(url->password, 1, PASSWORD_MAX + 1, in) : 0;
	fclose(in);
	if (!url->password)
		return sp_error_memory(err, NULL);
	url->password[n] = '\0';
	n = strcspn(url->password, "\r\n");
	explicit_bzero(url->password + n, PASSWORD_MAX + 1 - n);
	if (!n)
		return sp_error_set(err, -EINVAL, NULL,
				    "password-file %.120s has no password in "
				    "its first line",
				    path);
	return n <= PASSWORD_MAX
		       ? 0
		       : sp_error_set(err, -EINVAL, NULL,
				      "password-file %.120s: its first line "
				      "has more than %u bytes",
				      path, PASSWORD_MAX);
}

static int take_environment(struct sp_clickhouse_url *url, struct sp_error *err)
{
	const char *password = getenv(PASSWORD);

	if (!password || !*password)
		return 0;
	url->password = strdup(password);
	if (!url->password)
		return sp_error_memory(err, NULL);
	return check_password(password, err);
}

/* ---- parameters ---- */

static int take_timeout(struct sp_clickhouse_url *url, const char *value,
			struct sp_error *err)
{
	char number[16];
	uint64_t s;
	const size_t n = strlen(value);

	if (n < 2 || value[n - 1] != 's' ||
	    !copy_part(number, sizeof(number), value, n - 1) ||
	    !sp_parse_u64(number, &s) || !s || s > TIMEOUT_MAX)
		return fail_url(err,
				"timeout is seconds of silence, 1s to 86400s");
	url->timeout_s = (long)s;
	return 0;
}

static int take_parameter(struct sp_clickhouse_url *url, const char *name,
			  const char *value, bool *is_secure,
			  struct sp_error *err)
{
	const size_t n = strlen(value);

	if (strcmp(name, "cluster") == 0)
		return is_identifier(value, n) &&
				       copy_part(url->cluster,
						 sizeof(url->cluster), value, n)
			       ? 0
			       : fail_url(err,
					  "cluster is a name of the server's "
					  "settings, of letters, digits and _");
	if (strcmp(name, "password-file") == 0)
		return read_password(value, url, err);
	if (strcmp(name, "timeout") == 0)
		return take_timeout(url, value, err);
	if (strcmp(name, "ca") == 0)
		return n && copy_part(url->ca_file, sizeof(url->ca_file), value,
				      n)
			       ? 0
			       : fail_url(err, "ca is a file of certificates");
	if (strcmp(name, "secure") == 0 &&
	    (strcmp(value, "on") == 0 || strcmp(value, "off") == 0)) {
		*is_secure = strcmp(value, "on") == 0;
		return 0;
	}
	return fail_url(err, "parameters are cluster=NAME, password-file=PATH, "
			     "secure=on, ca=PATH and timeout=300s");
}

static int take_parameters(struct sp_clickhouse_url *url, const char *at,
			   bool *is_secure, struct sp_error *err)
{
	char word[1200], *value;
	int r = 0;

	while (*at && r >= 0) {
		const size_t n = strcspn(at, "&");

		if (!copy_part(word, sizeof(word), at, n))
			return fail_url(err, "a parameter is too long");
		value = strchr(word, '=');
		if (!value)
			return fail_url(err, "parameters are NAME=VALUE");
		*value++ = '\0';
		r = take_parameter(url, word, value, is_secure, err);
		at += n + (at[n] == '&');
	}
	return r;
}

/* ---- the whole ---- */

/* A name or an address; of the sixth version in brackets.  Its length, or 0. */
static size_t host_length(const char *host, size_t n)
{
	const bool is_bracketed = n && *host == '[';
	size_t i = is_bracketed;

	while (i < n && (isalnum((unsigned char)host[i]) ||
			 strchr(is_bracketed ? ".:" : ".-_", host[i])))
		i++;
	if (!is_bracketed)
		return i;
	return i > 1 && i < n && host[i] == ']' ? i + 1 : 0;
}

static int take_server(struct sp_clickhouse_url *url, const char *host,
		       size_t n, bool is_secure, struct sp_error *err)
{
	const size_t name = host_length(host, n);
	const bool has_port = name < n && host[name] == ':';
	uint64_t port = is_secure ? 8443 : 8123;
	char number[8];

	if (!name || n > 300 || (name < n && !has_port))
		return fail_url(err,
				"HOST is wanted, of letters, digits and .-_");
	if (has_port && (!copy_part(number, sizeof(number), host + name + 1,
				    n - name - 1) ||
			 !sp_parse_u64(number, &port) || !port || port > 65535))
		return fail_url(err, "PORT is a number, 1 to 65535");
	snprintf(url->server, sizeof(url->server), "http%s://%.*s:%u/",
		 is_secure ? "s" : "", (int)name, host, (unsigned int)port);
	return 0;
}

static int take_user(struct sp_clickhouse_url *url, const char *user, size_t n,
		     struct sp_error *err)
{
	if (memchr(user, ':', n))
		return fail_url(err, "a password does not go in here, where "
				     "others see it: set " PASSWORD
				     ", or add ?password-file=PATH");
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)user[i] <= ' ')
			return fail_url(err, "USER has a blank");
	return n && copy_part(url->user, sizeof(url->user), user, n)
		       ? 0
		       : fail_url(err, "USER has 1 to 127 letters");
}

int sp_clickhouse_url_parse(const char *rest, struct sp_clickhouse_url *url,
			    struct sp_error *err)
{
	const size_t end = strcspn(rest, "/");
	const char *at = memrchr(rest, '@', end);
	const char *host = at ? at + 1 : rest;
	const char *database = rest + end + (rest[end] == '/');
	const size_t n = strcspn(database, "?");
	bool is_secure = false;
	int r;

	*url = (struct sp_clickhouse_url){.timeout_s = TIMEOUT_S};
	r = at ? take_user(url, rest, (size_t)(at - rest), err) : 0;
	if (r >= 0 &&
	    (!is_identifier(database, n) ||
	     !copy_part(url->database, sizeof(url->database), database, n)))
		r = fail_url(err,
			     "DATABASE is wanted, of letters, digits and _");
	if (r >= 0)
		r = take_environment(url, err);
	if (r >= 0 && database[n])
		r = take_parameters(url, database + n + 1, &is_secure, err);
	return r < 0 ? r
		     : take_server(url, host, (size_t)(rest + end - host),
				   is_secure, err);
}

void sp_clickhouse_url_done(struct sp_clickhouse_url *url)
{
	if (url->password)
		explicit_bzero(url->password, strlen(url->password));
	free(url->password);
	url->password = NULL;
}
