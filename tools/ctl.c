/* SPDX-License-Identifier: MIT */
/* sampleprof ctl: orders to a process that runs under the library, and what is
 * known of it. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/nearest.h"
#include "control/target.h"
#include "model/profile.h"
#include "report/load.h"
#include "report/phases.h"
#include "rss/look.h"
#include "text/figures.h"
#include "text/text.h"
#include "tools/commands.h"
#include "tools/console.h"

#define PROGRAM "sampleprof"

#define DEFAULT_TIMEOUT_NS 5000000000ull
/* Nothing is said of a process that answers within that. */
#define GRACE_NS 200000000ull

static void print_sampling(const struct sp_profile *p)
{
	const struct sp_stretch *last =
		p->n_stretches ? &p->stretches[p->n_stretches - 1] : NULL;
	const uint64_t period = last ? last->period_bytes : p->period_bytes;
	const char *rate = sp_profile_rate(p);

	fputs("\nsampling  ", stdout);
	if (!period) {
		puts("off");
	} else if (!rate) {
		printf("on, period %s\n", sp_text_size(period).text);
	} else {
		printf("on, period up to %s for at most ",
		       sp_text_size(period).text);
		sp_text_print(stdout, rate);
		putchar('\n');
	}
}

static const struct command {
	const char *name;
	enum sp_control_command command;
	bool has_argument;
} commands[] = {
	{"start", SP_CONTROL_START, false},
	{"stop", SP_CONTROL_STOP, false},
	{"period", SP_CONTROL_PERIOD, true},
	{"mark", SP_CONTROL_MARK, true},
	{"snapshot", SP_CONTROL_SNAPSHOT, true},
};

static void print_order(const struct sp_control_order *order)
{
	char name[SP_FORMAT_MARK_NAME_MAX + 1] = "";
	/* Which is not given by this command, but by rss. */
	const char *command = order->command >= SP_CONTROL_MEMORY &&
					      order->command <= SP_CONTROL_SLABS
				      ? "rss"
				      : "?";

	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (commands[i].command == order->command)
			command = commands[i].name;
	memcpy(name, order->name, sizeof(order->name));
	printf("          %" PRIu64 " waits: %s", order->number, command);
	if (order->command == SP_CONTROL_PERIOD)
		printf(" %s", sp_text_size(order->period_bytes).text);
	else if (name[0])
		putchar(' ');
	sp_text_print(stdout, name);
	putchar('\n');
}

static void print_orders(const struct sp_target *target)
{
	struct sp_control orders;
	uint64_t n;

	if (!sp_target_read_orders(target, &orders) || !orders.orders)
		return;
	printf("orders    %s carried out\n", sp_text_count(orders.done).text);
	n = sp_target_waiting(&orders);
	for (uint64_t i = orders.request - n; n; n--)
		print_order(&orders.queue[++i % SP_FORMAT_ORDERS]);
}

static int print_status(struct sp_target *target)
{
	const struct sp_load_needs needs = {
		.no_code = true, .no_stacks = true, .while_written = true};
	const char *path;
	const struct sp_stretch *last;
	struct sp_question question;
	struct sp_profile *p;
	struct sp_error err;

	if (sp_target_read(target, &err) < 0)
		return sp_console_fail_with(&err);
	path = target->file;
	sp_question_init(&question);
	if (sp_load(&path, 1, &question, &needs, NULL, NULL, &p, &err) < 0) {
		err.file = err.file ? target->path : NULL;
		return sp_console_fail_with(&err);
	}
	last = p->n_stretches ? &p->stretches[p->n_stretches - 1] : NULL;
	printf("profile   ");
	sp_text_print(stdout, target->path);
	print_sampling(p);
	printf("phase     ");
	sp_text_print(stdout, sp_phase_name(last ? last->phase : ""));
	printf("\nallocated %s in %s allocations (up to %s more)",
	       sp_figure_counted(p->exact_alloc_bytes, false).text,
	       sp_text_count(p->exact_alloc_objects).text,
	       sp_text_bytes_beyond((double)p->missing_bytes_max, true).text);
	if (sp_profile_off_bytes(p))
		printf(", %s of it unsampled",
		       sp_text_bytes((double)sp_profile_off_bytes(p)).text);
	printf("\nsamples   %s, %s thread%s\n",
	       sp_text_count(sp_profile_samples(p)).text,
	       sp_text_count(p->threads).text, sp_text_plural(p->threads));
	sp_profile_free(p);
	print_orders(target);
	return EXIT_FINE;
}

/* What is wrong, at which word. */
static int fail_at(const char *what, const char *word)
{
	char error[256];

	snprintf(error, sizeof(error), "%s: %.120s", what, word);
	return sp_console_fail_usage(error, "ctl");
}

