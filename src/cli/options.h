/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/arguments.h"
#include "report/aggregate.h"
#include "report/load.h"
#include "report/question.h"
#include "symbols/symbolizer.h"
#include "text/text.h"

/* What the report shows. */
enum sp_page {
	SP_PAGE_REPORT, /* functions; call stacks, timeline, sizes if wanted */
	SP_PAGE_TOP,    /* functions that matter */
	SP_PAGE_TREE,   /* callers to callees */
	SP_PAGE_PEEK,   /* callers and callees of some functions */
	SP_PAGE_LIST,   /* source lines of some functions */
	SP_PAGE_TRACES, /* all call stacks */
	SP_PAGE_STATS,  /* sizes, entry points, top sites at a glance */
};

enum sp_row_kind {
	SP_ROWS_BY_CODE, /* functions, or what --granularity says */
	SP_ROWS_BY_THREAD,
	SP_ROWS_BY_SIZE,
	SP_ROWS_BY_PHASE,
};

/* An option as it was given; borrowed. */
struct sp_options_given {
	const struct sp_argument *argument;
	const char *value; /* NULL: it takes none */
};

#define SP_OPTIONS_GIVEN_MAX 32

#define SP_OPTIONS_BASE_MAX 64

/* The command line of the report: what to show, of what, and how. */
struct sp_options {
	const char *program; /* as it was called, for the next command */
	/* Those about samples, estimates and symbols, of which the next command
	 * needs the same; each once. */
	struct sp_options_given given[SP_OPTIONS_GIVEN_MAX];
	size_t n_given;
	enum sp_page page;
	const char *pattern; /* of SP_PAGE_PEEK, SP_PAGE_LIST */
	const char *const *files;
	size_t n_files; /* at least 1 */
	/* --base: what to compare with; several files are added up. */
	const char *base[SP_OPTIONS_BASE_MAX];
	size_t n_base;
	struct sp_question question;
	struct sp_symbolizer_options symbols;
	enum sp_aggregate_order order;
	bool has_top; /* --top was given */
	uint64_t top; /* functions; 0: all */
	bool has_stacks;
	uint64_t stacks; /* call stacks; 0: all */
	bool has_order;
	bool has_granularity;
	enum sp_granularity granularity;
	enum sp_row_kind rows;
	bool has_share;
	double share; /* of the view, 0..1: what has less is not shown */
	enum sp_text_unit unit;
	const char *source_path; /* of SP_PAGE_LIST; NULL: as recorded */
	bool simultaneous;
	bool timeline;
	bool sizes;
	bool json;
	bool json_old; /* in version 1 of the JSON (view/view_json_frames.h) */
	bool csv;
	bool ascii;
	uint64_t watch_ns; /* 0: once */
	bool no_pager;
	/* No next command is proposed: the profile is of no file. */
	bool no_next;
};

/*
 * Parse; argv[0] is the program.  The first word that is no option is the name
 * of a page, or, if it is none of these, the first file.  0 and *ret, which
 * borrows from argv; 1 after --help or --version, when nothing else of *ret
 * counts; -EINVAL and *err, whose message says what is wrong and what would be
 * right.  Options may stand before and after all words.
 */
int sp_options_parse(int argc, char **argv, struct sp_options *ret,
		     struct sp_error *err);

extern const struct sp_command_line sp_report_line;

/* The view if none was asked for: what is alive where that is news, in a
 * process that runs or was killed; for programs always SP_VIEW_ALLOC, so that
 * keys and columns do not change their meaning. */
enum sp_view sp_options_fallback(const struct sp_options *options,
				 const struct sp_profile *profile);

/* What the profile has to be loaded with. */
struct sp_load_needs sp_options_needs(const struct sp_options *options);

/* Options that commands have in common, and the part of theirs that each of
 * the groups fills. */
extern const struct sp_argument_group
	sp_options_question; /* struct sp_question: what to look at */
extern const struct sp_argument_group
	sp_options_filter; /* struct sp_question: of which call stacks */
extern const struct sp_argument_group
	sp_options_method; /* struct sp_question: how to estimate */
extern const struct sp_argument_group
	sp_options_symbols; /* struct sp_symbolizer_options */

extern const struct sp_argument_group
	sp_options_functions; /* struct sp_symbolizer_options: their names, and
			       * which of them bytes are flat for */

/* Those that only the report has; they fill struct sp_options. */
extern const struct sp_argument_group sp_options_report;

/* To be the `take` of an option: the struct sp_moment at the field. */
bool sp_options_take_moment(void *field, const char *text);
/* The same, or the name of a snapshot. */
bool sp_options_take_at(void *field, const char *text);

/* Does the group have an option of that name or letter? */
bool sp_options_are(const struct sp_argument_group *group, const char *name);

/* To be called after the groups of a question were parsed: --at, --tail and
 * --within belong to a view, and choose it if none was chosen; patterns have to
 * be some.  0, or -EINVAL and *err. */
int sp_options_settle(struct sp_question *question, struct sp_error *err);

/* Likewise of sp_options_functions: what --see-through names has to be there.
 */
int sp_options_settle_functions(const struct sp_symbolizer_options *o,
				struct sp_error *err);
