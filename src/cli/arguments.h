/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

/*
 * A command line as tables: every option once, with what it does, what its
 * value is, and its lines of --help.  A group is part of a structure, so that
 * several commands can share the options that fill the same part of theirs:
 *
 *   struct my_options { struct sp_question question; bool is_loud; ... };
 *   groups: {sp_options_question, offsetof(struct my_options, question)}, ...
 */

struct sp_argument {
	const char *name; /* without the dashes */
	char letter;      /* of the short form, or 0 */
	const char *meta; /* of the value in --help: "TIME"; NULL: no value */
	/* What the value is, for "--NAME takes ..."; NULL: no value. */
	const char *takes;
	/* Store the value at `field` of the group's part of the options,
	 * borrowing it; false if it is none.  Without a value `text` is NULL.
	 * If `take` is NULL, the value is the const char * at `field`, or,
	 * without a value, the bool there becomes true. */
	bool (*take)(void *field, const char *text);
	size_t field;
	/* Lines of at most 59 columns, split by '\n'; NULL: another spelling,
	 * not in --help. */
	const char *help;
};

/* To be the `take` of an option: of a text that is not empty, at a const char
 * *; of a number, and of a length of time in nanoseconds, at a uint64_t. */
bool sp_argument_text(void *field, const char *text);
bool sp_argument_number(void *field, const char *text);
bool sp_argument_duration(void *field, const char *text);

/* An option without a value: the bool `member` of a `type` becomes true. */
#define SP_ARGUMENT_FLAG(type, name, member, help)                             \
	{                                                                      \
		name, 0, NULL, NULL, NULL, offsetof(type, member), help        \
	}

/* The i-th word of a fixed list, from 0; NULL behind the last. */
typedef const char *sp_argument_word_fn(size_t i);

/* An option whose value is one of a list, for completion. */
struct sp_argument_values {
	const char *name; /* of the option */
	sp_argument_word_fn *word;
};

struct sp_argument_group {
	const char *title;                /* NULL: goes on with the last */
	const struct sp_argument *option; /* the one after the last has no
					   * name */
	const struct sp_argument_values *values; /* likewise; or NULL */
};

/* The last options of every command: --help, --help-all and --version; and the
 * same of a command that has no others. */
extern const struct sp_argument_group sp_arguments_about;
extern const struct sp_argument_group sp_arguments_alone;

/* What sp_arguments_parse() returns after the first two, and after the last. */
#define SP_ARGUMENTS_HELP    1
#define SP_ARGUMENTS_VERSION 2

struct sp_argument_part {
	const struct sp_argument_group *group;
	size_t offset; /* of the group's part in the options */
};

/* A group that fills the `member` of a `type`. */
#define SP_ARGUMENT_PART(type, group, member)                                  \
	{                                                                      \
		&(group), offsetof(type, member)                               \
	}

struct sp_command_line {
	/* Ways to call it, divided by '\n': each begins with the command. */
	const char *forms;
	/* What --help says behind the forms, if all of it does not fit a
	 * screen: then --help-all shows the rest.  NULL: it fits. */
	const char *brief;
	const char *about;                    /* what it does, in lines */
	void (*describe)(FILE *out);          /* what follows that; or NULL */
	const struct sp_argument_part *parts; /* the last has no group */
	const char *ending;                   /* the last lines of --help */
	/* Options end at the first word that is none. */
	bool stops_at_word;
	/* Which of the words is one of a list, from 1; 0: none is. */
	unsigned int listed_word;
	sp_argument_word_fn *word;
	/* Told of each option that was taken, with its value or NULL, both of
	 * which stay.  NULL: nobody wants to know. */
	void (*note)(void *options, const struct sp_argument *argument,
		     const char *value);
	/* An option that only another command has: -EINVAL and *err, which
	 * says so; else 0.  NULL: there are none. */
	int (*refuse)(const char *name, struct sp_error *err);
};

/*
 * Fill `options`; options may stand behind other words.  Then *ret_words are
 * the other words, in their order, borrowed from argv, which is reordered, and
 * *ret_n is their number.  0; SP_ARGUMENTS_HELP or SP_ARGUMENTS_VERSION, behind
 * which nothing is looked at; -EINVAL and *err, whose message says what is
 * wrong and what would be right; -ENOMEM and *err.
 */
int sp_arguments_parse(const struct sp_command_line *line, int argc,
		       char **argv, void *options,
		       const char *const **ret_words, size_t *ret_n,
		       struct sp_error *err);

/* The only one of these words, which names a profile.  0; or -EINVAL and *err
 * if there is none, or more than one. */
int sp_arguments_take_file(const char *const *words, size_t n,
			   const char **ret_file, struct sp_error *err);

/* Column of --help in which explanations begin. */
#define SP_ARGUMENTS_HELP_COLUMN 21

/* An explanation, whose first line begins in that column. */
void sp_arguments_print_lines(FILE *out, const char *text);

/* All text of --help; `program` is sp_command_program(). */
void sp_arguments_print_help(FILE *out, const struct sp_command_line *line,
			     const char *program);
