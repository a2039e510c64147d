/* SPDX-License-Identifier: MIT */
#include "support/http_of_bytes.h"

#include <errno.h>
#include <string.h>

#include "fleet/http.h"

int sp_http_read(struct sp_http *h, void *to, size_t n, struct sp_error *err)
{
	const size_t left = h->n - h->at;
	const size_t some = left < n ? left : n;

	if (some)
		memcpy(to, h->bytes + h->at, some);
	h->at += some;
	if (some == n)
		return 1;
	return some ? sp_error_set(err, -EPIPE, NULL, "the answer was cut") : 0;
}

const char *sp_http_rest(struct sp_http *h)
{
	static char text[4096];
	size_t n = h->n - h->at;

	n = n < sizeof(text) ? n : sizeof(text) - 1;
	for (size_t i = 0; i < n; i++)
		text[i] = h->bytes[h->at + i] ? (char)h->bytes[h->at + i] : ' ';
	text[n] = '\0';
	return text;
}
