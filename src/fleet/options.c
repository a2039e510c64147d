/* SPDX-License-Identifier: MIT */
#include "fleet/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/labels.h"
#include "base/parse.h"
#include "cli/nearest.h"
#include "fleet/db.h"
#include "fleet/watch.h"

/* ---- values ---- */

bool sp_fleet_parse_time(const char *text, uint64_t *ret_unix_ns)
{
	static const char *const formats[] = {"%Y-%m-%dT%H:%M:%S",
					      "%Y-%m-%dT%H:%M", "%Y-%m-%d"};
	char plain[32];
	const size_t n = strlen(text);

	/* Times are UTC in any case. */
	if (!n || n >= sizeof(plain))
		return false;
	memcpy(plain, text, n + 1);
	if (plain[n - 1] == 'Z')
		plain[n - 1] = '\0';
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		struct tm tm = {.tm_mday = 1};
		const char *end = strptime(plain, formats[i], &tm);
		time_t seconds;

		if (!end || *end || tm.tm_year < 70 || tm.tm_year > 350)
			continue;
		seconds = timegm(&tm);
		if (seconds < 0)
			return false;
		*ret_unix_ns = (uint64_t)seconds * 1000000000u;
		return true;
	}
	return false;
}

static bool take_labels(struct sp_label *list, size_t *n, const char *text)
{
	struct sp_label label;

	if (!*text || sp_labels_check(text))
		return false;
	while (sp_labels_next(&text, &label)) {
		if (*n == SP_FLEET_LABELS_MAX)
			return false;
		list[(*n)++] = label;
	}
	return true;
}

static bool take_label(void *part, const char *text)
{
	struct sp_fleet_options *o = part;

	return take_labels(o->filter.labels, &o->filter.n_labels, text);
}

static bool take_base(void *part, const char *text)
{
	struct sp_fleet_options *o = part;

	return take_labels(o->base, &o->n_base, text);
}

static bool take_time(void *field, const char *text)
{
	return sp_fleet_parse_time(text, field);
}

#define SECOND_NS   1000000000ull
#define POLL_MIN_NS (SECOND_NS / 10)
#define POLL_MAX_NS (24 * 3600 * SECOND_NS)
#define BACKLOG_MIN (1ull << 20)
#define BACKLOG_MAX (1ull << 50)

static bool take_poll(struct sp_fleet_options *o, const char *text,
		      uint64_t *ret_ns)
{
	o->has_watch = true;
	return sp_parse_duration(text, ret_ns) && *ret_ns >= POLL_MIN_NS &&
	       *ret_ns <= POLL_MAX_NS;
}

static bool take_interval(void *part, const char *text)
{
	struct sp_fleet_options *o = part;

	return take_poll(o, text, &o->interval_ns);
}

static bool take_running(void *part, const char *text)
{
	struct sp_fleet_options *o = part;

	if (strcmp(text, "off") != 0)
		return take_poll(o, text, &o->running_ns);
	o->has_watch = true;
	o->running_ns = 0;
	return true;
}

static bool take_backlog(void *part, const char *text)
{
	struct sp_fleet_options *o = part;

	o->has_watch = true;
	return sp_parse_size(text, &o->backlog_bytes) &&
	       o->backlog_bytes >= BACKLOG_MIN &&
	       o->backlog_bytes <= BACKLOG_MAX;
}

#define A_LABEL "KEY=VALUE[,...] of letters, digits and ._-:/@+"
#define A_TIME  "a time (UTC) such as 2026-11-23 or 2026-11-23T04:55"

static const struct sp_argument arguments[] = {
	{"db", 0, "URL", "a URL such as " SP_FLEET_URL, sp_argument_text,
	 offsetof(struct sp_fleet_options, url),
	 "the database: sqlite:PATH (default " SP_FLEET_URL ") or\n"
	 "clickhouse://[USER@]HOST[:PORT]/DATABASE"},
	{"label", 0, "KEY=VALUE", A_LABEL, take_label, 0,
	 "only processes with that label; if several are given\n"
	 "(with commas, or again), with all of them"},
	{"host", 0, "NAME", "the name of a host", sp_argument_text,
	 offsetof(struct sp_fleet_options, filter.host),
	 "only processes of that host"},
	{"from", 0, "TIME", A_TIME, take_time,
	 offsetof(struct sp_fleet_options, filter.from_unix_ns),
	 "what was allocated from then on, by processes that ran\n"
	 "after it (2026-11-23 or 2026-11-23T04:55, UTC)"},
	{"to", 0, "TIME", A_TIME, take_time,
	 offsetof(struct sp_fleet_options, filter.to_unix_ns),
	 "what was allocated before"},
	{"base", 0, "KEY=VALUE", A_LABEL, take_base, 0,
	 "for diff and check: processes with that label are the\n"
	 "old side, those without it the new one"},
	{"interval", 0, "TIME", "a time of 100ms to 24h", take_interval, 0,
	 "for watch: how often it looks at the directory (10s)"},
	{"running", 0, "TIME", "a time of 100ms to 24h, or off", take_running,
	 0,
	 "for watch: how often it sends the state of a running\n"
	 "process (1m); off: only ended processes"},
	{"backlog", 0, "SIZE", "a size from 1M on", take_backlog, 0,
	 "for watch: disk limit of profiles that were deleted\n"
	 "while the database was away (1G)"},
	{0},
};

