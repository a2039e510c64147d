/* SPDX-License-Identifier: MIT */
/* clickhouse:// URLs: every part and its default, what is refused with which
 * words, and where a password may come from; it stays out of what is said. */
#include "fleet/clickhouse_url.h"

#include "support/temp_path.h"
#include "support/test.h"

#define SECRET "hunter2"

static struct sp_clickhouse_url url;
static struct sp_error err;

static int parse(const char *rest)
{
	err.message[0] = '\0';
	return sp_clickhouse_url_parse(rest, &url, &err);
}

static void is_server(const char *rest, const char *server)
{
	if (parse(rest) < 0)
		fail_msg("%s: %s", rest, err.message);
	assert_string_equal(url.server, server);
	sp_clickhouse_url_done(&url);
}

static void refuses(const char *rest, const char *why)
{
	assert_true(parse(rest) < 0);
	if (!strstr(err.message, why))
		fail_msg("%s: %s, not %s", rest, err.message, why);
	assert_null(strstr(err.message, SECRET));
	sp_clickhouse_url_done(&url);
	assert_null(url.password);
}

TEST(servers)
{
	is_server("h/d", "http://h:8123/");
	is_server("h:1/d", "http://h:1/");
	is_server("h:65535/d", "http://h:65535/");
	is_server("h-1.example_2.org/d", "http://h-1.example_2.org:8123/");
	is_server("127.0.0.1:80/d", "http://127.0.0.1:80/");
	is_server("[::1]/d", "http://[::1]:8123/");
	is_server("[fe80::1:2]:99/d", "http://[fe80::1:2]:99/");
	is_server("h/d?secure=on", "https://h:8443/");
	is_server("h:8123/d?secure=on", "https://h:8123/");
	is_server("h/d?secure=on&secure=off", "http://h:8123/");
	is_server("u@h/d", "http://h:8123/");
}

TEST(no_servers)
{
	static const char *const none[] = {
		"/d",     "@h/d",  "u@/d",   ":1/d",   "h'/d",       "h h/d",
		"[/d",    "[]/d",  "[::1/d", "]:1/d",  "::1/d",      "[::1]x/d",
		"h%41/d", "h\\/d", "h#/d",   "[h_]/d", "h\xc3\xa4/d"};
	char long_name[400];

	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
		assert_true(parse(none[i]) < 0);
		if (!strstr(err.message, "HOST is") &&
		    !strstr(err.message, "USER has") &&
		    !strstr(err.message, "PORT is"))
			fail_msg("%s: %s", none[i], err.message);
		sp_clickhouse_url_done(&url);
	}
	for (size_t i = 0; i < 3; i++)
		refuses((const char *[]){"h:/d", "h:0/d", "h:65536/d"}[i],
			"PORT is");
	refuses("h:80x/d", "PORT is");
	refuses("h:99999999999999999999/d", "PORT is");
	memset(long_name, 'h', 301);
	strcpy(long_name + 301, "/d");
	refuses(long_name, "HOST is");
}

TEST(databases_and_users)
{
	char text[300];

	assert_int_equal(parse("some@one@h/data_1"), 0);
	assert_string_equal(url.user, "some@one");
	assert_string_equal(url.database, "data_1");
	assert_string_equal(url.cluster, "");
	assert_string_equal(url.ca_file, "");
	assert_null(url.password);
	assert_int_equal(url.timeout_s, 300);
	sp_clickhouse_url_done(&url);
	refuses("h", "DATABASE is");
	refuses("h/", "DATABASE is");
	refuses("h/1d", "DATABASE is");
	refuses("h/d.t", "DATABASE is");
	refuses("h/d;DROP", "DATABASE is");
	refuses("h/d/e", "DATABASE is");
	memset(text, 'd', sizeof(text));
	memcpy(text, "h/", 2);
	text[2 + 64] = '\0';
	refuses(text, "DATABASE is");
	text[2 + 63] = '\0';
	assert_int_equal(parse(text), 0);
	sp_clickhouse_url_done(&url);
	refuses("u:" SECRET "@h/d", "a password does not go in here");
	refuses("a b@h/d", "USER has a blank");
	refuses("a\nb@h/d", "USER has a blank");
	memset(text, 'u', sizeof(text));
	strcpy(text + 128, "@h/d");
	refuses(text, "USER has 1 to 127");
}

