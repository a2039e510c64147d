/* SPDX-License-Identifier: MIT */
#include "serve/series.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/text.h"

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static void put_clean(FILE *out, const char *text, const char *others)
{
	for (; *text; text++)
		putc(is_letter(*text) || (*text >= '0' && *text <= '9') ||
				     *text == '_' || strchr(others, *text)
			     ? *text
			     : '_',
		     out);
}

static void put_tag(FILE *out, const char **comma, const char *key,
		    const char *value)
{
	if (!*value)
		return;
	fputs(*comma, out);
	*comma = ",";
	/* A key begins with a letter. */
	if (!is_letter(*key))
		putc('_', out);
	put_clean(out, key, "");
	putc('=', out);
	put_clean(out, value, ".-:/@+");
}

static bool is_ours(const char *key)
{
	static const char *const ours[] = {"program", "pid", "host"};

	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		if (strcmp(key, ours[i]) == 0)
			return true;
	return false;
}

static const char *label_of(const struct sp_profile *p, const char *wanted)
{
	const char *key, *value;

	for (size_t i = 0; (key = sp_profile_label(p, i, &value)); i++)
		if (strcmp(key, wanted) == 0)
			return value;
	return NULL;
}

char *sp_series_name(const struct sp_profile *p)
{
	const char *key, *value, *comma = "";
	const char *own = "service";
	const char *service = label_of(p, own);
	char *text = NULL, pid[24];
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	if (!service)
		service = label_of(p, own = "service_name");
	put_clean(out, service ? service : sp_text_base_name(p->program), ".-");
	putc('{', out);
	snprintf(pid, sizeof(pid), "%" PRIu64, p->pid);
	put_tag(out, &comma, "program", sp_text_base_name(p->program));
	put_tag(out, &comma, "host", p->host);
	put_tag(out, &comma, "pid", pid);
	for (size_t i = 0; (key = sp_profile_label(p, i, &value)); i++) {
		char other[80];

		if (service && strcmp(key, own) == 0)
			continue;
		snprintf(other, sizeof(other), "%s%s",
			 is_ours(key) ? "label_" : "", key);
		put_tag(out, &comma, other, value);
	}
	putc('}', out);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
