/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "cli/arguments.h"
#include "fleet/choose.h"

/* What `sampleprof fleet` does; all but the first three also take the options
 * of the command of that name. */
enum sp_fleet_action {
	SP_FLEET_INIT,
	SP_FLEET_ADD,
	SP_FLEET_WATCH,
	SP_FLEET_PAGE, /* report, top, tree, ... */
	SP_FLEET_LIVE, /* report --view live */
	SP_FLEET_EXPORT,
	SP_FLEET_DIFF,
	SP_FLEET_CHECK,
};

struct sp_fleet_options {
	enum sp_fleet_action action;
	const char *url;
	struct sp_fleet_filter filter; /* `without` is empty */
	/* --base: the old side of diff and check has these labels, and those of
	 * the filter. */
	struct sp_label base[SP_FLEET_LABELS_MAX];
	size_t n_base;
	/* For watch, as in struct sp_watch_options. */
	uint64_t interval_ns, running_ns, backlog_bytes;
	bool has_watch; /* one of these was given */
	/* The remaining arguments, for the command: argv[0], the options that
	 * are not the fleet's own, and "fleet" in place of each file that the
	 * command needs.  Owned (free()). */
	int argc;
	char **argv;
};

/* argv[1] is the action.  0; 1 after --help and --version; -EINVAL and *err. To
 * be released in every case. */
int sp_fleet_options_parse(int argc, char **argv, struct sp_fleet_options *ret,
			   struct sp_error *err);
void sp_fleet_options_done(struct sp_fleet_options *options);

extern const struct sp_command_line sp_fleet_line;

/* "2026-11-23", "2026-11-23T04:55" or "...:30", UTC: nanoseconds since 1970. */
bool sp_fleet_parse_time(const char *text, uint64_t *ret_unix_ns);
