/* SPDX-License-Identifier: MIT */
#include "base/error.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* They are macros to an analyser. */
#undef sp_error_set
#undef sp_error_set_at
#undef sp_error_memory

int sp_error_set(struct sp_error *err, int code, const char *file,
		 const char *format, ...)
{
	va_list args;

	if (!err)
		return code;
	memset(err, 0, sizeof(*err));
	err->file = file;
	va_start(args, format);
	vsnprintf(err->message, sizeof(err->message), format, args);
	va_end(args);
	return code;
}

int sp_error_memory(struct sp_error *err, const char *file)
{
	return sp_error_set(err, -ENOMEM, file, "not enough memory");
}

int sp_error_set_at(struct sp_error *err, int code, const char *file,
		    uint64_t offset, const char *field, const char *format, ...)
{
	va_list args;

	if (!err)
		return code;
	memset(err, 0, sizeof(*err));
	err->file = file;
	err->field = field;
	err->offset = offset;
	err->has_offset = true;
	va_start(args, format);
	vsnprintf(err->message, sizeof(err->message), format, args);
	va_end(args);
	return code;
}

void sp_error_describe(const struct sp_error *err, char *buf, uint64_t size)
{
	char where[64] = "";

	/* At the beginning, it is about the file: what it is. */
	if (err->has_offset && !err->offset) {
		snprintf(buf, size, "%s%s%s", err->file ? err->file : "",
			 err->file ? ": " : "", err->message);
		return;
	}
	if (err->has_offset)
		snprintf(where, sizeof(where), "offset %" PRIu64 ": ",
			 err->offset);
	snprintf(buf, size, "%s%s%s%s%s%s", err->file ? err->file : "",
		 err->file ? ": " : "", where, err->field ? err->field : "",
		 err->field ? ": " : "", err->message);
}
