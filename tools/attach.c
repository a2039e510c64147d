/* SPDX-License-Identifier: MIT */
/* sampleprof attach and detach: the profile of a process that already runs. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "control/attach.h"
#include "base/brought.h"
#include "base/parse.h"
#include "control/brought.h"
#include "control/kept.h"
#include "control/target.h"
#include "text/text.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/names.h"
#include "tools/sampling_options.h"

#define SETTINGS_MAX 60
#define POLL_NS      100000000 /* for the end of the process */
#define POLLS_A_LOOK 10        /* at the files that it has mapped */

/* The default of --out if the process sees other files than this command. */
#define ELSEWHERE "/tmp/%e.%p.sprof"

/* A text is NULL if its option is not given; then the environment decides. */
struct attach_options {
	struct sampling_options sampling;
	const char *out;
	const char *follow;
	uint64_t for_ns; /* 0: until detach, or the end of the process */
	bool before;     /* ask glibc even if its heap is large */
	bool no_symbols; /* add no names when it detaches */
};

static bool take_follow(void *part, const char *text)
{
	struct attach_options *o = part;

	o->follow = text;
	return strcmp(text, "all") == 0 || strcmp(text, "none") == 0;
}

static bool take_for(void *part, const char *text)
{
	struct attach_options *o = part;

	return sp_parse_duration(text, &o->for_ns) && o->for_ns;
}

static const struct sp_argument arguments[] = {
	{"out", 0, "FILE", "a path", sp_argument_text,
	 offsetof(struct attach_options, out),
	 "profile, or a directory that is there; the process, with\n"
	 "the rights of its user, creates the file (default\n"
	 "%e.%p.sprof; in the /tmp of the process if it sees other\n"
	 "files than this command)"},
	{"follow", 0, "all|none", "all or none", take_follow, 0,
	 "whether child processes are recorded, too, until they\n"
	 "execute another program (default all)"},
	{"for", 0, "TIME", "a time such as 30s", take_for, 0,
	 "detach after that time, or when interrupted"},
	SP_ARGUMENT_FLAG(
		struct attach_options, "before", before,
		"ask glibc's malloc how many bytes are live already,\n"
		"even if its heap has more than 128 MiB: no thread can\n"
		"allocate while glibc walks its free blocks, 0.4 s for a\n"
		"million"),
	SP_ARGUMENT_FLAG(
		struct attach_options, "no-symbols", no_symbols,
		"with --for: do not put the names of functions into the\n"
		"profile at the end"),
	{0},
};

static const struct sp_argument_group group = {NULL, arguments,
					       sampling_follow};

const struct sp_command_line attach_line = {
	.forms = "attach [OPTION]... PID...",
	.brief = "Profile processes that already run, from now on. A thread of "
		 "each is stopped for\n"
		 "some milliseconds; they have to use glibc.\n"
		 "\n"
		 "  --period SIZE      mean bytes between two samples (default "
		 "512K)\n"
		 "  --out FILE         profile, or a directory that is there; "
		 "the process\n"
		 "                     creates the file (default %e.%p.sprof)\n"
		 "  --follow all|none  whether child processes are recorded, "
		 "too (default all)\n"
		 "  --for TIME         detach after that time, or when "
		 "interrupted\n"
		 "  --help-all         all options\n"
		 "\n"
		 "Exit status: 0 fine, 1 a process cannot be attached to, 2 "
		 "usage.\n",
	.about = "Profile processes that already run, and were not started "
		 "under the\nprofiler: load the library into each, and count "
		 "and sample what it allocates\nfrom now on. One of its "
		 "threads is stopped for some milliseconds; the process\nhas "
		 "to use glibc. Of several processes those that cannot be\n"
		 "attached to are named, and the others are recorded.\n",
	.parts =
		(const struct sp_argument_part[]){
			SP_ARGUMENT_PART(struct attach_options, sampling_group,
					 sampling),
			{&group, 0},
			{&sp_arguments_about, 0},
			{0}},
	.ending = "Exit status: 0 fine, 1 a process cannot be attached to, 2 "
		  "usage.\n",
};

struct detach_options {
	bool no_symbols;
};

static const struct sp_argument detach_arguments[] = {
	SP_ARGUMENT_FLAG(struct detach_options, "no-symbols", no_symbols,
			 "do not put the names of functions into the profile"),
	{0},
};

static const struct sp_argument_group detach_group = {"Options",
						      detach_arguments, NULL};

