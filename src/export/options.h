/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "cli/arguments.h"
#include "export/export.h"

/*
 * Parse the command line of an export: argv[0] is the program; a format and the
 * files follow.  Returns what sp_options_parse() returns.
 */
int sp_export_options_parse(int argc, char **argv,
			    struct sp_export_request *ret,
			    struct sp_error *err);

extern const struct sp_command_line sp_export_line;
