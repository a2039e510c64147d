/* SPDX-License-Identifier: MIT */
#include "tools/sampling_options.h"

#include <stdint.h>

#include "base/parse.h"
#include "model/profile.h"

static bool take_period(void *part, const char *text)
{
	struct sampling_options *o = part;
	uint64_t bytes;

	o->period = text;
	return sp_parse_size(text, &bytes) && bytes &&
	       bytes <= SP_FORMAT_PERIOD_MAX;
}

static bool take_rate(void *part, const char *text)
{
	struct sampling_options *o = part;
	uint64_t rate;

	o->rate = text;
	return sp_parse_rate(text, &rate);
}

static const struct sp_argument arguments[] = {
	{"period", 0, "SIZE", "a size from 1 to 1T, such as 64K", take_period,
	 0, "mean bytes between two samples (default 512K)"},
	{"rate", 0, "N/s", "off, or 1/s to 1000000/s", take_rate, 0,
	 "target of samples per second: above it the period grows\n"
	 "(default off)"},
	{0},
};

const struct sp_argument_group sampling_group = {"How to record", arguments,
						 NULL};

static const char *follow_word(size_t i)
{
	static const char *const words[] = {"all", "none", NULL};

	return words[i];
}

const struct sp_argument_values sampling_follow[] = {{"follow", follow_word},
						     {0}};
