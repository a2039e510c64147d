/* SPDX-License-Identifier: MIT */
/* Parse the files of runtimes, which are untrusted, into entries. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "symbols/jitmap.h"

/* Longer names are cut. */
#define NAME_MAX_BYTES 4096u

/* ---- names ---- */

/* The function's name, its file and its line within the text. */
struct parts {
	const char *name, *file;
	size_t name_bytes, file_bytes;
	uint32_t line;
};

static bool starts_with(const char *text, size_t n, const char *start)
{
	const size_t bytes = strlen(start);

	return n >= bytes && memcmp(text, start, bytes) == 0;
}

/* Does the name of a script begin here? */
static bool is_script(const char *text, size_t n)
{
	return n &&
	       (*text == '/' || *text == '[' || starts_with(text, n, "file:") ||
		starts_with(text, n, "node:") || starts_with(text, n, "wasm:"));
}

/* Takes ":123" off the end of a text of *n bytes. */
static bool take_number(const char *text, size_t *n, uint32_t *ret)
{
	size_t at = *n;
	uint32_t value = 0, unit = 1;

	for (; at && isdigit((unsigned char)text[at - 1]) && *n - at < 9;
	     at--) {
		value += unit * (uint32_t)(text[at - 1] - '0');
		unit *= 10;
	}
	if (at == *n || !at || text[at - 1] != ':')
		return false;
	*n = at - 1;
	*ret = value;
	return true;
}

/*
 * V8: "JS:*parse /app/a.js:10:3"; the sign says which compiler made the code,
 * "~", "^", "+" or "*", which is not a difference between functions.  A name
 * may have spaces, as a script's may.
 */
static bool take_script(const char *text, size_t n, struct parts *ret)
{
	static const char *const kinds[] = {
		"JS:", "LazyCompile:", "Function:", "Eval:", "Script:"};
	size_t at = 0, space;
	uint32_t column;

	for (size_t i = 0; !at && i < sizeof(kinds) / sizeof(*kinds); i++)
		at = starts_with(text, n, kinds[i]) ? strlen(kinds[i]) : 0;
	if (!at)
		return false;
	at += at < n && strchr("~^+*", text[at]);
	for (space = at; space < n; space++)
		if (text[space] == ' ' &&
		    is_script(text + space + 1, n - space - 1))
			break;
	for (size_t i = n; space == n && i > at; i--)
		if (text[i - 1] == ' ')
			space = i - 1;
	*ret = (struct parts){.name = text + at, .name_bytes = space - at};
	if (space < n) {
		ret->file = text + space + 1;
		ret->file_bytes = n - space - 1;
		if (take_number(ret->file, &ret->file_bytes, &column))
			take_number(ret->file, &ret->file_bytes, &ret->line);
	}
	return true;
}

/* CPython: "py::parse:/app/a.py". */
static bool take_python(const char *text, size_t n, struct parts *ret)
{
	static const char start[] = "py::";
	const size_t at = sizeof(start) - 1;
	const char *colon;

	if (!starts_with(text, n, start))
		return false;
	colon = memchr(text + at, ':', n - at);
	*ret = (struct parts){.name = text, .name_bytes = n};
	if (colon) {
		ret->name_bytes = (size_t)(colon - text);
		ret->file = colon + 1;
		ret->file_bytes = n - ret->name_bytes - 1;
	}
	return true;
}

static int add_entry(struct sp_jitmap *map, uint64_t start, uint64_t bytes,
		     const char *text, size_t n)
{
	static const char nameless[] = "(anonymous)";
	struct sp_jit_entry e = {.start = start, .end = start + bytes};
	struct parts parts = {.name = text};

	if (!bytes || e.end < start || map->n_entries == SP_JITMAP_ENTRIES_MAX)
		return 0;
	if (n > NAME_MAX_BYTES)
		n = NAME_MAX_BYTES;
	parts.name_bytes = n;
	if (!take_script(text, n, &parts))
		take_python(text, n, &parts);
	if (!parts.name_bytes) {
		parts.name = nameless;
		parts.name_bytes = sizeof(nameless) - 1;
	}
	e.name = sp_blocks_text(&map->texts, parts.name, parts.name_bytes);
	if (parts.file_bytes)
		e.file = sp_blocks_text(&map->texts, parts.file,
					parts.file_bytes);
	e.line = parts.line;
	if (!e.name || (parts.file_bytes && !e.file) ||
	    sp_array_reserve((void **)&map->entries, &map->entries_room,
			     map->n_entries, sizeof(e)))
		return -ENOMEM;
	map->entries[map->n_entries++] = e;
	return 0;
}

