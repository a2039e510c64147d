/* SPDX-License-Identifier: MIT */
#include "base/order.h"
#include "support/sample_list.h"

#include <stdio.h>
#include <stdlib.h>

SP_ORDER(by_id, struct sp_record_sample, SP_UP(id));

static void die(const struct sp_error *err)
{
	char text[512];

	sp_error_describe(err, text, sizeof(text));
	fprintf(stderr, "%s\n", text);
	exit(1);
}

struct sample_list sample_list_read(const char *path)
{
	static struct sp_reader reader;
	struct sample_list list = {0};
	size_t room = 1 << 16;
	struct sp_error err;
	struct sp_decoded d;
	int code;

	list.at = malloc(room * sizeof(list.at[0]));
	if (sp_reader_open(&reader, path, &err) != 0)
		die(&err);
	while ((code = sp_reader_next(&reader, &d, &err)) > 0) {
		if (d.type != SP_RECORD_SAMPLE)
			continue;
		if (list.n == room) {
			room *= 2;
			list.at = realloc(list.at, room * sizeof(list.at[0]));
		}
		list.at[list.n++] = d.u.sample;
	}
	if (code)
		die(&err);
	list.header = reader.header;
	list.status = reader.status;
	list.damage = reader.damage;
	sp_reader_close(&reader);
	qsort(list.at, list.n, sizeof(list.at[0]), by_id);
	return list;
}