TEST(parameters)
{
	char text[1400];

	assert_int_equal(parse("h/d?cluster=c_1&timeout=9s&ca=/a b/c.pem&"
			       "secure=on&"),
			 0);
	assert_string_equal(url.cluster, "c_1");
	assert_string_equal(url.ca_file, "/a b/c.pem");
	assert_int_equal(url.timeout_s, 9);
	sp_clickhouse_url_done(&url);
	refuses("h/d?cluster=", "cluster is a name");
	refuses("h/d?cluster=a'b", "cluster is a name");
	refuses("h/d?secure=yes", "parameters are");
	refuses("h/d?other=1", "parameters are");
	refuses("h/d?cluster", "NAME=VALUE");
	refuses("h/d?&", "NAME=VALUE");
	refuses("h/d?ca=", "ca is a file");
	refuses("h/d?timeout=5", "1s to 86400s");
	refuses("h/d?timeout=0s", "1s to 86400s");
	refuses("h/d?timeout=s", "1s to 86400s");
	refuses("h/d?timeout=-1s", "1s to 86400s");
	refuses("h/d?timeout=86401s", "1s to 86400s");
	refuses("h/d?timeout=99999999999999999999s", "1s to 86400s");
	memset(text, 'a', sizeof(text));
	memcpy(text, "h/d?ca=", 7);
	text[7 + 1024] = '\0';
	refuses(text, "ca is a file");
	memset(text + 7, 'a', sizeof(text) - 8);
	text[sizeof(text) - 1] = '\0';
	refuses(text, "too long");
}

/* ---- passwords ---- */

/* Written to a file that ?password-file= then names. */
static int with_file(const char *password, size_t n)
{
	char path[128], rest[160];
	FILE *out;
	int r;

	assert_int_equal(temp_path_make(path, sizeof(path)), 0);
	out = fopen(path, "wbe");
	assert_non_null(out);
	assert_int_equal(fwrite(password, 1, n, out), n);
	fclose(out);
	snprintf(rest, sizeof(rest), "h/d?password-file=%s", path);
	r = parse(rest);
	remove(path);
	return r;
}

static void takes_file(const char *content, const char *password)
{
	assert_int_equal(with_file(content, strlen(content)), 0);
	assert_string_equal(url.password, password);
	sp_clickhouse_url_done(&url);
}

static void refuses_file(const char *content, size_t n, const char *why)
{
	assert_true(with_file(content, n) < 0);
	if (!strstr(err.message, why))
		fail_msg("%s, not %s", err.message, why);
	assert_null(strstr(err.message, SECRET));
	sp_clickhouse_url_done(&url);
}

TEST(password_files)
{
	static char text[2000];

	takes_file(SECRET, SECRET);
	takes_file(SECRET "\n", SECRET);
	takes_file(SECRET "\r\n", SECRET);
	takes_file(SECRET "\nsomething else\n", SECRET);
	takes_file(" a b \n", " a b ");
	refuses_file("", 0, "no password");
	refuses_file("\n" SECRET, 8, "no password");
	memset(text, 'p', sizeof(text));
	refuses_file(text, sizeof(text), "more than 1024 bytes");
	refuses_file(text, 1025, "more than 1024 bytes");
	text[1024] = '\n';
	assert_int_equal(with_file(text, sizeof(text)), 0);
	assert_int_equal(strlen(url.password), 1024);
	sp_clickhouse_url_done(&url);
	refuses("h/d?password-file=/none/there", "cannot be opened");
}

TEST(environment)
{
	setenv("SAMPLEPROF_DB_PASSWORD", SECRET, 1);
	assert_int_equal(parse("h/d"), 0);
	assert_string_equal(url.password, SECRET);
	sp_clickhouse_url_done(&url);
	/* A file goes before it. */
	takes_file("other", "other");
	setenv("SAMPLEPROF_DB_PASSWORD", SECRET "\r\nX-Header: 1", 1);
	refuses("h/d", "line break");
	setenv("SAMPLEPROF_DB_PASSWORD", "", 1);
	assert_int_equal(parse("h/d"), 0);
	assert_null(url.password);
	sp_clickhouse_url_done(&url);
	unsetenv("SAMPLEPROF_DB_PASSWORD");
}

TEST_MAIN(NULL, NULL)
