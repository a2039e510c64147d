/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "cli/arguments.h"
#include "cli/unread.h"
#include "read/load.h"
#include "symbols/symbolizer.h"

/* The symbolize command: a copy of a profile that brings its symbols along. */
struct sp_symbolize_options {
	const char *file;
	const char *output; /* a name that ends in .zst: compressed */
	struct sp_symbolizer_options symbols;
	struct sp_moved_module *moved;  /* of --module; never freed */
	const struct sp_rights *rights; /* of --user; NULL: it is not given */
	uint64_t timeout_ns;            /* of --timeout */
};

/* As sp_options_parse(). */
int sp_symbolize_parse(int argc, char **argv, struct sp_symbolize_options *ret,
		       struct sp_error *err);

extern const struct sp_command_line sp_symbolize_line;

/* What was written. */
struct sp_symbolize_result {
	uint64_t frames;        /* distinct addresses in call stacks */
	size_t named;           /* of these, that have a name */
	uint64_t time_error_ns; /* times are told to within that; 0: exactly */
	/* What root could have read, and that user cannot; "": nothing. */
	char note[sizeof(((struct sp_unread *)0)->note)];
};

/*
 * Write options->output.  Everything of the file stays as it is, byte by byte,
 * but for symbols that it had before, which are replaced.  Compressed, it is
 * packed (read/packfile.h), unless it is damaged.  0 and *ret; negative
 * errno and *err, and no output: also -EBUSY if the process still runs, -EINVAL
 * if the file was cut short, and -ETIME if it took too long.
 *
 * The profile says which files are read, and is its user's.  So a process of
 * its own reads them (cli/apart.h), and if root runs it, with the rights of the
 * profile's owner or of --user.
 */
int sp_symbolize(const struct sp_symbolize_options *options,
		 sp_progress_fn *progress, void *progress_arg,
		 struct sp_symbolize_result *ret, struct sp_error *err);
