/* SPDX-License-Identifier: MIT */
/*
 * A text on its way to a terminal, a shell, a JSON document and a screen,
 * compared with iconv, a plain unquoting and jansson.
 */
#include <iconv.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "format/fuzz/target.h"
#include "text/json.h"
#include "text/screen.h"
#include "text/text.h"

struct output {
	char *text;
	size_t n;
	FILE *stream;
};

static void begin(struct output *o)
{
	o->stream = open_memstream(&o->text, &o->n);
	FUZZ_ASSERT(o->stream);
}

static void end(struct output *o)
{
	FUZZ_ASSERT(fclose(o->stream) == 0);
}

/* The character at `text` and how many bytes it has; 0 if it is none. */
static size_t character(const char *text, uint32_t *ret_code)
{
	static iconv_t utf8;

	if (!utf8)
		utf8 = iconv_open("UTF-32LE", "UTF-8");
	for (size_t n = 1; n <= strnlen(text, 4); n++) {
		char *in = (char *)(uintptr_t)text, *out = (char *)ret_code;
		size_t in_left = n, out_left = sizeof(*ret_code);

		iconv(utf8, NULL, NULL, NULL, NULL);
		if (iconv(utf8, &in, &in_left, &out, &out_left) == 0 &&
		    in_left == 0 && out_left == 0)
			return n;
	}
	return 0;
}

/* Controls, marks that turn the direction of writing, other line ends. */
static bool is_harmless(uint32_t code)
{
	static const uint32_t ranges[][2] = {
		{0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},
		{0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (code >= ranges[i][0] && code <= ranges[i][1])
			return false;
	return true;
}

static void check_print(const char *text)
{
	struct output o, want;
	uint32_t code;

	begin(&o);
	sp_text_print(o.stream, text);
	end(&o);
	begin(&want);
	for (size_t n; *text; text += n) {
		n = character(text, &code);
		if (n && is_harmless(code)) {
			fwrite(text, 1, n, want.stream);
			continue;
		}
		n += n == 0;
		for (size_t i = 0; i < n; i++)
			fprintf(want.stream, "\\x%02x", (uint8_t)text[i]);
	}
	end(&want);
	FUZZ_ASSERT(o.n == want.n && memcmp(o.text, want.text, o.n) == 0);
	free(o.text);
	free(want.text);
}

/* What a shell makes of one word; NULL if it is none, or more than one. */
static char *unquote(const char *word)
{
	char *plain = malloc(strlen(word) + 1), *to = plain;
	const bool is_c = strncmp(word, "$'", 2) == 0;

	if (!is_c && word[0] != '\'') {
		if (word[0] && !strpbrk(word, " \t\n'\"\\$`*?[]{}()<>|&;!#~"))
			return strcpy(plain, word);
		free(plain);
		return NULL;
	}
	for (word += is_c ? 2 : 1; *word && *word != '\''; word++) {
		if (!is_c || *word != '\\') {
			*to++ = *word;
		} else if (*++word == 'x') {
			const char digits[] = {word[1], word[1] ? word[2] : 0,
					       0};

			FUZZ_ASSERT(strspn(digits, "0123456789abcdef") == 2);
			*to++ = (char)strtoul(digits, NULL, 16);
			word += 2;
		} else {
			FUZZ_ASSERT(*word == '\\' || *word == '\'');
			*to++ = *word;
		}
	}
	*to = '\0';
	FUZZ_ASSERT(*word == '\'');
	/* '\'' between two quoted parts would be a way, too. */
	FUZZ_ASSERT(word[1] == '\0');
	return plain;
}

static void check_shell(const char *text)
{
	struct output o;
	char *plain;

	begin(&o);
	sp_text_print_shell(o.stream, text);
	end(&o);
	for (size_t i = 0; i < o.n; i++)
		FUZZ_ASSERT((uint8_t)o.text[i] >= ' ' && o.text[i] != 0x7f);
	plain = unquote(o.text);
	FUZZ_ASSERT(plain && strcmp(plain, text) == 0);
	free(plain);
	free(o.text);
}

/* As it is where it is UTF-8; and no markup. */
static void check_json(const char *text)
{
	struct output o;
	struct sp_json json = {.is_first = true};
	uint32_t code;
	bool is_utf8 = true;
	json_t *read;

	for (size_t at = 0, n; text[at] && is_utf8; at += n) {
		n = character(text + at, &code);
		is_utf8 = n > 0;
	}
	begin(&o);
	json.out = o.stream;
	sp_json_open(&json, NULL, '[');
	sp_json_string(&json, NULL, text);
	sp_json_close(&json, ']');
	end(&o);
	read = json_loadb(o.text, o.n, 0, NULL);
	FUZZ_ASSERT(read && json_array_size(read) == 1);
	text = is_utf8 ? text : NULL;
	FUZZ_ASSERT(!text || strcmp(json_string_value(json_array_get(read, 0)),
				    text) == 0);
	FUZZ_ASSERT(!strpbrk(o.text, "<>&"));
	json_decref(read);
	free(o.text);
}

static size_t characters(const char *text, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += ((uint8_t)text[i] & 0xc0) != 0x80;
	return count;
}

/* No more lines than there are, none wider than it is. */
static void check_screen(char *text, unsigned int rows, unsigned int columns)
{
	static const char end_of_line[] = "\033[K";
	struct output lines, o;
	unsigned int n_rows = 0;

	begin(&lines);
	for (char *line; (line = strsep(&text, "\n"));) {
		sp_text_print(lines.stream, line);
		putc('\n', lines.stream);
	}
	end(&lines);
	begin(&o);
	sp_screen_draw(o.stream, lines.text, rows, columns);
	end(&o);
	for (char *at = o.text + strlen("\033[H"), *next;
	     (next = strstr(at, end_of_line)); n_rows++) {
		at += *at == '\n';
		FUZZ_ASSERT(characters(at, (size_t)(next - at)) <= columns);
		at = next + strlen(end_of_line);
	}
	FUZZ_ASSERT(n_rows <= rows);
	free(o.text);
	free(lines.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	FUZZ_ASSERT(text);
	memcpy(text, data, size);
	text[size] = '\0';
	check_print(text);
	check_shell(text);
	check_json(text);
	if (size > 1)
		check_screen(text + 2, 1 + data[0] % 50u, 1 + data[1] % 100u);
	free(text);
	return 0;
}
