/* SPDX-License-Identifier: MIT */
#include "text/escape.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct escaper {
	FILE *out;
	enum sp_escape kind;
	unsigned int matched; /* bytes of U+FFFE or U+FFFF that are held back */
};

static const char *xml_escape(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	default:
		return NULL;
	}
}

static const char *github_escape(char c, bool is_property)
{
	switch (c) {
	case '%':
		return "%25";
	case '\r':
		return "%0D";
	case '\n':
		return "%0A";
	case ':':
		return is_property ? "%3A" : NULL;
	case ',':
		return is_property ? "%2C" : NULL;
	default:
		return NULL;
	}
}

/* As numbers: no reader of Markdown takes them for anything but characters. */
static const char *markdown_escape(char c)
{
	static const char special[] = "\\`*_{}[]()<>#+-.!|~:@&";
	static char text[8];

	if (c == '\n')
		return "<br>";
	if (!c || !strchr(special, c))
		return NULL;
	snprintf(text, sizeof(text), "&#%d;", c);
	return text;
}

static const char *label_escape(char c)
{
	switch (c) {
	case '\\':
		return "\\\\";
	case '"':
		return "\\\"";
	case '\n':
		return "\\n";
	default:
		return NULL;
	}
}

static const char *char_replacement(enum sp_escape kind, char c)
{
	switch (kind) {
	case SP_ESCAPE_XML:
		return xml_escape(c);
	case SP_ESCAPE_GITHUB_MESSAGE:
	case SP_ESCAPE_GITHUB_PROPERTY:
		return github_escape(c, kind == SP_ESCAPE_GITHUB_PROPERTY);
	case SP_ESCAPE_MARKDOWN:
		return markdown_escape(c);
	case SP_ESCAPE_LABEL:
		return label_escape(c);
	}
	return NULL;
}

static void put_char(struct escaper *e, char c)
{
	const char *text = char_replacement(e->kind, c);

	if (text)
		fputs(text, e->out);
	else
		putc(c, e->out);
}

/* XML has no U+FFFE and U+FFFF: EF BF BE and EF BF BF.  They become U+FFFD. */
static void put_checked(struct escaper *e, char c)
{
	static const char begin[] = "\xef\xbf";

	if (e->matched == 2 && (c == '\xbe' || c == '\xbf')) {
		e->matched = 0;
		fputs("\xef\xbf\xbd", e->out);
		return;
	}
	if (e->matched < 2 && c == begin[e->matched]) {
		e->matched++;
		return;
	}
	fwrite(begin, 1, e->matched, e->out);
	e->matched = 0;
	put_char(e, c);
}

static ssize_t write_escaped(void *cookie, const char *bytes, size_t n)
{
	struct escaper *e = cookie;

	for (size_t i = 0; i < n; i++) {
		if (e->kind == SP_ESCAPE_XML)
			put_checked(e, bytes[i]);
		else
			put_char(e, bytes[i]);
	}
	return (ssize_t)n;
}

static int close_escaper(void *cookie)
{
	free(cookie);
	return 0;
}

FILE *sp_escape_open(FILE *out, enum sp_escape kind)
{
	const cookie_io_functions_t functions = {.write = write_escaped,
						 .close = close_escaper};
	struct escaper *e = calloc(1, sizeof(*e));
	FILE *stream = NULL;

	if (e) {
		e->out = out;
		e->kind = kind;
		stream = fopencookie(e, "w", functions);
	}
	if (stream)
		setvbuf(stream, NULL, _IONBF, 0);
	else
		free(e);
	return stream;
}
