/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>
#include <string.h>

#define WORDS_MAX 16

/* A command line: a program, then the words of `line`. */
struct words {
	char text[512];
	char *argv[WORDS_MAX + 2];
	int argc;
};

static inline void words_split(struct words *w, const char *line)
{
	char *save = NULL, *word;

	assert_true(strlen(line) < sizeof(w->text));
	strcpy(w->text, line);
	w->argc = 0;
	w->argv[w->argc++] = (char *)(uintptr_t) "report";
	for (word = strtok_r(w->text, " ", &save); word;
	     word = strtok_r(NULL, " ", &save)) {
		assert_true(w->argc <= WORDS_MAX);
		w->argv[w->argc++] = word;
	}
	w->argv[w->argc] = NULL;
}