/* ---- perf-PID.map ---- */

/* A number in hex and the space behind it. */
static bool take_hex(const char **at, const char *end, uint64_t *ret)
{
	const char *p = *at;
	unsigned int digits = 0;

	*ret = 0;
	if (end - p > 2 && p[0] == '0' && (p[1] | 0x20) == 'x')
		p += 2;
	for (; p < end && isxdigit((unsigned char)*p); p++, digits++)
		*ret = *ret << 4 | (uint64_t)(isdigit((unsigned char)*p)
						      ? *p - '0'
						      : (*p | 0x20) - 'a' + 10);
	if (!digits || digits > 16 || p == end || *p != ' ')
		return false;
	*at = p + 1;
	return true;
}

int sp_jitmap_add_map(struct sp_jitmap *map, const char *text, size_t bytes)
{
	const char *const end = text + bytes;
	int r = 0;

	/* A line without newline is still being written. */
	for (const char *at = text, *stop; !r && at < end; at = stop + 1) {
		uint64_t start, size;

		stop = memchr(at, '\n', (size_t)(end - at));
		if (!stop)
			break;
		if (take_hex(&at, stop, &start) && take_hex(&at, stop, &size))
			r = add_entry(map, start, size, at,
				      (size_t)(stop - at));
	}
	return r;
}

/* ---- jit-PID.dump ---- */

#define DUMP_MAGIC   0x4A695444u
#define DUMP_VERSION 1u

/* Records: a head, and its data, in the machine's byte order. */
enum dump_kind { DUMP_LOAD, DUMP_MOVE };

struct dump_file {
	uint32_t magic, version, bytes, machine, pad, pid;
	uint64_t time, flags;
};

struct dump_record {
	uint32_t kind, bytes; /* of all of it */
	uint64_t time;
};

struct dump_load {
	uint32_t pid, tid;
	uint64_t address, start, bytes, index;
	/* Then the name, ended by a NUL, and the code. */
};

struct dump_move {
	uint32_t pid, tid;
	uint64_t address, old_start, new_start, bytes, index;
};

static int add_load(struct sp_jitmap *map, const uint8_t *at, size_t n)
{
	struct dump_load load;
	const char *name = (const char *)at + sizeof(load);
	size_t room;

	if (n < sizeof(load))
		return 0;
	memcpy(&load, at, sizeof(load));
	room = n - sizeof(load);
	return add_entry(map, load.start, load.bytes, name,
			 strnlen(name, room));
}

/* The entry that moves is looked for from the end, in `steps` steps at most:
 * then moves are left out. */
static int add_move(struct sp_jitmap *map, const uint8_t *at, size_t n,
		    size_t *steps)
{
	struct dump_move move;
	struct sp_jit_entry e;

	if (n < sizeof(move))
		return 0;
	memcpy(&move, at, sizeof(move));
	for (size_t i = map->n_entries; i && *steps; i--, --*steps) {
		e = map->entries[i - 1];
		if (e.start != move.old_start)
			continue;
		e.end = move.new_start + (e.end - e.start);
		e.start = move.new_start;
		if (e.end <= e.start || map->n_entries == SP_JITMAP_ENTRIES_MAX)
			return 0;
		if (sp_array_reserve((void **)&map->entries, &map->entries_room,
				     map->n_entries, sizeof(e)))
			return -ENOMEM;
		map->entries[map->n_entries++] = e;
		return 0;
	}
	return 0;
}

int sp_jitmap_add_dump(struct sp_jitmap *map, const uint8_t *data, size_t bytes)
{
	struct dump_file file;
	struct dump_record record;
	size_t at, steps = (size_t)1 << 26;
	int r = 0;

	if (bytes < sizeof(file))
		return -EBADMSG;
	memcpy(&file, data, sizeof(file));
	if (file.magic != DUMP_MAGIC || file.version != DUMP_VERSION ||
	    file.bytes < sizeof(file) || file.bytes > bytes)
		return -EBADMSG;
	for (at = file.bytes; !r && bytes - at >= sizeof(record);
	     at += record.bytes) {
		const uint8_t *content = data + at + sizeof(record);

		memcpy(&record, data + at, sizeof(record));
		if (record.bytes < sizeof(record) || record.bytes > bytes - at)
			break;
		if (record.kind == DUMP_LOAD)
			r = add_load(map, content,
				     record.bytes - sizeof(record));
		else if (record.kind == DUMP_MOVE)
			r = add_move(map, content,
				     record.bytes - sizeof(record), &steps);
	}
	return r;
}
