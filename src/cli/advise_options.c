/* SPDX-License-Identifier: MIT */
/* The command line of advise. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/parse.h"
#include "cli/advise.h"
#include "cli/arguments.h"
#include "cli/options.h"

#define DEFAULT_ERROR 0.1
#define DEFAULT_TOP   10
#define TOP_MAX       1000

/* "10%", "2.5%": above 0 and at most 100. */
static bool take_error(void *part, const char *text)
{
	struct sp_advise_options *o = part;
	const size_t n = strcspn(text, "%");
	char digits[16];
	uint64_t thousandths;

	if (n >= sizeof(digits) || (text[n] && text[n + 1]))
		return false;
	memcpy(digits, text, n);
	digits[n] = '\0';
	if (!sp_parse_milli(digits, &thousandths) || !thousandths ||
	    thousandths > 100000)
		return false;
	o->error = (double)thousandths / 100000;
	return true;
}

static bool take_top(void *part, const char *text)
{
	struct sp_advise_options *o = part;

	return sp_parse_u64(text, &o->top) && o->top && o->top <= TOP_MAX;
}

static const struct sp_argument arguments[] = {
	{"error", 0, "PERCENT", "a percentage up to 100%, such as 10%",
	 take_error, 0,
	 "the wanted error: half of a 95 % interval, relative to\n"
	 "its value (default 10%)"},
	{"top", 0, "N", "a number from 1 to 1000", take_top, 0,
	 "for the N functions that allocate most (default 10)"},
	SP_ARGUMENT_FLAG(struct sp_advise_options, "json", json,
			 "everything as JSON"),
	SP_ARGUMENT_FLAG(struct sp_advise_options, "csv", csv,
			 "the table of periods as CSV"),
	{0},
};

static const struct sp_argument_group group = {"What is wanted", arguments,
					       NULL};
const struct sp_command_line sp_advise_line = {
	.forms = "advise [OPTION]... FILE",
	.about = "Show which sampling period a program needs, from one "
		 "recording of it: the error\n"
		 "of each period, its samples per second, its cost, and the "
		 "size of its file.\n",
	.parts =
		(const struct sp_argument_part[]){
			{&group, 0},
			{&sp_options_symbols,
			 offsetof(struct sp_advise_options, symbols)},
			{&sp_arguments_about, 0},
			{0}},
	.ending = "Exit status: 0 fine, 1 error, 2 usage, 4 too few samples "
		  "to tell.\n",
};

int sp_advise_parse(int argc, char **argv, struct sp_advise_options *ret,
		    struct sp_error *err)
{
	const char *const *words;
	size_t n;
	int r;

	*ret = (struct sp_advise_options){.error = DEFAULT_ERROR,
					  .top = DEFAULT_TOP};
	r = sp_arguments_parse(&sp_advise_line, argc, argv, ret, &words, &n,
			       err);
	if (r)
		return r;
	if (ret->json && ret->csv)
		return sp_error_set(err, -EINVAL, NULL,
				    "--json or --csv, not both");
	return sp_arguments_take_file(words, n, &ret->file, err);
}
