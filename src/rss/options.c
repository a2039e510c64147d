/* SPDX-License-Identifier: MIT */
/* The command line of rss. */
#include "rss/options.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/parse.h"

#define DEFAULT_TIMEOUT_NS 5000000000ull
#define DEFAULT_CONFIDENCE 0.95
#define DEFAULT_TOP        10

static bool take_top(void *part, const char *text)
{
	struct sp_rss_options *o = part;

	o->has_top = true;
	return sp_parse_u64(text, &o->top);
}

static bool take_granularity(void *part, const char *text)
{
	struct sp_rss_options *o = part;

	o->has_granularity = true;
	return sp_granularity_parse(text, &o->granularity);
}

static const struct sp_argument_values values[] = {
	{"granularity", sp_granularity_word}, {0}};

static const struct sp_argument arguments[] = {
	SP_ARGUMENT_FLAG(
		struct sp_rss_options, "pins", pins,
		"also show which call sites pin free memory: it cannot go\n"
		"back, because a live object of the site lies beside it"),
	{"top", 0, "N", "a number", take_top, 0,
	 "call sites of --pins; 0 shows all (default 10)"},
	{"granularity", 0, "WHAT", "function, file, line, module or address",
	 take_granularity, 0,
	 "what a row of --pins is: function (default), file,\n"
	 "line, module, address"},
	{"timeout", 0, "TIME", "a time such as 5s", sp_argument_duration,
	 offsetof(struct sp_rss_options, timeout_ns),
	 "wait that long for the allocator's answer (default 5s)"},
	{"when", 0, "WHAT", "end, peak or the name of a snapshot",
	 sp_argument_text, offsetof(struct sp_rss_options, when),
	 "for a FILE: the rows at the end (default), near the\n"
	 "peak, or at the snapshot of that name"},
	{"html", 0, "OUT", "a file", sp_argument_text,
	 offsetof(struct sp_rss_options, html),
	 "a page: a bar for each moment, which adds up"},
	SP_ARGUMENT_FLAG(struct sp_rss_options, "json", json,
			 "everything as JSON"),
	{0},
};

static const struct sp_argument_group group = {"Options", arguments, values};

const struct sp_command_line sp_rss_line = {
	.forms = "rss [OPTION]... PID|FILE",
	.about = "Show where the resident memory of a process is, in rows that "
		 "add up to the\n"
		 "kernel's number. If the process is being profiled, the rows "
		 "also show what is\n"
		 "alive in its heap, and what its allocator keeps although it "
		 "is free. The process\n"
		 "goes on meanwhile. For the FILE of a process that has ended, "
		 "show the rows that\n"
		 "`run --rss` put into it.\n",
	.parts = (const struct sp_argument_part[]){{&group, 0},
						   {&sp_arguments_about, 0},
						   {0}},
	.ending = "Exit status: 0 fine, 1 error, 2 usage.\n",
};

int sp_rss_parse(int argc, char **argv, struct sp_rss_options *ret,
		 struct sp_error *err)
{
	const char *const *words;
	size_t n;
	int r;

	*ret = (struct sp_rss_options){.timeout_ns = DEFAULT_TIMEOUT_NS,
				       .top = DEFAULT_TOP,
				       .confidence = DEFAULT_CONFIDENCE};
	r = sp_arguments_parse(&sp_rss_line, argc, argv, ret, &words, &n, err);
	if (r)
		return r;
	if (ret->has_top && (!ret->pins || ret->json))
		return sp_error_set(err, -EINVAL, NULL,
				    "--top needs --pins, and cannot be used "
				    "with --json, which has all sites");
	if (ret->has_granularity && !ret->pins)
		return sp_error_set(err, -EINVAL, NULL,
				    "--granularity needs --pins");
	if (ret->html && (ret->json || ret->pins || ret->when))
		return sp_error_set(err, -EINVAL, NULL,
				    "--html cannot be used with --json, --pins "
				    "or --when: the page has all moments");
	if (n != 1)
		return sp_error_set(err, -EINVAL, NULL, "%s",
				    n ? "one process at a time: there is more "
					"than one PID or FILE"
				      : "which process? no PID was given");
	/* A number is a process, anything else the name of a file. */
	if (words[0][strspn(words[0], "0123456789")] || !*words[0]) {
		ret->path = words[0];
		if (!ret->pins)
			return 0;
		return sp_error_set(err, -EINVAL, NULL,
				    "--pins is for a PID, whose memory is "
				    "looked at now");
	}
	if (ret->when)
		return sp_error_set(err, -EINVAL, NULL,
				    "--when is for a FILE: process %.20s is "
				    "looked at now",
				    words[0]);
	if (!sp_parse_u64(words[0], &ret->pid) || !ret->pid ||
	    ret->pid > INT32_MAX)
		return sp_error_set(err, -EINVAL, NULL,
				    "not a process id: %.120s (sampleprof ps "
				    "lists those that are profiled)",
				    words[0]);
	return 0;
}
