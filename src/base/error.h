/* SPDX-License-Identifier: MIT */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * What went wrong, for the offline code only (the agent counts, it does not
 * explain).  Library code fills one of these and returns a negative errno;
 * only the tools print it.
 *
 * `file` is borrowed and may be NULL; `offset` is a byte offset into it and is
 * meaningful when `has_offset`; `field` names the part of the format that was
 * wrong (borrowed, may be NULL); `message` says what and what to do.
 */
struct sp_error {
	const char *file;
	const char *field;
	uint64_t offset;
	bool has_offset;
	char message[256];
};

/* Fill `err` (may be NULL) and return `code`, so that a failing function can
 * end in `return sp_error_set(err, -EINVAL, ...)`. */
int sp_error_set(struct sp_error *err, int code, const char *file,
		 const char *format, ...) __attribute__((format(printf, 4, 5)));

/* -ENOMEM: "not enough memory". */
int sp_error_memory(struct sp_error *err, const char *file);

/* The same with the byte offset and the name of the field. */
int sp_error_set_at(struct sp_error *err, int code, const char *file,
		    uint64_t offset, const char *field, const char *format, ...)
	__attribute__((format(printf, 6, 7)));

#ifdef __clang_analyzer__
/* It sees one source at a time, and would take a failure for none. */
#define sp_error_set(err, code, ...)                                           \
	(sp_error_set(err, code, __VA_ARGS__), (code))
#define sp_error_set_at(err, code, ...)                                        \
	(sp_error_set_at(err, code, __VA_ARGS__), (code))
#define sp_error_memory(err, file) (sp_error_memory(err, file), -ENOMEM)
#endif

/* One line "FILE: offset N: FIELD: MESSAGE" into buf, always terminated. */
void sp_error_describe(const struct sp_error *err, char *buf, uint64_t size);
