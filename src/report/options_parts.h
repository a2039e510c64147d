/* SPDX-License-Identifier: MIT */
#ifndef SP_REPORT_OPTIONS_PARTS_H
#define SP_REPORT_OPTIONS_PARTS_H

#include <stddef.h>

#include "report/options.h"

/* What the command lines of the report and of an export share. */

/* An option without a value, and a group that fills a part, of struct
 * sp_options. */
#define SP_OPTIONS_FLAG(name, member, help)                                    \
	{                                                                      \
		name, 0, NULL, NULL, NULL,                                     \
			offsetof(struct sp_options, member), help              \
	}
#define SP_OPTIONS_PART(group, member)                                         \
	{                                                                      \
		&group, offsetof(struct sp_options, member)                    \
	}

/* All of these fill struct sp_options. */
extern const struct sp_argument_group sp_options_report;
extern const struct sp_argument_group sp_options_export;
extern const struct sp_argument_group sp_options_other; /* help, version */

/* Does the group have an option of that name or letter? */
bool sp_options_are(const struct sp_argument_group *group, const char *name);

/* Was --help or --version given? */
bool sp_options_is_done(const void *options);

/* Defaults, then the command line; what the words mean is for the caller to
 * say.  0 or negative errno and *err. */
int sp_options_begin(const struct sp_command_line *line, int argc, char **argv,
		     struct sp_options *o, const char *const **ret_words,
		     size_t *ret_n, struct sp_error *err);

/* The words are the files.  0, or -EINVAL and *err if there are none. */
int sp_options_take_files(const char *const *words, size_t n,
			  struct sp_options *o, struct sp_error *err);

#endif
