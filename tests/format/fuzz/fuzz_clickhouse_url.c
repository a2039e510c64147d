/* SPDX-License-Identifier: MIT */
/* What follows clickhouse:// in a URL: refused with a reason, or parts that can
 * stand in SQL and in a request as they are. */
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/clickhouse_url.h"
#include "format/fuzz/target.h"

static bool is_made_of(const char *text, const char *others)
{
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && !strchr(others, *text))
			return false;
	return true;
}

static void check(const struct sp_clickhouse_url *url, const char *rest)
{
	const char *host = strstr(url->server, "://");

	FUZZ_ASSERT(strncmp(url->server, "http", 4) == 0 && host);
	host += 3;
	FUZZ_ASSERT(is_made_of(host, "._-:[]/"));
	FUZZ_ASSERT(*host != ':' && *host != '/' && *host != ']');
	FUZZ_ASSERT(host[strlen(host) - 1] == '/' &&
		    strchr(host, '/') == host + strlen(host) - 1);
	FUZZ_ASSERT(*url->database && !isdigit(*url->database) &&
		    is_made_of(url->database, "_"));
	FUZZ_ASSERT(!isdigit(*url->cluster) && is_made_of(url->cluster, "_"));
	FUZZ_ASSERT(!strpbrk(url->user, ": \r\n"));
	FUZZ_ASSERT(strstr(rest, url->user) && strstr(rest, url->database));
	FUZZ_ASSERT(url->timeout_s >= 1 && url->timeout_s <= 86400);
	FUZZ_ASSERT(!url->password ||
		    (*url->password && !strpbrk(url->password, "\r\n")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sp_clickhouse_url url;
	struct sp_error err = {0};
	char *rest = malloc(size + 1);
	int r;

	if (!rest)
		return 0;
	memcpy(rest, data, size);
	rest[size] = '\0';
	/* A search is to open no files but one. */
	if (strstr(rest, "password-file=") &&
	    !strstr(rest, "password-file=/dev/null")) {
		free(rest);
		return 0;
	}
	r = sp_clickhouse_url_parse(rest, &url, &err);
	if (r < 0)
		FUZZ_ASSERT(*err.message);
	else
		check(&url, rest);
	sp_clickhouse_url_done(&url);
	FUZZ_ASSERT(!url.password);
	free(rest);
	return 0;
}
