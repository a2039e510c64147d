/* SPDX-License-Identifier: MIT */
#include "agent/process/process.h"

#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/file/filter.h"
#include "agent/file/liveset.h"
#include "agent/file/outfile.h"
#include "agent/file/stack.h"
#include "agent/file/writer.h"
#include "agent/process/origin.h"
#include "agent/process/checkin.h"
#include "agent/process/period.h"
#include "agent/sys/clock.h"
#include "agent/sys/diag.h"
#include "agent/sys/next.h"
#include "agent/sys/sys.h"
#include "agent/sys/tid.h"
#include "agent/unwind/modules.h"
#include "base/labels.h"
#include "base/parse.h"
#include "base/rng.h"
#include "base/wide.h"

#include "agent/sys/poison.h"

#define COMMAND_MAX 16384
#define ALIVE       0x73707266u
#define TABLES_MIN  ((size_t)4 << 20) /* of address space */
#define ROOM_SHARE  4u /* the file may have a quarter of the free room */

#define TITLE_BYTES 256 /* of what a program calls itself */

struct sp_process sp_process;

static char command[COMMAND_MAX];
static uint64_t command_bytes;

/* Settings of runtimes that allocate by themselves unless they are told not to.
 * The values are copied: a program may write its title over them. */
static struct runtime_setting {
	const char *name;
	char value[32];
} runtime_settings[] = {{"PYTHONMALLOC", ""}, {"USE_ZEND_ALLOC", ""}};

#define N_RUNTIME_SETTINGS                                                     \
	(sizeof(runtime_settings) / sizeof(runtime_settings[0]))

/* ---- settings ---- */

static void say_line(void *arg, const char *line)
{
	(void)arg;
	sp_diag_say(line, NULL);
}

/* Of the processes of a build, each would say it. */
static bool is_news(const struct sp_process *process, const char *variable)
{
	return process->attached.is_it || !sp_origin_parent_has_said(variable);
}

static bool read_settings(struct sp_process *process, char *const *environment)
{
	struct sp_config_error err;
	bool ok = sp_config_parse(environment, &process->config, &err);

	sp_diag_set_quiet(process->config.log == SP_CONFIG_LOG_QUIET);
	if (process->config.help) {
		sp_diag_say("settings, as environment variables:", NULL);
		sp_config_help(say_line, NULL);
	}
	if (err.unknown && is_news(process, err.unknown))
		sp_diag_say("unknown setting ", err.unknown,
			    " is ignored; SAMPLEPROF_HELP=1 lists all", NULL);
	if (!ok && is_news(process, err.variable))
		sp_diag_say(err.variable, " is not ", err.expected,
			    "; running unprofiled", NULL);
	return ok;
}

/* ---- facts ---- */

static void read_runtime_settings(char *const *environment)
{
	for (size_t i = 0; i < N_RUNTIME_SETTINGS; i++) {
		struct runtime_setting *s = &runtime_settings[i];
		const size_t n = strlen(s->name);

		for (char *const *e = environment; e && *e; e++)
			if (strncmp(*e, s->name, n) == 0 && (*e)[n] == '=')
				for (size_t k = 0; (*e)[n + 1 + k] &&
						   k + 1 < sizeof(s->value);
				     k++)
					s->value[k] = (*e)[n + 1 + k];
	}
}

static void keep_diagnosis(struct sp_process *process, const char *a,
			   const char *b, const char *c)
{
	const char *parts[] = {process->diagnosis[0] ? "; " : "", a, b, c};
	size_t at = strlen(process->diagnosis);

	for (int i = 0; i < 4; i++)
		for (const char *p = parts[i];
		     *p && at + 1 < sizeof(process->diagnosis); p++)
			process->diagnosis[at++] = *p;
	process->diagnosis[at] = '\0';
}

/* Not said on standard error: nothing can be done about it, and each child
 * would say it, too. */
static void read_command(struct sp_process *process)
{
	long n = sp_origin_read_arguments(command, sizeof(command));

	read_runtime_settings(environ);
	command_bytes = n > 0 ? (uint64_t)n : 0;
	if (n < 0)
		keep_diagnosis(process, "/proc is not mounted: the command ",
			       "line is not known, and child processes ",
			       "without samples leave files, too");
}