const struct sp_command_line detach_line = {
	.forms = "detach PID",
	.about = "End the profile that attach began, and put the names of "
		 "functions into it. The\nprocess calls its allocator directly "
		 "again; the library stays loaded, but is\nnot called any "
		 "more.\n",
	.parts = (const struct sp_argument_part[]){{&detach_group, 0},
						   {&sp_arguments_about, 0},
						   {0}},
	.ending = "Exit status: 0 fine, 1 error, 2 usage.\n",
};

/* ---- settings ---- */

struct settings {
	char *texts[SETTINGS_MAX];
	size_t n;
};

static bool add_setting(struct settings *s, const char *name, const char *value)
{
	if (s->n == SETTINGS_MAX ||
	    asprintf(&s->texts[s->n], "SAMPLEPROF_%s=%s", name, value) < 0)
		return false;
	s->n++;
	return true;
}

static void free_settings(struct settings *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->texts[i]);
}

/* The process gets the settings of our environment, except those that this
 * command sets itself or that make no sense there. */
static bool add_environment(struct settings *s)
{
	static const char *const own[] = {"OUT=", "LOG=", "HELP=", "RUN="};
	const size_t prefix = strlen("SAMPLEPROF_");

	for (char **e = environ; *e; e++) {
		bool is_own = strncmp(*e, "SAMPLEPROF_", prefix) != 0;

		for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
			is_own |= strncmp(*e + prefix, own[i],
					  strlen(own[i])) == 0;
		if (is_own)
			continue;
		if (s->n == SETTINGS_MAX || !(s->texts[s->n] = strdup(*e)))
			return false;
		s->n++;
	}
	return true;
}

/* A relative path becomes absolute: it means our directory, and the process may
 * have another one. */
static bool add_out(struct settings *s, const char *out)
{
	char path[2 * SP_TARGET_PATH_MAX] = "", *cwd;
	size_t at = 0;
	bool ok;

	if (*out == '/')
		return add_setting(s, "OUT", out);
	cwd = getcwd(NULL, 0);
	/* A percent sign in the directory's name is not a conversion. */
	for (const char *p = cwd; p && *p && at + 3 < sizeof(path); p++) {
		if (*p == '%')
			path[at++] = '%';
		path[at++] = *p;
	}
	free(cwd);
	ok = at && snprintf(path + at, sizeof(path) - at, "/%s", out) <
			   (int)(sizeof(path) - at);
	return ok && add_setting(s, "OUT", path);
}

static int collect_settings(uint64_t pid, const struct attach_options *o,
			    struct settings *s, struct sp_error *err)
{
	const char *out = o->out ? o->out : getenv("SAMPLEPROF_OUT");
	const int is_near = sp_attach_sees_our_files(pid, err);

	if (is_near < 0)
		return is_near;
	if (out && !*out)
		out = NULL; /* an empty setting is the default */
	if (out && *out != '/' && !is_near)
		return sp_error_set(err, -EINVAL, NULL,
				    "process %" PRIu64 " sees other files than "
				    "this command: --out needs a path as the "
				    "process sees it, beginning with /",
				    pid);
	if (!out)
		out = is_near ? "%e.%p.sprof" : ELSEWHERE;
	if (add_environment(s) && add_out(s, out) &&
	    (!o->sampling.period ||
	     add_setting(s, "PERIOD", o->sampling.period)) &&
	    (!o->sampling.rate || add_setting(s, "RATE", o->sampling.rate)) &&
	    (!o->follow || add_setting(s, "FOLLOW", o->follow)) &&
	    add_setting(s, "LOG", "quiet"))
		return 0;
	return sp_error_set(err, -ENOMEM, NULL, "out of memory");
}

/* ---- attach ---- */

static volatile sig_atomic_t interrupted;

static void note_interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

/* A process that is recorded. */
struct attached {
	uint64_t pid;
	char path[SP_TARGET_PATH_MAX]; /* of its profile; "": not known */
	struct sp_kept *kept;          /* NULL: the profile gets no names */
};

static bool is_there(uint64_t pid)
{
	return kill((pid_t)pid, 0) == 0;
}

static bool is_any_there(const struct attached *all, size_t n)
{
	while (n)
		if (is_there(all[--n].pid))
			return true;
	return false;
}

static void look_at_files(const struct attached *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (all[i].kept && is_there(all[i].pid))
			sp_kept_look(all[i].kept, all[i].pid);
}

/* Wait until the time is over, a signal interrupts us, or all have ended. */
static void wait_for_end(const struct attached *all, size_t n, uint64_t for_ns)
{
	const struct sigaction action = {.sa_handler = note_interrupt};
	uint64_t left = for_ns;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	for (unsigned int i = 1; left && !interrupted && is_any_there(all, n);
	     i++) {
		const uint64_t ns = left < POLL_NS ? left : POLL_NS;
		const struct timespec nap = {0, (long)ns};

		nanosleep(&nap, NULL);
		left -= ns;
		if (i % POLLS_A_LOOK == 0)
			look_at_files(all, n);
	}
}

