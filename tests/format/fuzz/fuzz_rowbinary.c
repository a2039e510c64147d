/* SPDX-License-Identifier: MIT */
/* Rows of a server in ClickHouse's format RowBinary: refused with a reason, or
 * every value can be read, as it was sent.  The first byte chooses a table. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/rowbinary.h"
#include "format/fuzz/target.h"
#include "support/http_of_bytes.h"

static void check_row(const struct sp_rowbinary_row *row,
		      const struct sp_http *http)
{
	for (size_t i = 0; i < row->n_columns; i++) {
		const struct sp_rowbinary_value *v = &row->values[i];
		const enum sp_fleet_type type = row->columns[i].type;

		if (v->is_null)
			FUZZ_ASSERT(row->columns[i].may_be_null && !v->bits);
		else if (type == SP_FLEET_FLAG)
			FUZZ_ASSERT(v->bits <= SP_FLEET_FLAG_MAX);
		else if (type == SP_FLEET_TEXT || type == SP_FLEET_BYTES)
			/* Every byte of it came. */
			FUZZ_ASSERT(v->at + v->bits < row->n_text &&
				    !row->text[v->at + v->bits] &&
				    (!v->bits ||
				     memmem(http->bytes, http->at,
					    row->text + v->at, v->bits)));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sp_http http = {data, size, 1};
	struct sp_rowbinary_row row = {.n_text = 0};
	const struct sp_fleet_schema *table;
	struct sp_error err = {0};
	int r;

	if (!size)
		return 0;
	table = &sp_fleet_schema[*data % SP_FLEET_TABLES];
	row.n_columns = table->n_columns;
	memcpy(row.columns, table->columns,
	       table->n_columns * sizeof(*table->columns));
	while ((r = sp_rowbinary_next(&row, &http, "server", &err)) > 0)
		check_row(&row, &http);
	FUZZ_ASSERT(r == 0 ? http.at == size
			   : (r == -EUCLEAN || r == -ENOMEM) && *err.message);
	free(row.text);
	return 0;
}