/* Field 22 of /proc/self/stat: with the process id it names this process for
 * as long as the machine runs. */
static uint64_t start_ticks(void)
{
	char stat[1024];
	const char *p;
	uint64_t v = 0;

	if (sp_sys_read_file("/proc/self/stat", stat, sizeof(stat)) <= 0)
		return 0;
	p = strrchr(stat, ')'); /* the name may contain anything */
	for (int field = 2; p && field < 22; field++) {
		p = strchr(p, ' ');
		if (p)
			p++;
	}
	for (; p && *p >= '0' && *p <= '9'; p++)
		v = v * 10 + (uint64_t)(*p - '0');
	return v;
}

static uint64_t random_number(void)
{
	uint64_t v = 0;
	const void *auxiliary = (const void *)getauxval(AT_RANDOM);

	if (SP_SYS3(getrandom, &v, sizeof(v), 1 /* GRND_NONBLOCK */) ==
	    sizeof(v))
		return v;
	if (auxiliary)
		memcpy(&v, auxiliary, sizeof(v));
	v ^= sp_clock_now_ns();
	return sp_splitmix64(&v);
}

static void read_clocks(struct sp_process *process)
{
	const struct sp_clock_both both = sp_clock_both();

	process->start_unix_ns = both.wall_ns;
	process->start_clock_ns = both.now_ns;
}

/* Before Linux 4.14, and in some sandboxes, memory cannot be wiped in a child;
 * that it is missing there costs a system call to find out. */
static void map_alive_page(struct sp_process *process)
{
	process->alive = sp_sys_map_wiped(4096);
	process->is_wiped = process->alive;
	if (!process->alive)
		process->alive = sp_sys_map(4096);
	if (!process->alive)
		return;
	*process->alive = ALIVE;
	if (!process->is_wiped &&
	    (SP_SYS3(madvise, process->alive, 4096, MADV_DONTFORK) ||
	     sp_sys_compare(process->alive, ALIVE)))
		process->alive = NULL;
}

static bool follow_frees(struct sp_process *process)
{
	if (process->config.frees == SP_CONFIG_FREES_OFF)
		return false;
	if (sp_liveset_init()) {
		sp_liveset_reset(atomic_load(&process->generation));
		return true;
	}
	sp_process_diagnose(process, "it is not known what is freed: ",
			    process->is_wiped
				    ? "there is no memory for it"
				    : "the kernel cannot wipe memory in a "
				      "forked child (MADV_WIPEONFORK, Linux "
				      "4.14)",
			    "");
	return false;
}

/* The static tables are sparse: a huge page would make 2 MiB of a few KiB. */
static void prepare_tables(void)
{
	extern char __bss_start[] __attribute__((visibility("hidden")));
	extern char _end[] __attribute__((visibility("hidden")));
	extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));
	const uintptr_t page = sp_sys_page_bytes();
	uintptr_t start = ((uintptr_t)__bss_start + page - 1) & -page;
	uintptr_t end = (uintptr_t)_end & -page;

	if (start < end)
		SP_SYS3(madvise, start, end - start, MADV_NOHUGEPAGE);
	/* What is written to comes behind it. */
	sp_sys_hide(_DYNAMIC, (uintptr_t)_end - (uintptr_t)_DYNAMIC);
}

/* SAMPLEPROF_FOLLOW: is this process, and are its forked children, meant? */
static bool is_followed(struct sp_process *process)
{
	const char *follow = process->config.follow;
	const char *name = strrchr(process->exe_path, '/');

	process->follows_forks = strcmp(follow, "none") != 0;
	if (!process->follows_forks)
		return process->is_root;
	if (strcmp(follow, "all") == 0)
		return true;
	/* A process that is named by the setting leaves a file. */
	process->is_root =
		strcmp(follow, name ? name + 1 : process->exe_path) == 0;
	return process->is_root;
}