static const struct sp_argument_group group = {"Options of all of them",
					       arguments, NULL};

/* ---- actions ---- */

static const struct action {
	const char *name;
	enum sp_fleet_action action;
	/* Words for the command, before and after the given ones. */
	const char *before[3];
	const char *behind[3];
} actions[] = {
	{"init", SP_FLEET_INIT, {NULL}, {NULL}},
	{"add", SP_FLEET_ADD, {NULL}, {NULL}},
	{"watch", SP_FLEET_WATCH, {NULL}, {NULL}},
	{"report", SP_FLEET_PAGE, {"report"}, {"fleet"}},
	{"top", SP_FLEET_PAGE, {"top"}, {"fleet"}},
	{"tree", SP_FLEET_PAGE, {"tree"}, {"fleet"}},
	{"peek", SP_FLEET_PAGE, {"peek"}, {"fleet"}},
	{"traces", SP_FLEET_PAGE, {"traces"}, {"fleet"}},
	{"stats", SP_FLEET_PAGE, {"stats"}, {"fleet"}},
	{"live", SP_FLEET_LIVE, {"report", "--view=live"}, {"fleet"}},
	{"export", SP_FLEET_EXPORT, {NULL}, {"fleet"}},
	{"diff", SP_FLEET_DIFF, {NULL}, {"fleet", "fleet"}},
	{"check", SP_FLEET_CHECK, {"--baseline=fleet"}, {"fleet"}},
};

#define N_ACTIONS (sizeof(actions) / sizeof(*actions))

static const char *action_word(size_t i)
{
	return i < N_ACTIONS ? actions[i].name : NULL;
}

const struct sp_command_line sp_fleet_line = {
	.forms = "fleet init [--db URL]\n"
		 "fleet add [--db URL] FILE...\n"
		 "fleet watch [OPTION]... [DIR]\n"
		 "fleet report|top|tree|traces|stats|live [OPTION]...\n"
		 "fleet peek [OPTION]... REGEX\n"
		 "fleet export [OPTION]... FORMAT [-o FILE]\n"
		 "fleet diff [OPTION]... --base KEY=VALUE\n"
		 "fleet check [OPTION]... --base KEY=VALUE --limit LIMIT...",
	.brief = "Put the profiles of many processes into a database, and "
		 "report on them.\n"
		 "\n"
		 "  --db URL           the database: sqlite:PATH (default "
		 "sqlite:fleet.db) or\n"
		 "                     "
		 "clickhouse://[USER@]HOST[:PORT]/DATABASE\n"
		 "  --label KEY=VALUE  only processes with that label, or "
		 "labels\n"
		 "  --from, --to TIME  what was allocated then "
		 "(2026-11-23T04:55, UTC)\n"
		 "  --base KEY=VALUE   for diff and check: processes with that "
		 "label are old\n"
		 "  --help-all         all options\n"
		 "\n"
		 "Other options are those of the command: `sampleprof help "
		 "report`, `export`,\n"
		 "`diff` or `check`.\n",
	.about = "Put the profiles of many processes into a database, and "
		 "report on them together:\n"
		 "by label, host and time, with the options and the intervals "
		 "of report, export,\n"
		 "diff and check. A profile that is added twice counts once.\n",
	.parts = (const struct sp_argument_part[]){{&group, 0},
						   {&sp_arguments_about, 0},
						   {0}},
	.ending = "Other options are those of the command: `sampleprof help "
		  "report`, `export`,\n"
		  "`diff` or `check`. In diff and check a process is a run, so "
		  "that differences\n"
		  "between processes count as noise.\n\n"
		  "Exit status: 0 fine, 1 error, 2 usage; of check also 3 and "
		  "4.\n",
	.listed_word = 1,
	.word = action_word,
};

static const char *list_actions(char *list, size_t room)
{
	size_t used = 0;

	for (size_t i = 0; i < N_ACTIONS && used < room; i++)
		used += (size_t)snprintf(list + used, room - used, "%s%s",
					 i ? ", " : "", actions[i].name);
	return list;
}

static const struct action *find_action(const char *word, struct sp_error *err)
{
	struct sp_nearest nearest;
	char list[160];

	sp_nearest_init(&nearest, word);
	for (size_t i = 0; i < N_ACTIONS; i++) {
		if (strcmp(actions[i].name, word) == 0)
			return &actions[i];
		sp_nearest_try(&nearest, actions[i].name);
	}
	if (sp_nearest_name(&nearest))
		sp_error_set(
			err, -EINVAL, NULL,
			"fleet has no action %.80s: did you mean fleet %s?",
			word, sp_nearest_name(&nearest));
	else
		sp_error_set(err, -EINVAL, NULL,
			     "fleet has no action %.80s: use one of %s", word,
			     list_actions(list, sizeof(list)));
	return NULL;
}

