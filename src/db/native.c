/* SPDX-License-Identifier: MIT */
#include "db/native.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

/* ---- writing ---- */

/* A frame of the compression: checksum (which we have the server not look at),
 * method, size with what follows the checksum, size of the content. */
#define CHECKSUM_BYTES 16u
#define FRAME_BYTES    (CHECKSUM_BYTES + 9u)
#define METHOD_ZSTD    0x90
#define CONTENT_BYTES  ((size_t)1 << 20)
#define LEVEL          1

static int reserve_bytes(unsigned char **bytes, size_t *room, size_t n)
{
	unsigned char *more;

	if (n <= *room)
		return 0;
	more = realloc(*bytes, 2 * n);
	if (!more)
		return -ENOMEM;
	*bytes = more;
	*room = 2 * n;
	return 0;
}

static size_t write_varint(unsigned char *to, uint64_t v)
{
	size_t n = 0;

	for (; v >= 128; v >>= 7)
		to[n++] = (unsigned char)(v | 128);
	to[n++] = (unsigned char)v;
	return n;
}

/* All this is for little-endian machines, as the agent is. */
static int put_value(struct sp_native_put *c, enum sp_fleet_type type,
		     const struct sp_fleet_value *v)
{
	const bool is_text = type == SP_FLEET_TEXT || type == SP_FLEET_BYTES;
	const size_t text = v->kind == SP_FLEET_IS_BYTES ? v->n : 0;
	const uint64_t number = v->kind == SP_FLEET_IS_NUMBER ? v->number : 0;
	const double real = v->kind == SP_FLEET_IS_REAL ? v->real : 0;

	if (reserve_bytes(&c->bytes, &c->room, c->n + 10 + text) < 0)
		return -ENOMEM;
	if (is_text) {
		c->n += write_varint(c->bytes + c->n, text);
		if (text)
			memcpy(c->bytes + c->n, v->bytes, text);
		c->n += text;
	} else if (type == SP_FLEET_FLAG) {
		c->bytes[c->n++] = number != 0;
	} else {
		memcpy(c->bytes + c->n,
		       type == SP_FLEET_REAL ? (const void *)&real : &number,
		       8);
		c->n += 8;
	}
	return 0;
}

int sp_native_put(struct sp_native_rows *rows,
		  const struct sp_fleet_schema *table,
		  const struct sp_fleet_value *row)
{
	for (size_t i = 0; i < table->n_columns; i++) {
		struct sp_native_put *c = &rows->columns[i];
		const size_t before = c->n;

		if (put_value(c, table->columns[i].type, &row[i]) < 0 ||
		    reserve_bytes(&c->nulls, &c->nulls_room, rows->n + 1) < 0)
			return -ENOMEM;
		c->nulls[rows->n] = row[i].kind == SP_FLEET_IS_NULL;
		rows->bytes += c->n - before + 1;
	}
	rows->n++;
	return 0;
}

void sp_native_clear(struct sp_native_rows *rows)
{
	for (size_t i = 0; i < SP_FLEET_COLUMNS_MAX; i++)
		rows->columns[i].n = 0;
	rows->n = rows->bytes = 0;
}

void sp_native_mark(const struct sp_native_rows *rows,
		    struct sp_native_mark *ret)
{
	for (size_t i = 0; i < SP_FLEET_COLUMNS_MAX; i++)
		ret->columns[i] = rows->columns[i].n;
	ret->n = rows->n;
	ret->bytes = rows->bytes;
}

void sp_native_cut(struct sp_native_rows *rows,
		   const struct sp_native_mark *mark)
{
	for (size_t i = 0; i < SP_FLEET_COLUMNS_MAX; i++)
		rows->columns[i].n = mark->columns[i];
	rows->n = mark->n;
	rows->bytes = mark->bytes;
}

void sp_native_done(struct sp_native_rows *rows)
{
	for (size_t i = 0; i < SP_FLEET_COLUMNS_MAX; i++) {
		free(rows->columns[i].bytes);
		free(rows->columns[i].nulls);
	}
	*rows = (struct sp_native_rows){.n = 0};
}

void sp_native_type(const struct sp_fleet_column *column, char to[32])
{
	static const char *const types[] = {
		[SP_FLEET_U64] = "UInt64",   [SP_FLEET_FLAG] = "UInt8",
		[SP_FLEET_REAL] = "Float64", [SP_FLEET_TEXT] = "String",
		[SP_FLEET_BYTES] = "String",
	};

	snprintf(to, 32, column->may_be_null ? "Nullable(%s)" : "%s",
		 types[column->type]);
}

static void write_count(FILE *out, uint64_t count)
{
	unsigned char bytes[10] = {0};
	const size_t n = write_varint(bytes, count);

	fwrite(bytes, 1, n, out);
}

static void write_text(FILE *out, const char *text)
{
	write_count(out, strlen(text));
	fputs(text, out);
}

static void write_block(FILE *out, const struct sp_native_rows *rows,
			const struct sp_fleet_schema *table)
{
	char type[32];

	write_count(out, table->n_columns);
	write_count(out, rows->n);
	for (size_t i = 0; i < table->n_columns; i++) {
		const struct sp_native_put *c = &rows->columns[i];

		write_text(out, table->columns[i].name);
		sp_native_type(&table->columns[i], type);
		write_text(out, type);
		if (table->columns[i].may_be_null)
			fwrite(c->nulls, 1, rows->n, out);
		fwrite(c->bytes, 1, c->n, out);
	}
}

/* One frame; its size, 0: it failed. */
static size_t write_frame(ZSTD_CCtx *zstd, unsigned char *to, size_t room,
			  const char *from, size_t n)
{
	const size_t got = ZSTD_compress2(zstd, to + FRAME_BYTES,
					  room - FRAME_BYTES, from, n);
	const uint32_t sizes[] = {(uint32_t)got + 9, (uint32_t)n};

	if (ZSTD_isError(got))
		return 0;
	memset(to, 0, CHECKSUM_BYTES);
	to[CHECKSUM_BYTES] = METHOD_ZSTD;
	memcpy(to + CHECKSUM_BYTES + 1, sizes, sizeof(sizes));
	return FRAME_BYTES + got;
}

static void *compress_block(const char *from, size_t n, size_t *ret_n)
{
	const size_t frames = n / CONTENT_BYTES + 1;
	const size_t bound = FRAME_BYTES + ZSTD_compressBound(CONTENT_BYTES);
	ZSTD_CCtx *zstd = ZSTD_createCCtx();
	unsigned char *to = malloc(frames * bound);
	size_t at = 0, i = 0, some = 0;

	if (zstd && to) {
		ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, LEVEL);
		ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1);
	}
	for (; zstd && to && i < n; i += some) {
		size_t got;

		some = n - i < CONTENT_BYTES ? n - i : CONTENT_BYTES;
		got = write_frame(zstd, to + at, bound, from + i, some);
		if (!got)
			break;
		at += got;
	}
	ZSTD_freeCCtx(zstd);
	if (i < n) {
		free(to);
		return NULL;
	}
	*ret_n = at;
	return to;
}

void *sp_native_block(const struct sp_native_rows *rows,
		      const struct sp_fleet_schema *table, size_t *ret_n)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);
	void *block = NULL;

	if (!out)
		return NULL;
	write_block(out, rows, table);
	if (fclose(out) == 0)
		block = compress_block(text, n, ret_n);
	free(text);
	return block;
}
