/* SPDX-License-Identifier: MIT */
/* The command line of symbolize. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/options.h"
#include "cli/symbolize.h"

static bool take_output(void *part, const char *text)
{
	struct sp_symbolize_options *o = part;

	o->output = text;
	return *text != '\0' && strcmp(text, "-") != 0;
}

static bool take_module(void *part, const char *text)
{
	struct sp_symbolize_options *o = part;
	const size_t n = o->symbols.n_moved;
	const char *equals = strrchr(text, '=');
	struct sp_moved_module *grown;

	if (!equals || equals == text || !equals[1])
		return false;
	grown = reallocarray(o->moved, n + 1, sizeof(*grown));
	if (!grown)
		return false;
	o->symbols.moved = o->moved = grown;
	grown[n] = (struct sp_moved_module){
		strndup(text, (size_t)(equals - text)), equals + 1};
	o->symbols.n_moved += grown[n].path != NULL;
	return grown[n].path != NULL;
}

static bool take_user(void *part, const char *text)
{
	static struct sp_rights rights;
	struct sp_symbolize_options *o = part;

	o->rights = &rights;
	return sp_rights_find(text, &rights);
}

static const struct sp_argument output_arguments[] = {
	{"output", 'o', "OUT", "a path", take_output, 0,
	 "file to write; packed, with zstd, if it ends in .zst"},
	{"module", 0, "PATH=FILE", "a path, = and the path of a file",
	 take_module, 0,
	 "read FILE in the place of the executable or library that\n"
	 "was at PATH and is not there any more; it has to have its\n"
	 "build id, if there is one; may be given again"},
	{"user", 0, "USER", "the name or the number of a user", take_user, 0,
	 "as root: read programs, libraries and debug files with the\n"
	 "rights of USER, 0 for root's; default: those of the user\n"
	 "who owns FILE"},
	{"timeout", 0, "TIME", "a time such as 5m", sp_argument_duration,
	 offsetof(struct sp_symbolize_options, timeout_ns),
	 "give up after that, and write nothing (default 4h); files\n"
	 "that do not answer for five minutes end it before"},
	{0},
};

static const struct sp_argument_group output_group = {"How to write",
						      output_arguments, NULL};

const struct sp_command_line sp_symbolize_line = {
	.forms = "symbolize [OPTION]... FILE -o OUT",
	.brief = "Copy a profile and put the names of its functions into the "
		 "copy, so that it can\n"
		 "be read where the programs and their debug files are not.\n"
		 "\n"
		 "  -o, --output OUT   file to write; packed, with zstd, if it "
		 "ends in .zst\n"
		 "  --module PATH=FILE read FILE in the place of the "
		 "executable or library that\n"
		 "                     was at PATH and is not there any more\n"
		 "  --debug-path DIRS  where separate debug files are, "
		 "separated by colons\n"
		 "                     (default /usr/lib/debug)\n"
		 "  --debuginfod       fetch missing debug files from "
		 "$DEBUGINFOD_URLS\n"
		 "  --help-all         all options\n"
		 "\n"
		 "Exit status: 0 fine, 1 error, 2 usage.\n",
	.about = "Copy a profile and put the names of its functions into the "
		 "copy, so that it can\n"
		 "be read where the programs and their debug files are not.\n"
		 "\n"
		 "A copy OUT.zst is also packed: it is much smaller, and has "
		 "everything that a\n"
		 "report needs. If it has more than one sample in a "
		 "millisecond, its times are\n"
		 "right to within a millisecond.\n",
	.parts =
		(const struct sp_argument_part[]){
			{&output_group, 0},
			SP_ARGUMENT_PART(struct sp_symbolize_options,
					 sp_options_symbols, symbols),
			{&sp_arguments_about, 0},
			{0}},
	.ending = "Exit status: 0 fine, 1 error, 2 usage.\n",
};

int sp_symbolize_parse(int argc, char **argv, struct sp_symbolize_options *ret,
		       struct sp_error *err)
{
	const char *const *words;
	size_t n;
	int r;

	*ret = (struct sp_symbolize_options){.timeout_ns = SP_APART_ALL_NS};
	r = sp_arguments_parse(&sp_symbolize_line, argc, argv, ret, &words, &n,
			       err);
	if (r)
		return r;
	r = sp_arguments_take_file(words, n, &ret->file, err);
	if (r < 0)
		return r;
	if (!ret->output)
		return sp_error_set(err, -EINVAL, NULL,
				    "where to? no -o OUT was given");
	return 0;
}