/* ---- whose option is it? ---- */

/* One of these: *ret_takes, whether a value follows as a word of its own. */
static bool is_one(const char *word, const struct sp_argument *a, bool has_base,
		   bool *ret_takes)
{
	if (strncmp(word, "--", 2) != 0)
		return false;
	for (; a->name; a++) {
		const size_t n = strlen(a->name);

		if (strncmp(word + 2, a->name, n) != 0 ||
		    (word[2 + n] && word[2 + n] != '=') ||
		    (strcmp(a->name, "base") == 0 && !has_base))
			continue;
		*ret_takes = a->takes && !word[2 + n];
		return true;
	}
	return false;
}

static bool is_own(const char *word, bool has_base, bool *ret_takes)
{
	return is_one(word, arguments, has_base, ret_takes) ||
	       is_one(word, sp_arguments_about.option, has_base, ret_takes);
}

/* Words of the command line, in two lists. */
struct split {
	char **own, **rest;
	int n_own, n_rest;
};

static void split_words(struct split *to, int argc, char **argv, bool has_base)
{
	bool takes;

	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0) {
			while (i < argc)
				to->rest[to->n_rest++] = argv[i++];
			return;
		}
		if (!is_own(argv[i], has_base, &takes)) {
			to->rest[to->n_rest++] = argv[i];
			continue;
		}
		to->own[to->n_own++] = argv[i];
		if (takes && i + 1 < argc)
			to->own[to->n_own++] = argv[++i];
	}
}

static void put_words(struct split *to, const char *const words[3])
{
	for (size_t i = 0; i < 3 && words[i]; i++)
		to->rest[to->n_rest++] = (char *)(uintptr_t)words[i];
}

static int refuse_options(const struct sp_fleet_options *o,
			  struct sp_error *err)
{
	const struct sp_fleet_filter *f = &o->filter;
	const bool is_filtered = f->n_labels || f->host || f->from_unix_ns ||
				 f->to_unix_ns != INT64_MAX;
	const bool compares =
		o->action == SP_FLEET_DIFF || o->action == SP_FLEET_CHECK;

	if (f->from_unix_ns >= f->to_unix_ns)
		return sp_error_set(err, -EINVAL, NULL,
				    "--from has to be earlier than --to");
	if (compares && !o->n_base)
		return sp_error_set(err, -EINVAL, NULL,
				    "compared with what? --base KEY=VALUE "
				    "chooses the old side");
	if (is_filtered && o->action <= SP_FLEET_WATCH)
		return sp_error_set(
			err, -EINVAL, NULL,
			"init, add and watch do not choose processes: they "
			"cannot be used with --label, --host, --from or --to");
	if (o->has_watch && o->action != SP_FLEET_WATCH)
		return sp_error_set(err, -EINVAL, NULL,
				    "--interval, --running and --backlog are "
				    "of fleet watch");
	return 0;
}

/* `own` and `rest` have room for all words and those of the action. */
static int parse_words(struct sp_fleet_options *ret, struct split *s, int argc,
		       char **argv, struct sp_error *err)
{
	const struct action *action = NULL;
	const char *const *words;
	size_t n;
	int r;

	s->own[s->n_own++] = s->rest[s->n_rest++] = argv[0];
	if (argc > 1 && argv[1][0] != '-') {
		action = find_action(argv[1], err);
		if (!action)
			return -EINVAL;
		ret->action = action->action;
		put_words(s, action->before);
		split_words(s, argc, argv,
			    action->action == SP_FLEET_DIFF ||
				    action->action == SP_FLEET_CHECK);
		put_words(s, action->behind);
	} else if (argc > 1) {
		s->own[s->n_own++] = argv[1];
	}
	r = sp_arguments_parse(&sp_fleet_line, s->n_own, s->own, ret, &words,
			       &n, err);
	if (r)
		return r;
	if (!action)
		return sp_error_set(
			err, -EINVAL, NULL,
			"fleet what? init, add, watch, top, live, tree, "
			"diff, check, export, ...");
	return refuse_options(ret, err);
}

int sp_fleet_options_parse(int argc, char **argv, struct sp_fleet_options *ret,
			   struct sp_error *err)
{
	const size_t room = (size_t)argc + 8;
	struct split s = {.own = calloc(room, sizeof(*s.own)),
			  .rest = calloc(room, sizeof(*s.rest))};
	int r;

	*ret = (struct sp_fleet_options){
		.url = SP_FLEET_URL,
		.filter.to_unix_ns = INT64_MAX,
		.interval_ns = SP_WATCH_INTERVAL_NS,
		.running_ns = SP_WATCH_RUNNING_NS,
		.backlog_bytes = SP_WATCH_BACKLOG_BYTES,
	};
	r = s.own && s.rest ? parse_words(ret, &s, argc, argv, err)
			    : sp_error_memory(err, NULL);
	ret->argc = s.n_rest;
	ret->argv = s.rest;
	free(s.own);
	return r;
}

void sp_fleet_options_done(struct sp_fleet_options *options)
{
	free(options->argv);
	options->argv = NULL;
}
