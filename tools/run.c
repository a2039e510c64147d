/* SPDX-License-Identifier: MIT */
/* sampleprof run: a program under the library, and what was recorded. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/brought.h"
#include "base/clock.h"
#include "base/parse.h"
#include "control/death.h"
#include "control/files.h"
#include "control/launch.h"
#include "control/target.h"
#include "model/profile.h"
#include "report/analysis.h"
#include "text/figures.h"
#include "text/lack.h"
#include "text/text.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/names.h"
#include "tools/recordings.h"
#include "tools/run_files.h"
#include "tools/run_ledger.h"
#include "tools/run_options.h"

#define PROGRAM "sampleprof"

/* As env(1) and nohup(1) have them. */
enum {
	EXIT_CANNOT_RUN = 126,
	EXIT_NOT_FOUND = 127,
};

/* Of the value of SAMPLEPROF_RUN, with the 0 behind it. */
#define RUN_BYTES 33

/* Processes that the summary names. */
#define LARGEST 3

/* A build of many files leaves thousands of profiles, and each takes some
 * tenths of a second: the largest are those that are read.  Others have names
 * if this is the last moment for them. */
#define SYMBOLIZED_MAX 16u

static int preload_library(struct sp_error *err)
{
	const char *before = getenv("LD_PRELOAD");
	char library[SP_LAUNCH_PATH_MAX], *all;
	int r = sp_launch_library(library, err);

	if (r < 0)
		return r;
	/* In front: what follows is the allocator below, if it is one. */
	if (asprintf(&all, "%s%s%s", library, before && *before ? ":" : "",
		     before ? before : "") < 0)
		return sp_error_memory(err, NULL);
	if (setenv("LD_PRELOAD", all, 1) != 0)
		r = sp_error_memory(err, NULL);
	free(all);
	return r;
}

static void print_brought(const struct sp_profile *p)
{
	if (!p->brought)
		return;
	fputs(PROGRAM ": note: this program brings its own allocator (",
	      stderr);
	sp_text_print(stderr, p->brought);
	fputs("),\n" PROGRAM ": " SP_BROUGHT_ADVICE "\n", stderr);
}

static void print_live(const struct sp_analysis *a, bool is_turned)
{
	fputs("\n" PROGRAM ": peak ", stderr);
	if (!isfinite(a->peak.bytes.hi)) {
		fputs(sp_text_interval(a->peak.bytes).text, stderr);
	} else {
		fputs(is_turned ? "at least " : "", stderr);
		sp_text_print_estimate(stderr, a->peak.bytes, a->peak.samples,
				       a->how.confidence);
	}
	fputs("\n" PROGRAM ": alive at the end ", stderr);
	sp_text_print_estimate(stderr,
			       sp_estimate_bytes(&a->how, &a->live->all),
			       a->live->all.all.samples, a->how.confidence);
	putc('\n', stderr);
}

static void print_figures(const struct sp_analysis *a, const char *program)
{
	const struct sp_profile *p = a->profile;
	const bool is_exact = sp_profile_is_exact(p);
	const uint64_t samples = sp_profile_samples(p);
	const struct sp_whole whole = sp_whole_of(p);

	fputs(PROGRAM ": ", stderr);
	if (program) {
		sp_text_print(stderr, program);
		fputs(": ", stderr);
	}
	if (p->has_unseen && !p->exact_alloc_objects) {
		fputs("no allocation was seen\n", stderr);
		print_brought(p);
		return;
	}
	fprintf(stderr, "%s in %s allocation%s%s; %s sample%s",
		sp_figure_counted(p->exact_alloc_bytes, is_exact).text,
		sp_text_count(p->exact_alloc_objects).text,
		sp_text_plural(p->exact_alloc_objects),
		is_exact ? ", exact" : "", sp_text_count(samples).text,
		sp_text_plural(samples));
	if (sp_profile_off_bytes(p))
		fprintf(stderr,
			"\n" PROGRAM ": sampling was off while %s of that were "
			"allocated",
			sp_text_bytes((double)sp_profile_off_bytes(p)).text);
	if (p->discarded_bytes)
		fprintf(stderr,
			"\n" PROGRAM ": samples of %s of that were discarded, "
			"since the file was full",
			sp_text_bytes((double)p->discarded_bytes).text);
	if (!sp_whole_is_all(&whole)) {
		fputs("\n" PROGRAM ": ", stderr);
		sp_lack_print(stderr, &whole);
	}
	if (sp_profile_off_bytes(p) && !samples) {
		fputs("\n" PROGRAM ": `" PROGRAM " ctl PID start` starts it\n",
		      stderr);
		return;
	}
	if (!a->live) {
		fputs("\n" PROGRAM
		      ": live bytes are not known (SAMPLEPROF_FREES=off)\n",
		      stderr);
		return;
	}
	print_live(a, whole.is_turned);
	print_brought(p);
}