/* Where files have a limit that is smaller, a ring makes more of it. */
static bool may_be_large(const struct sp_config *config)
{
	struct rlimit limit;

	return SP_SYS4(prlimit64, 0, RLIMIT_FSIZE, 0, &limit) != 0 ||
	       limit.rlim_cur >= config->file_bytes ||
	       limit.rlim_cur >= SP_CONFIG_RING_MAX;
}

/* What the file and tables take of the address space, the program cannot. */
static void find_limits(struct sp_process *process)
{
	struct sp_config *config = &process->config;
	uint64_t share;

	sp_memory_limit_find(&process->limit);
	share = sp_memory_limit_of_file(&process->limit);
	if (share != SP_MEMORY_LIMIT_NONE)
		sp_sys_limit_room(share > TABLES_MIN ? share : TABLES_MIN);
	if (config->has_max_file || share >= config->file_bytes)
		return;
	config->file_bytes = share & ~65535ull;
	config->records_all &= share >= SP_CONFIG_RING_MAX;
}

bool sp_process_is_drawn(uint64_t random, uint64_t fraction_millionths)
{
	/* 2^64 / 10^6 is no integer: the bias is below 10^-13. */
	return (sp_u128)random * SP_PARSE_FRACTION_ALL >> 64 <
	       fraction_millionths;
}

/*
 * The draw is that of a program that was started: of a process, until it
 * executes another program.  Forked children share it, for they cannot be drawn
 * where the parent does not run our code; so each profile is there with the
 * same probability, and those of one draw are there together.
 */
static bool draw_process(struct sp_process *process)
{
	const uint64_t fraction = process->config.fraction_millionths;

	if (fraction == SP_PARSE_FRACTION_ALL)
		return true;
	/* Not by the seed: two settings that are the same everywhere would
	 * record every process, or none. */
	process->draw = random_number();
	return sp_process_is_drawn(process->draw, fraction);
}

static void refuse_labels(struct sp_process *process)
{
	if (process->config.labels_refused)
		keep_diagnosis(process,
			       "SAMPLEPROF_LABELS was ignored: the text ",
			       process->config.labels_refused, "");
	/* Each child would say it, too. */
	if (process->config.labels_refused && process->is_root)
		sp_diag_say("SAMPLEPROF_LABELS is ignored: the text ",
			    process->config.labels_refused, NULL);
}

bool sp_process_init(struct sp_process *process, char *const *environment)
{
	enum sp_law_kind kind;

	/* A set-uid program is not ours to write files for. */
	if (getauxval(AT_SECURE))
		return false;
	if (!read_settings(process, environment) || !draw_process(process))
		return false;
	if (!atomic_load(&process->generation))
		atomic_store(&process->generation, 1);
	sp_sys_find_detector();
	sp_clock_find();
	sp_tid_find();
	sp_origin_read_exe(process->exe_path, sizeof(process->exe_path));
	sp_origin_read_host(process->host);
	sp_origin_read_container(process->container);
	find_limits(process);
	read_clocks(process);
	if (!process->alive)
		map_alive_page(process);
	prepare_tables();
	if (process->config.command != SP_CONFIG_COMMAND_OFF)
		read_command(process);
	process->seed =
		process->config.seed ? process->config.seed : random_number();
	process->is_root =
		process->attached.is_it || !sp_origin_parent_is_profiled();
	refuse_labels(process);
	if (!is_followed(process))
		return false;
	kind = process->config.law == SP_CONFIG_LAW_DOTNET ? SP_LAW_DOTNET
							   : SP_LAW_EXPONENTIAL;
	sp_law_init(&process->law, kind, process->config.period_bytes);
	sp_period_init(&process->law, kind,
		       process->config.start != SP_CONFIG_START_OFF,
		       process->config.samples_per_s);
	process->has_no_file = strcmp(process->config.out, "none") == 0;
	if (process->has_no_file)
		sp_diag_remember_output();
	if (!sp_outfile_prepare(process->config.out, process->exe_path,
				process->host,
				process->start_unix_ns / 1000000000u)) {
		sp_diag_say("SAMPLEPROF_OUT: the path is too long; running "
			    "unprofiled",
			    NULL);
		return false;
	}
	process->follows_frees = false;
	sp_filter_pass_none();
	process->records_all = process->is_wiped &&
			       process->config.records_all &&
			       may_be_large(&process->config);
	if (process->records_all) {
		sp_filter_pass_all();
		sp_modules_watch_frees();
	} else {
		process->follows_frees = follow_frees(process);
	}
	return true;
}

