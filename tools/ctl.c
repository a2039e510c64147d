/* SPDX-License-Identifier: MIT */
/* sampleprof ctl: orders to a process that runs under the library, and what is
 * known of it. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "control/target.h"
#include "model/profile.h"
#include "read/load.h"
#include "report/phases.h"
#include "text/text.h"
#include "tools/sampleprof.h"

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
	const char *command = "?";

	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (commands[i].command == order->command)
			command = commands[i].name;
	memcpy(name, order->name, sizeof(order->name));
	printf("          %" PRIu64 " waits: %s ", order->number, command);
	if (order->command == SP_CONTROL_PERIOD)
		fputs(sp_text_size(order->period_bytes).text, stdout);
	else
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

static int print_status(const struct sp_target *target)
{
	const struct sp_stretch *last;
	struct sp_profile *p;
	struct sp_error err;

	if (sp_profile_load(target->path, NULL, NULL, &p, &err) < 0)
		return fail(&err, EXIT_ERROR);
	last = p->n_stretches ? &p->stretches[p->n_stretches - 1] : NULL;
	printf("profile   ");
	sp_text_print(stdout, target->path);
	print_sampling(p);
	printf("phase     ");
	sp_text_print(stdout, sp_phase_name(last ? last->phase : ""));
	printf("\nEXACT     at least %s in %s allocations (up to %s more)",
	       sp_text_bytes((double)p->exact_alloc_bytes).text,
	       sp_text_count(p->exact_alloc_objects).text,
	       sp_text_bytes((double)p->missing_bytes_max).text);
	if (p->unsampled_bytes)
		printf(", %s of it unsampled",
		       sp_text_bytes((double)p->unsampled_bytes).text);
	printf("\nsamples   %s, %s thread%s\n",
	       sp_text_count(p->n_samples).text, sp_text_count(p->threads).text,
	       sp_text_plural(p->threads));
	sp_profile_free(p);
	print_orders(target);
	return finish_output();
}

/* The order that the words ask for; a message otherwise. */
static int parse_order(int argc, char **argv, struct sp_order *ret)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		const struct command *c = &commands[i];

		if (strcmp(argv[0], c->name) != 0)
			continue;
		if (argc != 1 + c->has_argument)
			return usage(c->has_argument ? "one word has to follow"
						     : "nothing may follow",
				     c->name);
		ret->command = c->command;
		if (c->command != SP_CONTROL_PERIOD) {
			ret->name = c->has_argument ? argv[1] : NULL;
			if (ret->name &&
			    (!*ret->name ||
			     strlen(ret->name) > SP_FORMAT_MARK_NAME_MAX))
				return usage("a name has 1 to 64 bytes",
					     ret->name);
			return EXIT_FINE;
		}
		if (sp_parse_size(argv[1], &ret->period_bytes) &&
		    ret->period_bytes &&
		    ret->period_bytes <= SP_FORMAT_PERIOD_MAX)
			return EXIT_FINE;
		return usage("a period is from 1 to 1T, like 64K", argv[1]);
	}
	return usage("unknown command of ctl", argv[0]);
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

static int say_queued(const struct sp_target *target, uint64_t number)
{
	fprintf(stderr,
		PROGRAM ": not yet: it stays queued as order %" PRIu64
			"\n" PROGRAM ": process %" PRIu64 " carries it out ",
		number, target->pid);
	say_when(target);
	return EXIT_QUEUED;
}

static int obey(const struct sp_target *target, const struct sp_order *order,
		uint64_t timeout_ns)
{
	const uint64_t grace_ns = timeout_ns < GRACE_NS ? timeout_ns : GRACE_NS;
	uint64_t number, time_ns;
	struct sp_error err;
	int r;

	if (sp_target_ask(target, order, &number, &err) < 0)
		return fail(&err, EXIT_ERROR);
	r = sp_target_wait(target, number, grace_ns, &time_ns, &err);
	if (r == -ETIMEDOUT && timeout_ns > grace_ns) {
		say_waiting(target, number);
		r = sp_target_wait(target, number, timeout_ns - grace_ns,
				   &time_ns, &err);
	}
	if (r == -ETIMEDOUT)
		return say_queued(target, number);
	if (r < 0)
		return fail(&err, EXIT_ERROR);
	printf("done at %s\n", sp_text_moment(time_ns).text);
	return finish_output();
}

int command_ctl(int argc, char **argv)
{
	static const struct option options[] = {
		{"timeout", required_argument, NULL, 't'},
		{0},
	};
	uint64_t timeout_ns = DEFAULT_TIMEOUT_NS, pid;
	struct sp_order order = {.name = NULL};
	struct sp_target target;
	struct sp_error err;
	bool is_status;
	int c, r;

	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		if (c != 't')
			return point_to_help();
		if (!sp_parse_duration(optarg, &timeout_ns))
			return usage("--timeout is a time like 5s", optarg);
	}
	argc -= optind;
	argv += optind;
	if (argc < 2)
		return usage("ctl needs a process id and a command", NULL);
	if (!sp_parse_u64(argv[0], &pid) || !pid || pid > INT32_MAX)
		return usage("not a process id", argv[0]);
	is_status = strcmp(argv[1], "status") == 0 && argc == 2;
	if (!is_status) {
		r = parse_order(argc - 1, argv + 1, &order);
		if (r)
			return r;
	}
	if (sp_target_open(&target, pid, &err) < 0)
		r = fail(&err, EXIT_ERROR);
	else if (is_status)
		r = print_status(&target);
	else
		r = obey(&target, &order, timeout_ns);
	sp_target_close(&target);
	return r;
}