/* Mapped files are found although they are gone, or in another root. */
static void add_names(char *path, struct sp_kept *kept)
{
	struct names names = {.command = NULL};

	/* There is none if the profile was deleted, or had ended before. */
	if (*path && names_begin(&names, kept, NAMES_WITHIN_NS))
		names_add(&names, path);
	names_end(&names);
}

static int detach_process(struct attached *at)
{
	struct sp_attach_done done;
	struct sp_error err;
	int r;

	look_at_files(at, 1);
	r = sp_attach_end(at->pid, &done, &err);
	if ((r >= 0 || done.is_complete) && at->kept)
		add_names(at->path, at->kept);
	if (r < 0)
		return sp_console_fail_with(&err);
	printf("process %" PRIu64 " is not recorded any more\n", at->pid);
	if (*at->path) {
		fputs("next: sampleprof report ", stdout);
		sp_text_print_shell(stdout, at->path);
		putchar('\n');
	}
	return sp_console_finish();
}

/* The path of the profile that the process writes; "": it writes none. */
static void find_profile(uint64_t pid, char path[SP_TARGET_PATH_MAX])
{
	struct sp_target target;

	if (sp_target_open(&target, pid, NULL) < 0)
		target.path[0] = '\0';
	snprintf(path, SP_TARGET_PATH_MAX, "%s", target.path);
	sp_target_close(&target);
}

static int fail_recorded(uint64_t pid, const char *path)
{
	struct sp_error err;

	sp_error_set(&err, -EEXIST, path,
		     "is the profile of process %" PRIu64 ", which is being "
		     "recorded already: sampleprof ctl %" PRIu64 " status",
		     pid, pid);
	return sp_console_fail_with(&err);
}

/* The report cannot say why it does not know the bytes from before. */
static void print_before(const struct sp_attach_done *done)
{
	if (done->before == SP_ATTACH_BEFORE_LARGE)
		printf("live bytes from before are not known: the heap has %s, "
		       "and no\n"
		       "thread could allocate while glibc counts them "
		       "(--before counts them)\n",
		       sp_text_bytes((double)done->heap_bytes).text);
	else if (done->before == SP_ATTACH_BEFORE_BUSY)
		puts("live bytes from before are not known: other threads "
		     "held the allocator's locks");
}

/* Of a process that is another one by now, nothing can be found. */
static void print_recorded(uint64_t pid, const char *path)
{
	if (*path) {
		printf("process %" PRIu64 " is recorded into ", pid);
		sp_text_print(stdout, path);
		putchar('\n');
	} else {
		printf("process %" PRIu64
		       " was recorded, and has just ended or "
		       "executed another program:\n"
		       "its profile has the name that --out gives\n",
		       pid);
	}
}

static void print_brought(uint64_t pid)
{
	char what[SP_BROUGHT_TEXT];

	if (!sp_brought_by_process(pid, what))
		return;
	fputs("note: this program brings its own allocator (", stdout);
	sp_text_print(stdout, what);
	fputs("),\n" SP_BROUGHT_ADVICE "\n", stdout);
}

static int attach_process(struct attached *at, const struct attach_options *o)
{
	const uint64_t pid = at->pid;
	struct settings settings = {.n = 0};
	struct sp_attach_done done = {0};
	struct sp_error err;
	int r;

	find_profile(pid, at->path);
	if (*at->path)
		return fail_recorded(pid, at->path);
	r = collect_settings(pid, o, &settings, &err);
	if (r == 0)
		r = sp_attach_begin(pid, (const char *const *)settings.texts,
				    settings.n, o->before, &done, &err);
	free_settings(&settings);
	find_profile(pid, at->path);
	/* cppcheck-suppress identicalConditionAfterEarlyExit ; read anew */
	if (r == -EALREADY && *at->path)
		err.file = at->path;
	if (r < 0)
		return sp_console_fail_with(&err);
	if (o->for_ns && !o->no_symbols)
		at->kept = sp_kept_new();
	look_at_files(at, 1);
	print_recorded(pid, at->path);
	printf("thread %" PRIu64 " was stopped for %s\n", done.thread,
	       sp_text_duration(done.stopped_ns).text);
	print_before(&done);
	print_brought(pid);
	return sp_console_finish();
}

static int worse(int a, int b)
{
	return a > b ? a : b;
}