/* ---- the file ---- */

static uint32_t header_flags(const struct sp_process *process)
{
	uint32_t flags = SP_HEADER_ALWAYS_LARGE | SP_HEADER_SEGMENTS;

	if (process->config.law == SP_CONFIG_LAW_DOTNET)
		flags |= SP_HEADER_LAW_DOTNET;
	if (process->follows_frees || process->records_all)
		flags |= SP_HEADER_FREES;
	if (process->records_all)
		flags |= SP_HEADER_ADDRESSES;
	return flags;
}

/* Said once, not by each child. */
static void warn_of_tmpfs(struct sp_process *process)
{
	static const char about[] = "the profile is on tmpfs, where it counts "
				    "against the memory limit of the ";
	static const char remedy[] = "control group: another SAMPLEPROF_OUT, "
				     "or a small SAMPLEPROF_MAX_FILE, helps";
	static bool is_said;

	if (is_said || process->limit.group_bytes == SP_MEMORY_LIMIT_NONE ||
	    !sp_outfile_is_in_memory())
		return;
	is_said = true;
	keep_diagnosis(process, about, remedy, "");
	if (process->is_root)
		sp_diag_say(about, remedy, NULL);
}

int sp_process_open_file(struct sp_process *process)
{
	int err;

	struct sp_writer_options options = {
		.pid = (uint64_t)SP_SYS0(getpid),
		.process_start_ticks = start_ticks(),
		.start_unix_ns = process->start_unix_ns,
		.start_clock_ns = process->start_clock_ns,
		.period_bytes = process->config.period_bytes,
		.seed = process->seed,
		.file_id = random_number(),
		.max_file_bytes = process->config.file_bytes,
		.room_share =
			process->records_all && !process->config.has_max_file
				? ROOM_SHARE
				: 0,
		.check_in_bytes = SP_CHECKIN_BYTES_MAX,
		.flags = header_flags(process),
	};

	err = sp_writer_open(&options);
	if (!err)
		warn_of_tmpfs(process);
	return err;
}

void sp_process_explain_file(const struct sp_process *process)
{
	/* The name comes last: it may be too long for the line. */
	sp_diag_say("cannot create the profile, running unprofiled: ",
		    sp_diag_errno(-process->file_error), ": ",
		    sp_outfile_pattern(), NULL);
}

struct emitter {
	sp_process_emit *emit;
	void *arg;
};

static void emit_setting(void *arg, const char *key, const char *value)
{
	const struct emitter *e = arg;

	e->emit(e->arg, key, value, strlen(value));
}

static void emit_if_any(void *arg, const char *key, const char *value)
{
	if (value[0])
		emit_setting(arg, key, value);
}

static void emit_labels(struct emitter *e, const char *labels)
{
	struct sp_label label;

	while (sp_labels_next(&labels, &label)) {
		char key[sizeof("label.") + SP_LABEL_KEY_BYTES_MAX] = "label.";

		memcpy(key + strlen(key), label.key, label.key_bytes);
		e->emit(e->arg, key, label.value, label.value_bytes);
	}
}

static void emit_limit(struct emitter *e, const struct sp_memory_limit *limit)
{
	char digits[24];

	if (limit->group_bytes != SP_MEMORY_LIMIT_NONE) {
		emit_setting(e, "limit.memory",
			     sp_diag_decimal(digits, limit->group_bytes));
		emit_setting(e, "limit.memory.file", limit->group_file);
	}
	if (limit->address_space_bytes != SP_MEMORY_LIMIT_NONE)
		emit_setting(
			e, "limit.address_space",
			sp_diag_decimal(digits, limit->address_space_bytes));
}

