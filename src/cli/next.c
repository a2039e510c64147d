/* SPDX-License-Identifier: MIT */
#include "cli/next.h"

#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "report/question.h"
#include "text/lines.h"
#include "text/style.h"
#include "text/text.h"

/* The page has all views, and asks for a file. */
#define EXPORT_HTML "export html"

#define BEFORE "next: "

/* A heap has grown if that much of its peak is alive at the end; memory is
 * allocated over and over if that many times the peak were. */
#define GROWN_SHARE 0.5
#define CHURN_TIMES 10

static bool begins_with(const char *text, const char *begin)
{
	return strncmp(text, begin, strlen(begin)) == 0;
}

/* Does that option choose what the command shows already? */
static bool is_kept(const char *option, const char *arguments)
{
	static const char *const of_view[] = {"view", "at", "tail", "within"};

	if (strcmp(arguments, EXPORT_HTML) == 0)
		return sp_options_are(&sp_options_symbols, option);
	for (size_t i = 0; i < sizeof(of_view) / sizeof(*of_view); i++)
		if (begins_with(arguments, "--view") &&
		    strcmp(option, of_view[i]) == 0)
			return false;
	return true;
}

static void print_given(FILE *out, const struct sp_options *options,
			const char *arguments)
{
	for (size_t i = 0; i < options->n_given; i++) {
		const struct sp_options_given *given = &options->given[i];

		if (!is_kept(given->argument->name, arguments))
			continue;
		fprintf(out, " --%s", given->argument->name);
		if (!given->value)
			continue;
		putc(' ', out);
		sp_text_print_shell(out, given->value);
	}
}

/* "app.sprof" -> "app.html", in the present directory. */
static void print_page_name(FILE *out, const char *path)
{
	const char *name = sp_text_base_name(path);
	const char *end = strstr(name, ".sprof");
	char page[256];

	snprintf(page, sizeof(page), "%.*s.html",
		 end ? (int)(end - name) : (int)strlen(name), name);
	fputs(" -o ", out);
	sp_text_print_shell_path(out, page);
}

static void print_command(FILE *out, const struct sp_options *options,
			  const struct sp_profile *profile,
			  const char *arguments)
{
	sp_text_print_shell(out, options->program);
	/* sampleprof has no command unless it is given. */
	if (!sp_command_implied(sp_command_program(options->program)) &&
	    (!*arguments || *arguments == '-'))
		fputs(" report", out);
	fprintf(out, "%s%s", *arguments ? " " : "", arguments);
	print_given(out, options, arguments);
	for (size_t i = 0; i < profile->n_parts; i++) {
		putc(' ', out);
		sp_text_print_shell_path(out, profile->parts[i].path);
	}
	if (strcmp(arguments, EXPORT_HTML) == 0)
		print_page_name(out, profile->parts[0].path);
}

/* NULL without memory. */
static char *command_text(const struct sp_options *options,
			  const struct sp_profile *profile,
			  const char *arguments)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	print_command(out, options, profile, arguments);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

void sp_next_print(FILE *out, const struct sp_options *options,
		   const struct sp_profile *profile, const struct sp_next *next,
		   size_t n)
{
	for (size_t i = 0; i < n && !options->no_next; i++) {
		char *text = command_text(options, profile, next[i].arguments);

		if (!text)
			return;
		fprintf(out, "%*s", (int)strlen(BEFORE), i ? "" : BEFORE);
		sp_lines_print_command(out, strlen(BEFORE), text, next[i].why);
		free(text);
	}
}

/* A heap that is gone at the end can still have been too large before. */
static size_t propose_views(const struct sp_analysis *a,
			    struct sp_next *ret_next)
{
	const double live = sp_estimate_bytes_value(&a->how, &a->live->all);
	const double peak = a->peak.bytes.value;
	const bool is_churn =
		(double)a->profile->exact_alloc_bytes >= CHURN_TIMES * peak;
	size_t n = 0;

	/* Where little is alive at any time, a sample or two of it may well
	 * stay. */
	if (live >= GROWN_SHARE * peak &&
	    (!is_churn || a->live->all.all.samples > SP_TEXT_FEW_SAMPLES)) {
		ret_next[n++] =
			(struct sp_next){"--view live", "what is alive"};
		return n;
	}
	if (is_churn)
		ret_next[n++] = (struct sp_next){"--view temporary",
						 "what is freed at once"};
	if (!n || a->peak.samples > SP_TEXT_FEW_SAMPLES)
		ret_next[n++] = (struct sp_next){"--view peak",
						 "what the peak is made of"};
	return n;
}

size_t sp_next_after_report(const struct sp_options *options,
			    const struct sp_analysis *analysis,
			    struct sp_next *ret_next)
{
	const bool is_alloc = analysis->selection.view == SP_VIEW_ALLOC;
	size_t n = 0;

	if (is_alloc && analysis->live && !options->has_stacks)
		n = propose_views(analysis, ret_next);
	else if (!options->has_stacks)
		ret_next[n++] = (struct sp_next){"--stacks 5", "call stacks"};
	ret_next[n++] = (struct sp_next){"tree", "who calls them"};
	ret_next[n++] = (struct sp_next){EXPORT_HTML, "flame graph, timeline"};
	return n;
}
