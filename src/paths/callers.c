/* SPDX-License-Identifier: MIT */
#include "paths/callers.h"

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

/* In a script's stack what the interpreter does is not its own. */
static bool has_script(const struct sp_aggregate *a,
		       const struct sp_aggregate_stack *stack)
{
	for (uint32_t i = 0; i < stack->n_rows; i++)
		if (sp_aggregate_in_path(a, stack, i)->role == SP_ROLE_SCRIPT)
			return true;
	return false;
}

static bool is_own(enum sp_role role, bool is_script)
{
	return role == SP_ROLE_OWN || role == SP_ROLE_SCRIPT ||
	       (role == SP_ROLE_INTERPRETER && !is_script);
}

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
	const bool is_script = has_script(a, stack);
	char part[128] = "";
	struct line line = {.out = out};

	if (share < 0.995)
		snprintf(part, sizeof(part), "  (%s of its bytes)",
			 sp_text_percent(share, 1).text);
	line.room = sp_lines_columns();
	line.room -= line.room < indent + strlen(part) ? line.room
						       : indent + strlen(part);
	for (uint32_t i = 1; i < stack->n_rows; i++) {
		const struct sp_aggregate_function *f =
			sp_aggregate_in_path(a, stack, i);

		if (!is_own(f->role, is_script))
			continue;
		if (!line.n)
			fprintf(out, "%*s", (int)indent, "");
		if (!add_name(&line, f->name)) {
			fputs(MORE, out);
			break;
		}
	}
	if (line.n)
		fprintf(out, "%s\n", part);
}