/* A server's processes write over their arguments what they do. */
static void emit_title(struct emitter *e, const char *key)
{
	char title[TITLE_BYTES + 1];
	long n = sp_origin_read_arguments(title, sizeof(title));

	if (n <= 0 || !command_bytes ||
	    (command_bytes >= (uint64_t)n &&
	     memcmp(title, command, (size_t)n) == 0))
		return;
	title[n < TITLE_BYTES ? n : TITLE_BYTES] = '\0';
	emit_setting(e, key, title);
}

/* Not of its forked children: they are recorded from their beginning. */
static void emit_attached(struct emitter *e, const struct sp_process *process)
{
	const struct sp_process_attached *attached = &process->attached;
	char digits[24];

	if (!attached->is_it || !process->is_root)
		return;
	emit_setting(e, "attached.age_ms",
		     sp_diag_decimal(digits, attached->age_ms));
	if (attached->knows_before)
		emit_setting(e, "attached.before_bytes",
			     sp_diag_decimal(digits, attached->before_bytes));
}

void sp_process_describe(const struct sp_process *process,
			 sp_process_emit *emit, void *arg)
{
	struct emitter e = {emit, arg};
	const uint64_t period = sp_period_ceiling();
	char digits[24];

	emit_setting(&e, "agent", "libsampleprof " SP_VERSION);
	emit_setting(&e, "exe", process->exe_path);
	emit(arg, "command", command, command_bytes);
	emit_setting(&e, "host", process->host);
	emit_if_any(&e, "container", process->container);
	if (process->draw)
		emit_setting(&e, "draw",
			     sp_diag_decimal(digits, process->draw));
	emit_labels(&e, process->config.labels);
	emit_attached(&e, process);
	emit_limit(&e, &process->limit);
	emit_setting(&e, "parent",
		     sp_diag_decimal(digits, (uint64_t)SP_SYS0(getppid)));
	sp_config_describe(&process->config, emit_setting, &e);
	for (size_t i = 0; i < N_RUNTIME_SETTINGS; i++)
		emit_if_any(&e, runtime_settings[i].name,
			    runtime_settings[i].value);
	if (process->is_child) {
		emit_setting(&e, "forked", "1");
		emit_title(&e, "title");
	}
	if (period != process->config.period_bytes)
		emit_setting(&e, "sampling", sp_diag_decimal(digits, period));
	if (atomic_load(&process->constructed))
		sp_process_describe_late(process, emit, arg);
}

void sp_process_describe_late(const struct sp_process *process,
			      sp_process_emit *emit, void *arg)
{
	struct emitter e = {emit, arg};

	emit_setting(&e, "allocator", sp_next_provider());
	emit_if_any(&e, "allocator.linked", process->linked);
	emit_if_any(&e, "allocator.missed", process->missed);
	emit_setting(&e, "unwinder", sp_stack_unwinder());
	emit_if_any(&e, "unseen", process->unseen);
	emit_if_any(&e, "diagnosis", process->diagnosis);
}

void sp_process_describe_end(sp_process_emit *emit, void *arg)
{
	emit_title(&(struct emitter){emit, arg}, "title.end");
}

void sp_process_diagnose(struct sp_process *process, const char *a,
			 const char *b, const char *c)
{
	keep_diagnosis(process, a, b, c);
	sp_diag_say(a, b, c, NULL);
}

/* ---- children ---- */

bool sp_process_is_new(const struct sp_process *process)
{
	if (!process->alive)
		return false;
	return process->is_wiped ? *process->alive == 0
				 : sp_sys_compare(process->alive, ALIVE) == 1;
}

void sp_process_mark_seen(struct sp_process *process)
{
	if (process->is_wiped)
		*process->alive = ALIVE;
	else if (process->alive)
		map_alive_page(process);
}

void sp_process_reseed(struct sp_process *process)
{
	uint64_t state, id = sp_tid_own();

	read_clocks(process);
	if (id == 0)
		id = process->start_clock_ns;
	state = process->seed ^ (id << 20);
	process->seed = sp_splitmix64(&state);
	process->is_root = false;
	process->is_child = true;
	process->file_error = 0;
}
