/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "cli/arguments.h"
#include "rss/ledger.h"

extern const struct sp_command_line sp_rss_line;

/* 0; 1 after --help or --version; -EINVAL and *err, whose message says what is
 * wrong; -ENOMEM and *err. */
int sp_rss_parse(int argc, char **argv, struct sp_rss_options *ret,
		 struct sp_error *err);
