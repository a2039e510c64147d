/* SPDX-License-Identifier: MIT */
/* An answer of a server in ClickHouse's format Native: refused with a reason,
 * or every value of every row can be read, as it was sent. */
#include <errno.h>
#include <string.h>

#include "db/native.h"
#include "format/fuzz/target.h"
#include "support/http_of_bytes.h"

/* More columns than any answer has. */
#define COLUMNS 66

static void check_value(const struct sp_native_block *b, size_t row, int i,
			const struct sp_http *http)
{
	size_t n;
	const char *bytes = sp_native_get_bytes(b, row, i, &n);
	const double real = sp_native_get_real(b, row, i);

	FUZZ_ASSERT(!bytes[n]);
	/* Every byte of it came. */
	FUZZ_ASSERT(n <= http->at &&
		    (!n || memmem(http->bytes, http->at, bytes, n)));
	if (sp_native_is_null(b, row, i))
		FUZZ_ASSERT(!n && !sp_native_get(b, row, i) && real == 0);
}

static void check_block(const struct sp_native_block *b,
			const struct sp_http *http)
{
	const size_t n = sp_native_rows_of(b);
	const size_t rows[] = {0, n / 2, n - 1};

	FUZZ_ASSERT(n > 0);
	for (size_t i = 0; i < 3; i++)
		for (int k = 0; k < COLUMNS; k++)
			check_value(b, rows[i], k, http);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sp_http http = {data, size, 0};
	struct sp_native_block *block = NULL;
	struct sp_error err = {0};
	int r;

	while ((r = sp_native_next(&block, &http, "server", &err)) > 0)
		check_block(block, &http);
	FUZZ_ASSERT(r == 0 ? http.at == size
			   : (r == -EUCLEAN || r == -EIO || r == -ENOMEM) &&
				     *err.message);
	sp_native_free(block);
	return 0;
}
