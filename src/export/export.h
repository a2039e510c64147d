/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "export/format.h"
#include "model/profile.h"
#include "read/load.h"
#include "report/aggregate.h"
#include "report/load.h"
#include "report/question.h"
#include "symbols/symbolizer.h"

/* In the order of --help; ends with an entry without a name. */
extern const struct sp_export_format sp_export_formats[];

/* NULL for an unknown name. */
const struct sp_export_format *sp_export_find(const char *name);

/* The command line of an export. */
struct sp_export_request {
	const struct sp_export_format *format;
	struct sp_export_options how;
	struct sp_question question;
	struct sp_symbolizer_options symbols;
	const char *const *files;
	size_t n_files;     /* at least 1 */
	const char *output; /* path; "-": standard output */
};

/*
 * Write what the request asks for.  `progress` may be NULL. 0; or negative
 * errno and *err, with nothing or a part written.  Write errors stay in the
 * stream.
 */
int sp_export_write(FILE *out, const struct sp_profile *profile,
		    const struct sp_export_request *request,
		    sp_progress_fn *progress, void *progress_arg,
		    struct sp_error *err);