static const char *command_word(size_t i)
{
	const size_t n = sizeof(commands) / sizeof(*commands);

	return i < n ? commands[i].name : i == n ? "status" : NULL;
}

static bool is_command(const char *text)
{
	const char *word;

	for (size_t i = 0; (word = command_word(i)); i++)
		if (strcmp(text, word) == 0)
			return true;
	return false;
}

static int fail_unknown(const char *word)
{
	struct sp_nearest nearest;
	char error[256];
	const char *name;

	sp_nearest_init(&nearest, word);
	for (size_t i = 0; (name = command_word(i)); i++)
		sp_nearest_try(&nearest, name);
	name = sp_nearest_name(&nearest);
	if (!name)
		return fail_at("unknown command of ctl", word);
	snprintf(error, sizeof(error),
		 "unknown command of ctl: %.120s: did you mean %s?", word,
		 name);
	return sp_console_fail_usage(error, "ctl");
}

/* The order that the words ask for; a message otherwise. */
static int parse_order(int argc, const char *const *argv, struct sp_order *ret)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		const struct command *c = &commands[i];

		if (strcmp(argv[0], c->name) != 0)
			continue;
		if (argc != 1 + c->has_argument)
			return fail_at(c->has_argument
					       ? "one word has to follow"
					       : "nothing may follow",
				       c->name);
		ret->command = c->command;
		if (c->command != SP_CONTROL_PERIOD) {
			ret->name = c->has_argument ? argv[1] : NULL;
			if (ret->name &&
			    (!*ret->name ||
			     strlen(ret->name) > SP_FORMAT_MARK_NAME_MAX))
				return fail_at("a name has 1 to 64 bytes",
					       ret->name);
			return EXIT_FINE;
		}
		if (sp_parse_size(argv[1], &ret->period_bytes) &&
		    ret->period_bytes &&
		    ret->period_bytes <= SP_FORMAT_PERIOD_MAX)
			return EXIT_FINE;
		return fail_at("a period is from 1 to 1T, like 64K", argv[1]);
	}
	return fail_unknown(argv[0]);
}

static void say_when(const struct sp_target *target)
{
	fputs(sp_target_is_stopped(target)
		      ? "when it goes on: it is stopped\n"
		      : "when a thread has allocated another 4 KiB\n",
	      stderr);
}

static void say_waiting(const struct sp_target *target, uint64_t number)
{
	fprintf(stderr,
		PROGRAM ": waiting: process %" PRIu64
			" gave its last sign %s ago\n" PROGRAM
			": it carries out order %" PRIu64 " ",
		target->pid,
		sp_text_duration(sp_target_silence_ns(target)).text, number);
	say_when(target);
}

static int say_queued(const struct sp_target *target, uint64_t number,
		      bool said_when)
{
	fprintf(stderr,
		PROGRAM ": not yet: it stays queued as order %" PRIu64 "\n",
		number);
	if (!said_when) {
		fprintf(stderr, PROGRAM ": process %" PRIu64 " carries it out ",
			target->pid);
		say_when(target);
	}
	return EXIT_QUEUED;
}

static int obey_order(const struct sp_target *target,
		      const struct sp_order *order, uint64_t timeout_ns)
{
	const uint64_t grace_ns = timeout_ns < GRACE_NS ? timeout_ns : GRACE_NS;
	uint64_t number, time_ns;
	struct sp_error err;
	int r;

	if (sp_target_ask(target, order, &number, &err) < 0)
		return sp_console_fail_with(&err);
	r = sp_target_wait(target, number, grace_ns, &time_ns, &err);
	if (r == -ETIMEDOUT && timeout_ns > grace_ns) {
		say_waiting(target, number);
		r = sp_target_wait(target, number, timeout_ns - grace_ns,
				   &time_ns, &err);
	}
	if (r == -ETIMEDOUT)
		return say_queued(target, number, timeout_ns > grace_ns);
	if (r < 0)
		return sp_console_fail_with(&err);
	printf("done at %s\n", sp_text_moment(time_ns).text);
	return EXIT_FINE;
}

/* The ledger of its resident memory, which the process puts into its profile:
 * it is asked to come to a socket of ours. */