static void print_largest(const struct recordings *all)
{
	if (all->n == 1)
		return;
	fprintf(stderr, PROGRAM ": %zu processes were recorded; the largest:\n",
		all->n);
	for (size_t i = 0; i < all->n && i < LARGEST; i++) {
		const struct recording *r = &all->list[i];

		fprintf(stderr, PROGRAM ": %12s  ",
			sp_figure_total(r->alloc_bytes, r->is_exact).text);
		sp_text_print(stderr, r->program);
		fputs("  ", stderr);
		sp_text_print(stderr, r->path);
		putc('\n', stderr);
	}
}

static void print_next(const struct recordings *all, const char *dir)
{
	fputs(PROGRAM ": next: " PROGRAM " report ", stderr);
	sp_text_print_shell_path(stderr, all->list[0].path);
	if (all->n > LARGEST) {
		fputs("\n" PROGRAM ": all of them: " PROGRAM " ls ", stderr);
		sp_text_print_shell_path(stderr, *dir ? dir : ".");
	}
	putc('\n', stderr);
}

/* Of the process that allocated most. */
static int summarize_recordings(const struct recordings *all, const char *dir,
				bool has_ledger)
{
	const struct recording *most = &all->list[0];
	struct sp_analysis *analysis;
	struct sp_profile *profile;
	struct sp_error err;
	int r = recordings_analyse(most->path, &profile, &analysis, &err);

	if (r < 0)
		return sp_console_fail_with(&err);
	print_largest(all);
	print_figures(analysis, all->n > 1 ? most->program : NULL);
	print_next(all, dir);
	if (has_ledger)
		run_ledger_print(profile);
	sp_analysis_free(analysis);
	sp_profile_free(profile);
	return 0;
}

/* ---- names ---- */

/* May the file be replaced?  Its process is `ours`, or has said its last word,
 * or nobody has it mapped. */
static bool is_over(const struct recording *r, pid_t ours)
{
	return r->end == SP_PROFILE_END_CLEAN ||
	       r->end == SP_PROFILE_END_EXEC || r->pid == (uint64_t)ours ||
	       !sp_target_is_written(r->path);
}

/*
 * Names go into the files while the programs are as they ran: a rebuild,
 * another machine or the end of a container would lose them.
 */
static void add_symbols(const struct recordings *all, pid_t ours, bool is_quiet,
			struct sp_kept *kept)
{
	struct names names;
	bool is_fine = names_begin(&names, kept, NAMES_WITHIN_NS);
	const size_t n_lost = kept ? sp_kept_left_out(kept) : 0;

	for (size_t i = 0; is_fine && i < all->n; i++)
		if ((i < SYMBOLIZED_MAX ||
		     names_are_last(&names, all->list[i].program)) &&
		    is_over(&all->list[i], ours))
			is_fine = names_add(&names, all->list[i].path);
	names_end(&names);
	if (is_fine && all->n > SYMBOLIZED_MAX && !is_quiet)
		fprintf(stderr,
			PROGRAM ": the %u largest have names; for another: "
				"sampleprof symbolize FILE -o FILE\n",
			SYMBOLIZED_MAX);
	if (n_lost && !is_quiet)
		fprintf(stderr,
			PROGRAM ": %zu mapped file%s gone without names: too "
				"few descriptors (ulimit -n), memory or time "
				"to keep %s\n",
			n_lost, n_lost == 1 ? " is" : "s are",
			n_lost == 1 ? "it" : "them");
}