/* After --for. */
static int end_processes(struct attached *all, size_t n,
			 const struct attach_options *o)
{
	int code = EXIT_FINE;

	fflush(stdout);
	wait_for_end(all, n, o->for_ns);
	for (size_t i = 0; i < n; i++) {
		if (is_there(all[i].pid)) {
			code = worse(code, detach_process(&all[i]));
		} else {
			if (n == 1)
				puts("the process has ended");
			else
				printf("process %" PRIu64 " has ended\n",
				       all[i].pid);
			/* Which may have gone with the disks of the process. */
			if (all[i].kept && access(all[i].path, F_OK) == 0)
				add_names(all[i].path, all[i].kept);
		}
		sp_kept_free(all[i].kept);
	}
	return worse(code, sp_console_finish());
}

/* The others are recorded even if one cannot be. */
static int attach_processes(const uint64_t *pids, size_t n,
			    const struct attach_options *o)
{
	struct attached *all = calloc(n, sizeof(*all));
	size_t n_recorded = 0;
	int code = EXIT_FINE;

	if (!all)
		return sp_console_fail("not enough memory");
	for (size_t i = 0; i < n; i++) {
		int r;

		all[n_recorded].pid = pids[i];
		r = attach_process(&all[n_recorded], o);
		n_recorded += r == EXIT_FINE;
		code = worse(code, r);
	}
	if (n > 1)
		printf("%zu of %zu processes are recorded\n", n_recorded, n);
	if (o->for_ns && n_recorded)
		code = worse(code, end_processes(all, n_recorded, o));
	free(all);
	return worse(code, sp_console_finish());
}

/* Would all write to one file? */
static bool is_one_file(const struct attach_options *o)
{
	const char *out = o->out ? o->out : getenv("SAMPLEPROF_OUT");
	const size_t n = out ? strlen(out) : 0;
	struct stat st;

	return n && out[n - 1] != '/' && !strstr(out, "%p") &&
	       strcmp(out, "none") != 0 &&
	       !(stat(out, &st) == 0 && S_ISDIR(st.st_mode));
}

static bool take_pid_of(const char *word, uint64_t *ret)
{
	return sp_parse_u64(word, ret) && *ret && *ret <= INT32_MAX;
}

/* The only word as a process id; 0: an error was printed. */
static uint64_t take_pid(const char *const *words, size_t n,
			 const char *command)
{
	uint64_t pid;
	struct sp_error err;

	if (n == 1 && take_pid_of(words[0], &pid))
		return pid;
	if (n == 1)
		sp_error_set(&err, -EINVAL, NULL, "not a process id: %.80s",
			     words[0]);
	else
		sp_error_set(&err, -EINVAL, NULL, "%s needs one process id",
			     command);
	sp_console_fail_usage(err.message, command);
	return 0;
}

/* What makes no sense of several processes. */
static int attach_words(const char *const *words, size_t n,
			const struct attach_options *o)
{
	uint64_t *pids = calloc(n, sizeof(*pids));
	struct sp_error err;
	int code;

	if (!pids)
		return sp_console_fail("not enough memory");
	err.message[0] = '\0';
	for (size_t i = 0; i < n && !*err.message; i++)
		if (!take_pid_of(words[i], &pids[i]))
			sp_error_set(&err, -EINVAL, NULL,
				     "not a process id: %.80s", words[i]);
	if (!*err.message && n > 1 && is_one_file(o))
		sp_error_set(&err, -EINVAL, NULL,
			     "--out is one file for %zu processes: it needs "
			     "%%p, or a directory",
			     n);
	code = *err.message ? sp_console_fail_usage(err.message, "attach")
			    : attach_processes(pids, n, o);
	free(pids);
	return code;
}

int run_attach(int argc, char **argv)
{
	struct attach_options options = {.for_ns = 0};
	const char *const *words;
	size_t n;
	int code;

	code = sp_console_parse(&attach_line, "attach", argc, argv, &options,
				&words, &n);
	if (code >= 0)
		return code;
	return n ? attach_words(words, n, &options)
		 : sp_console_fail_usage("attach needs a process id", "attach");
}

int run_detach(int argc, char **argv)
{
	struct detach_options options = {0};
	struct attached at = {.pid = 0};
	const char *const *words;
	size_t n;
	int code;

	code = sp_console_parse(&detach_line, "detach", argc, argv, &options,
				&words, &n);
	if (code >= 0)
		return code;
	at.pid = take_pid(words, n, "detach");
	if (!at.pid)
		return EXIT_USAGE;
	find_profile(at.pid, at.path);
	if (!options.no_symbols)
		at.kept = sp_kept_new();
	code = detach_process(&at);
	sp_kept_free(at.kept);
	return code;
}