static int take_ledger(const struct sp_target *target, const char *mark,
		       uint64_t timeout_ns)
{
	struct sp_order order = {.command = SP_CONTROL_LOOK};
	char name[SP_FORMAT_MARK_NAME_MAX];
	struct sp_rss_ledger ledger;
	struct sp_error err;
	uint64_t number, time_ns;
	int fd, r;

	snprintf(name, sizeof(name), "%ld-%" PRIu64 "-%" PRIx64, (long)getpid(),
		 target->pid, target->header.file_id);
	order.name = name;
	fd = sp_rss_look_open(name, &err);
	if (fd < 0)
		return sp_console_fail_with(&err);
	r = sp_target_ask(target, &order, &number, &err);
	if (r == 0)
		r = sp_rss_look_serve(fd, -1, target->pid, mark, timeout_ns,
				      &ledger, &err);
	close(fd);
	if (r == -ETIMEDOUT)
		/* It may have been refused: then it says so. */
		r = sp_target_wait(target, number, 0, &time_ns, &err);
	else if (r == 0)
		r = sp_target_wait(target, number, GRACE_NS, &time_ns, &err);
	if (r == -ETIMEDOUT)
		return sp_console_fail(
			"no ledger: the process did not allocate another 4 KiB "
			"in time; try again while it works, or with a longer "
			"--timeout");
	if (r < 0)
		return sp_console_fail_with(&err);
	putchar('\n');
	sp_rss_print(stdout, &ledger);
	return EXIT_FINE;
}

struct ctl_options {
	uint64_t timeout_ns;
	bool rss;
};

static const struct sp_argument arguments[] = {
	{"timeout", 0, "TIME", "a time such as 5s", sp_argument_duration,
	 offsetof(struct ctl_options, timeout_ns),
	 "wait that long until the order is carried out (default\n"
	 "5s); then it stays queued"},
	SP_ARGUMENT_FLAG(
		struct ctl_options, "rss", rss,
		"with snapshot: show what its resident memory is made\n"
		"of, and put that into the profile (sampleprof rss)"),
	{0},
};

static const struct sp_argument_group group = {"Options", arguments, NULL};

static void describe_orders(FILE *out)
{
	fputs("\nCommands:\n"
	      "  start              start sampling\n"
	      "  stop               stop sampling; exact totals go on\n"
	      "  period SIZE        change the period, now or for when it is "
	      "started;\n"
	      "                     with --rate the smallest one\n"
	      "  mark NAME          the phase NAME begins\n"
	      "  snapshot NAME      give the moment a name\n"
	      "  status             what is known by now, and orders that "
	      "wait\n",
	      out);
}

const struct sp_command_line ctl_line = {
	.forms = "ctl [OPTION]... PID COMMAND",
	.about = "Give an order to a process that is being profiled. It "
		 "carries out its orders one\n"
		 "by one, when one of its threads has allocated another 4 KiB. "
		 "At most 8 can wait.\n",
	.describe = describe_orders,
	.parts = (const struct sp_argument_part[]){{&group, 0},
						   {&sp_arguments_about, 0},
						   {0}},
	.ending = "Exit status: 0 fine, 1 error, 2 usage, 3 the order stays "
		  "queued.\n",
	.stops_at_word = true,
	.listed_word = 2,
	.word = command_word,
};

/* `n` words, of which the first is the process. */
static int control_target(const char *const *words, size_t n,
			  const struct ctl_options *o)
{
	struct sp_order order = {.name = NULL};
	struct sp_target target;
	struct sp_error err;
	bool is_status;
	uint64_t pid;
	int r;

	if (n < 2)
		return sp_console_fail_usage(
			"ctl needs a process id and a command", "ctl");
	if (is_command(words[0]) && sp_parse_u64(words[1], &pid))
		return fail_at("the process goes first, then", words[0]);
	if (!sp_parse_u64(words[0], &pid) || !pid || pid > INT32_MAX)
		return fail_at("not a process id", words[0]);
	is_status = strcmp(words[1], "status") == 0 && n == 2;
	if (!is_status) {
		r = parse_order((int)n - 1, words + 1, &order);
		if (r)
			return r;
	}
	if (o->rss && order.command != SP_CONTROL_SNAPSHOT)
		return sp_console_fail_usage("--rss is only for snapshot NAME",
					     "ctl");
	if (sp_target_open(&target, pid, &err) < 0)
		r = sp_console_fail_with(&err);
	else if (is_status)
		r = print_status(&target);
	else
		r = obey_order(&target, &order, o->timeout_ns);
	if (r == EXIT_FINE && o->rss)
		r = take_ledger(&target, order.name, o->timeout_ns);
	sp_target_close(&target);
	return r ? r : sp_console_finish();
}

int run_ctl(int argc, char **argv)
{
	struct ctl_options options = {.timeout_ns = DEFAULT_TIMEOUT_NS};
	const char *const *words;
	size_t n;
	int code;

	code = sp_console_parse(&ctl_line, "ctl", argc, argv, &options, &words,
				&n);
	if (code >= 0)
		return code;
	return control_target(words, n, &options);
}
