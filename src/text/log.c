/* SPDX-License-Identifier: MIT */
#include "text/log.h"

#include <stdarg.h>
#include <time.h>

#include "text/text.h"

void sp_log(FILE *log, const char *format, ...)
{
	char line[1000];
	struct timespec now;
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	clock_gettime(CLOCK_REALTIME, &now);
	fprintf(log, "%s ",
		sp_text_time((uint64_t)now.tv_sec * 1000000000u).text);
	sp_text_print(log, line);
	putc('\n', log);
	fflush(log);
}
