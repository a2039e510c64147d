/* SPDX-License-Identifier: MIT */
#include "cli/near_function.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/nearest.h"

#define NEAR_MAX  3
#define WORD_MAX  32
#define NAMES_MAX 160 /* bytes of a message */

struct near {
	const char *name;
	size_t distance;
};

struct near_names {
	char word[WORD_MAX];
	struct near near[NEAR_MAX]; /* nearest first */
	size_t n;
};

static bool is_of_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* The first word of the text that is not longer than fits, in small letters;
 * where it ends. */
static const char *next_word(const char *text, char word[WORD_MAX])
{
	size_t n = 0;

	while (*text && !is_of_word(*text))
		text++;
	for (; is_of_word(*text); text++)
		if (n + 1 < WORD_MAX)
			word[n++] = (char)tolower((unsigned char)*text);
	word[n] = '\0';
	return text;
}

static void add_near(struct near_names *names, const char *name,
		     size_t distance)
{
	size_t at = 0;

	while (at < names->n && names->near[at].distance <= distance)
		if (strcmp(names->near[at++].name, name) == 0)
			return;
	if (at == NEAR_MAX)
		return;
	if (names->n < NEAR_MAX)
		names->n++;
	memmove(&names->near[at + 1], &names->near[at],
		(names->n - at - 1) * sizeof(names->near[0]));
	names->near[at] = (struct near){name, distance};
}

/* By the word of the name that is nearest. */
static void try_name(struct near_names *names, const char *name)
{
	struct sp_nearest nearest;
	char word[WORD_MAX];
	const char *rest = name;

	sp_nearest_init(&nearest, names->word);
	for (rest = next_word(rest, word); *word; rest = next_word(rest, word))
		sp_nearest_try(&nearest, word);
	if (sp_nearest_name(&nearest))
		add_near(names, name, nearest.distance);
}

int sp_near_function_error(const struct sp_aggregate *aggregate,
			   const char *option, const char *pattern,
			   struct sp_error *err)
{
	struct near_names names = {.n = 0};
	char text[NAMES_MAX] = "";
	size_t used = 0;

	next_word(pattern, names.word);
	for (size_t i = 0; i < aggregate->n_functions && *names.word; i++)
		try_name(&names, aggregate->functions[i].name);
	for (size_t i = 0; i < names.n && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "%s%.60s", i ? ", " : "",
					 names.near[i].name);
	return sp_error_set(err, -ENOENT, aggregate->analysis->profile->path,
			    "no function of this view matches %s%s%.40s%s%s%s",
			    option, *option ? " " : "", pattern,
			    names.n ? ": did you mean " : "", text,
			    names.n ? "?" : "");
}

/* ---- a filter ---- */

static bool keeps_nothing(const struct sp_answer *answer)
{
	const struct sp_analysis *a = answer->analysis;
	const struct sp_filter_patterns *p = &answer->question->filter;

	return a->unfiltered && a->unfiltered->all.all.samples &&
	       !a->view->all.all.samples &&
	       (p->text[SP_FILTER_FOCUS] || p->text[SP_FILTER_SHOW] ||
		p->text[SP_FILTER_SHOW_FROM]) &&
	       !p->text[SP_FILTER_IGNORE] && !p->text[SP_FILTER_HIDE];
}

int sp_near_filter_error(const struct sp_answer *answer, enum sp_view fallback,
			 struct sp_error *err)
{
	static const enum sp_filter_kind keeping[] = {
		SP_FILTER_FOCUS, SP_FILTER_SHOW, SP_FILTER_SHOW_FROM};
	const struct sp_filter_patterns *patterns = &answer->question->filter;
	struct sp_question question = *answer->question;
	struct sp_answer all = *answer;
	struct sp_aggregate *aggregate;
	size_t i = 0;
	int r;

	if (!keeps_nothing(answer))
		return 0;
	while (i < 2 && !patterns->text[keeping[i]])
		i++;
	question.filter = (struct sp_filter_patterns){.only_own = false};
	all.question = &question;
	all.symbolizer = NULL;
	all.filter = NULL;
	all.analysis = NULL;
	r = sp_answer_rows(&all, fallback, SP_BY_FUNCTION, &aggregate, err);
	if (r >= 0) {
		r = sp_near_function_error(aggregate,
					   sp_filter_name(keeping[i]),
					   patterns->text[keeping[i]], err);
		sp_aggregate_free(aggregate);
	}
	sp_answer_done(&all);
	return r;
}
