/* SPDX-License-Identifier: MIT */
#include "report/callers.h"

#include <stdbool.h>
#include <string.h>

#include "text/lines.h"
#include "text/text.h"

#define CALLERS_MAX 3
#define BETWEEN     " < "
#define MORE        " < ..."

struct line {
	FILE *out;
	size_t room; /* columns */
	size_t n;    /* names */
};

/* A name that is cut says less than none, but for the first. */
static bool add_name(struct line *line, const char *name)
{
	const size_t between = strlen(line->n ? BETWEEN : "< ");
	size_t columns = 0;

	for (const char *at = name; *at; at++)
		columns += (*at & 0xc0) != 0x80;
	if (line->n && (line->n == CALLERS_MAX ||
			columns + between + strlen(MORE) > line->room))
		return false;
	fputs(line->n++ ? BETWEEN : "< ", line->out);
	sp_lines_print_name(line->out, name);
	columns += between;
	line->room -= columns < line->room ? columns : line->room;
	return true;
}

void sp_callers_print(FILE *out, const struct sp_aggregate *a,
		      const struct sp_aggregate_stack *stack,
		      unsigned int indent, double share)
{
	char part[128] = "";
	struct line line = {.out = out};

	if (share < 0.995)
		snprintf(part, sizeof(part), "  (%s of its bytes)",
			 sp_text_percent(share, 1).text);
	line.room = sp_lines_columns();
	line.room -= line.room < indent + strlen(part) ? line.room
						       : indent + strlen(part);
	for (uint32_t i = sp_aggregate_next_own(a, stack, 0); i < stack->n_rows;
	     i = sp_aggregate_next_own(a, stack, i)) {
		if (!line.n)
			fprintf(out, "%*s", (int)indent, "");
		if (!add_name(&line, sp_aggregate_in_path(a, stack, i)->name)) {
			fputs(MORE, out);
			break;
		}
	}
	if (line.n)
		fprintf(out, "%s\n", part);
}
