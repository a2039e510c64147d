/* SPDX-License-Identifier: MIT */
#include "base/operator.h"

#include <string.h>

size_t sp_operator_bytes(const char *text)
{
	/* the longest first */
	static const char *const symbols[] = {
		"<=>", "<<=", ">>=", "->*", "->", "<<", ">>", "<=", ">=", "==",
		"!=",  "&&",  "||",  "++",  "--", "+=", "-=", "*=", "/=", "%=",
		"^=",  "&=",  "|=",  "()",  "[]", "<",  ">",  "=",  "!",  "&",
		"|",   "+",   "-",   "*",   "/",  "%",  "^",  "~",  ","};
	static const char word[] = "operator";
	const size_t n = sizeof(word) - 1;

	if (strncmp(text, word, n) != 0)
		return 0;
	for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++)
		if (strncmp(text + n, symbols[i], strlen(symbols[i])) == 0)
			return n + strlen(symbols[i]);
	return 0;
}