/* End as the program did. */
static int end_as(int status)
{
	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	signal(WTERMSIG(status), SIG_DFL);
	/* The program has left the core, if anybody. */
	fflush(NULL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

static int fail_run(const struct sp_error *err, int r)
{
	sp_console_fail_with(err);
	return r == -ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

/* The samples are for probes alone. */
static bool wants_no_file(void)
{
	const char *out = getenv("SAMPLEPROF_OUT");

	return out && strcmp(out, "none") == 0;
}

static bool is_drawn_by_chance(void)
{
	const char *text = getenv("SAMPLEPROF_FRACTION");
	uint64_t millionths;

	return text && sp_parse_fraction(text, &millionths) &&
	       millionths < SP_PARSE_FRACTION_ALL;
}

static void say_no_profile(void)
{
	const char *log = getenv("SAMPLEPROF_LOG");

	fputs(PROGRAM ": no profile", stderr);
	if (is_drawn_by_chance())
		fputs(": SAMPLEPROF_FRACTION did not draw the program\n",
		      stderr);
	else if (log && strcmp(log, "quiet") == 0)
		fputs(" of the program was found: without SAMPLEPROF_LOG=quiet "
		      "the library says why\n",
		      stderr);
	else
		fputs(" of the program was found\n", stderr);
}

/* How the program ended that we waited for, as far as its own file does not say
 * it: in the file, before anybody reads that. */
static void store_end(const struct recordings *all, pid_t pid, uint64_t kind)
{
	struct sp_error err;

	for (size_t i = 0; i < all->n; i++)
		if (all->list[i].pid == (uint64_t)pid &&
		    all->list[i].end == SP_PROFILE_END_KILLED &&
		    sp_death_store(all->list[i].path, pid, kind, &err) < 0)
			sp_console_fail_with(&err);
}

/* What the program and its children have left. */
static void take_stock(const struct run_options *o, const char *run,
		       uint64_t since, pid_t pid, uint64_t end_kind,
		       struct sp_kept *kept)
{
	char dir[SP_LAUNCH_PATH_MAX];
	struct recordings all;
	struct sp_error err;

	if (wants_no_file())
		return;
	if (!sp_files_directory(getenv("SAMPLEPROF_OUT"), dir)) {
		if (!o->quiet)
			fputs(PROGRAM ": the profiles are where --out says; "
				      "next: " PROGRAM " report FILE\n",
			      stderr);
		return;
	}
	if (recordings_find(dir, since, run, &all, &err) < 0) {
		sp_console_fail_with(&err);
		return;
	}
	if (all.n)
		qsort(all.list, all.n, sizeof(*all.list), recordings_by_bytes);
	if (!all.n && !o->quiet)
		say_no_profile();
	store_end(&all, pid, end_kind);
	if (all.n && !o->quiet)
		summarize_recordings(&all, dir, o->rss);
	if (all.n && !o->no_symbols)
		add_symbols(&all, pid, o->quiet, kept);
	recordings_free(&all);
}

/* A name for this run: no other process has it. */
static bool name_run(char run[RUN_BYTES], uint64_t since)
{
	snprintf(run, RUN_BYTES, "%ld-%" PRIx64, (long)getpid(), since);
	return setenv("SAMPLEPROF_RUN", run, 1) == 0;
}

/* The shell says which signal, but not who sent it. */
static void print_kill(uint64_t kind, bool is_known, bool is_elsewhere)
{
	if (kind == SP_END_NO_MEMORY)
		fputs(PROGRAM ": the kernel's OOM killer killed the program\n",
		      stderr);
	else if (kind == SP_END_SIGNAL + SIGKILL && is_known)
		fprintf(stderr,
			PROGRAM ": SIGKILL came from another process, %s\n",
			is_elsewhere ? "or from the OOM killer, which killed "
				       "a process of another control group"
				     : "not from the OOM killer");
}

static int run_program(char **argv, const struct run_options *o)
{
	char path[SP_LAUNCH_PATH_MAX], run[RUN_BYTES];
	const char *before = getenv("LD_PRELOAD");
	const uint64_t since = sp_clock_unix_ns();
	uint64_t kind;
	struct sp_death_kills kills;
	bool is_elsewhere;
	struct run_files files = {.kept = NULL};
	struct run_ledger ledger;
	struct sp_error err;
	int r, status = 0;
	pid_t pid = 0;

	r = sp_launch_check(argv, path, &err);
	if (r < 0)
		return fail_run(&err, r);
	if (!wants_no_file() &&
	    sp_files_check(getenv("SAMPLEPROF_OUT"), &err) < 0)
		return fail_run(&err, -ENOEXEC);
	if (o->python && !o->quiet)
		fputs(PROGRAM ": PYTHONMALLOC=malloc is set for the program\n",
		      stderr);
	if (!name_run(run, since))
		return sp_console_fail("not enough memory");
	before = before ? strdup(before) : NULL;
	if (preload_library(&err) < 0)
		/* The process ends.
		 * NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
		return fail_run(&err, -ENOEXEC);
	if (o->rss && run_ledger_begin(&ledger, run, &err) < 0)
		return fail_run(&err, -ENOEXEC);
	sp_death_count_kills(&kills);
	if (!o->no_symbols && !wants_no_file())
		run_files_begin(&files, path, run);
	r = sp_launch_run(argv, &pid, &status, &err);
	run_files_end(&files);
	if (o->rss)
		run_ledger_end(&ledger);
	if (r < 0)
		return fail_run(&err, r);
	kind = sp_death_kind(status, &kills, &is_elsewhere);
	if (!o->quiet)
		print_kill(kind, kills.is_known, is_elsewhere);
	/* What runs from here on is not to be recorded. */
	if (before)
		setenv("LD_PRELOAD", before, 1);
	else
		unsetenv("LD_PRELOAD");
	take_stock(o, run, since, pid, kind, files.kept);
	run_files_free(&files);
	return end_as(status);
}

int run_run(int argc, char **argv)
{
	struct run_options options = {0};
	const char *const *words;
	size_t n;
	int code;

	code = sp_console_parse(&run_line, "run", argc, argv, &options, &words,
				&n);
	if (code >= 0)
		return code;
	if (!n)
		return sp_console_fail_usage("run needs a program", "run");
	options.rss |= options.rss_at_peak;
	code = run_options_read_period(&options);
	if (!code)
		code = run_options_export_labels(&options);
	if (code)
		return code;
	if (!run_options_export(&options))
		return sp_console_fail("not enough memory");
	return run_program(argv + argc - n, &options);
}
