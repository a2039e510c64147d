/* SPDX-License-Identifier: MIT */
#include "base/labels.h"

#include <string.h>

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
}

/* How many bytes of the text are those of a key, or of a value. */
static size_t span_text(const char *text, const char *besides)
{
	size_t n = 0;

	while (text[n] && (is_word(text[n]) || strchr(besides, text[n])))
		n++;
	return n;
}

/* What is wrong with the label at `text`; *ret_bytes is its length. */
static const char *check_label(const char *text, size_t *ret_bytes)
{
	const size_t key = span_text(text, "");
	size_t value;

	if (text[key] == ',' || !text[key])
		return "has a label without a value: KEY=VALUE is wanted";
	if (text[key] != '=' || !key)
		return "has a key that is not letters, digits and _.-";
	if (key > SP_LABEL_KEY_BYTES_MAX)
		return "has a key of more than 63 bytes";
	value = span_text(text + key + 1, ":/@+");
	if (!value || (text[key + 1 + value] && text[key + 1 + value] != ','))
		return "has a value that is not letters, digits and ._-:/@+";
	if (value > SP_LABEL_VALUE_BYTES_MAX)
		return "has a value of more than 128 bytes";
	*ret_bytes = key + 1 + value;
	return NULL;
}

static bool has_key(const char *from, const char *to, const struct sp_label *l)
{
	struct sp_label other;

	while (from < to && sp_labels_next(&from, &other))
		if (other.key_bytes == l->key_bytes &&
		    memcmp(other.key, l->key, l->key_bytes) == 0)
			return true;
	return false;
}

const char *sp_labels_check(const char *text)
{
	const char *at = text;
	size_t n = 0;

	while (n <= SP_LABELS_BYTES_MAX && text[n])
		n++;
	if (n > SP_LABELS_BYTES_MAX)
		return "is longer than 1024 bytes";
	for (n = 1; *at; n++) {
		const char *begin = at;
		struct sp_label label;
		size_t bytes;
		const char *why = check_label(at, &bytes);

		if (why)
			return why;
		if (n > SP_LABELS_MAX)
			return "has more than 32 labels";
		if (at[bytes] == ',' && !at[bytes + 1])
			return "ends with a comma";
		if (sp_labels_next(&at, &label) && has_key(text, begin, &label))
			return "has the same key twice";
	}
	return NULL;
}

bool sp_labels_next(const char **at, struct sp_label *ret)
{
	const char *p = *at;

	if (!*p)
		return false;
	ret->key = p;
	ret->key_bytes = strcspn(p, "=");
	ret->value = p + ret->key_bytes + 1;
	ret->value_bytes = strcspn(ret->value, ",");
	p = ret->value + ret->value_bytes;
	*at = *p ? p + 1 : p;
	return true;
}
