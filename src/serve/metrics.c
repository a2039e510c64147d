/* SPDX-License-Identifier: MIT */
#include "serve/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "control/files.h"
#include "format/layout.h"
#include "read/running.h"
#include "report/analysis.h"
#include "report/load.h"
#include "text/escape.h"
#include "text/text.h"

/* A file as it was read. */
struct process {
	char *path;
	char *program;
	char *labels; /* as between braces, escaped; NULL: it is no profile */
	uint64_t pid;
	uint64_t start_unix_ns, stop_unix_ns;
	struct timespec changed;
	off_t bytes;
	ino_t inode;
	uint64_t content; /* of a running one: content_of() */
	bool is_running;
	bool is_there; /* at the last look */
	uint64_t alloc_bytes, alloc_objects;
	bool has_classes, has_live, has_rss;
	struct sp_class_total classes[SP_FORMAT_CLASSES];
	struct sp_interval live_bytes, live_objects, peak_bytes;
	uint64_t rss_bytes;
};

struct sp_metrics {
	const char *dir;
	uint64_t keep_ns, now_unix_ns;
	struct process **processes;
	size_t n;
};

struct sp_metrics *sp_metrics_new(const char *dir, uint64_t keep_ns)
{
	struct sp_metrics *m = calloc(1, sizeof(*m));

	if (m) {
		m->dir = dir;
		m->keep_ns = keep_ns;
	}
	return m;
}

static void forget_figures(struct process *p)
{
	free(p->program);
	free(p->labels);
	*p = (struct process){.path = p->path, .is_there = p->is_there};
}

static void free_process(struct process *p)
{
	forget_figures(p);
	free(p->path);
	free(p);
}

void sp_metrics_free(struct sp_metrics *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n; i++)
		free_process(m->processes[i]);
	free(m->processes);
	free(m);
}

/* ---- the labels of a process ---- */

static void put_label(FILE *out, FILE *escaped, const char *name,
		      const char *value)
{
	fprintf(out, "%s%s=\"", ftell(out) ? "," : "", name);
	sp_text_print(escaped, value);
	putc('"', out);
}

/* A key of the user's: what Prometheus has no character for, or what is ours
 * already, gets another name. */
static void put_key(FILE *out, FILE *escaped, const char *key,
		    const char *value)
{
	static const char *const ours[] = {"profile", "program", "pid", "host",
					   "size_max"};
	char name[80];
	bool is_ours = *key >= '0' && *key <= '9';

	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		is_ours |= strcmp(key, ours[i]) == 0;
	snprintf(name, sizeof(name), "%s%s", is_ours ? "label_" : "", key);
	for (char *c = name; *c; c++)
		if (*c == '.' || *c == '-')
			*c = '_';
	put_label(out, escaped, name, value);
}

static char *labels_of(const struct sp_profile *profile)
{
	char *text = NULL, pid[24];
	const char *key, *value;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	FILE *escaped = out ? sp_escape_open(out, SP_ESCAPE_LABEL) : NULL;

	if (escaped) {
		snprintf(pid, sizeof(pid), "%" PRIu64, profile->pid);
		put_label(out, escaped, "profile",
			  sp_text_base_name(profile->path));
		put_label(out, escaped, "program",
			  sp_text_base_name(profile->program));
		put_label(out, escaped, "pid", pid);
		put_label(out, escaped, "host", profile->host);
		for (size_t i = 0; (key = sp_profile_label(profile, i, &value));
		     i++)
			put_key(out, escaped, key, value);
		fclose(escaped);
	}
	if (out && (fclose(out) != 0 || !escaped)) {
		free(text);
		return NULL;
	}
	return text;
}

/* ---- reading ---- */

static bool take_figures(struct process *p, const struct sp_analysis *a)
{
	const struct sp_profile *profile = a->profile;

	p->labels = labels_of(profile);
	p->program = strdup(sp_text_base_name(profile->program));
	p->pid = profile->pid;
	p->start_unix_ns = profile->start_unix_ns;
	p->stop_unix_ns = profile->start_unix_ns + profile->duration_ns;
	p->is_running = profile->end == SP_PROFILE_END_RUNNING;
	p->alloc_bytes = profile->exact_alloc_bytes;
	p->alloc_objects = profile->exact_alloc_objects;
	p->has_classes = profile->has_classes;
	memcpy(p->classes, profile->classes, sizeof(p->classes));
	p->has_live = a->live != NULL;
	if (a->live) {
		p->live_bytes = sp_estimate_bytes(&a->how, &a->live->all);
		p->live_objects = sp_estimate_objects(&a->how, &a->live->all);
		p->peak_bytes = a->peak.bytes;
	}
	p->has_rss = sp_analysis_rss_at(profile, SP_NEVER, &p->rss_bytes);
	return p->labels && p->program;
}

/* 0, also of a file that is no profile, or -ENOMEM. */
static int read_process(struct process *p)
{
	static const struct sp_load_needs needs = {.peak = true};
	const char *files[] = {p->path};
	struct sp_question question;
	struct sp_analysis *analysis;
	struct sp_profile *profile;
	struct sp_error err;
	int r;

	sp_question_init(&question);
	r = sp_load(files, 1, &question, &needs, NULL, NULL, &profile, &err);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	r = sp_analysis_new(profile, &question, SP_VIEW_ALLOC, &analysis, &err);
	if (r >= 0) {
		if (!take_figures(p, analysis))
			r = -ENOMEM;
		sp_analysis_free(analysis);
	}
	sp_profile_free(profile);
	return r == -ENOMEM ? r : 0;
}

static struct process *find_process(const struct sp_metrics *m,
				    const char *path)
{
	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->processes[i]->path, path) == 0)
			return m->processes[i];
	return NULL;
}

static struct process *add_process(struct sp_metrics *m, const char *path)
{
	struct process **more =
		realloc(m->processes, (m->n + 1) * sizeof(*m->processes));
	struct process *p = calloc(1, sizeof(*p));

	if (more)
		m->processes = more;
	if (!more || !p || !(p->path = strdup(path))) {
		free(p);
		return NULL;
	}
	m->processes[m->n++] = p;
	return p;
}

/* What a running process has written so far, as a number: reading its bytes
 * takes a hundredth of the time of reading its samples.  Holes count as their
 * place alone. */
static uint64_t content_of(const char *path)
{
	uint64_t block[4096];
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	uint64_t hash = 0;
	off_t at = 0, end;
	ssize_t n;

	while (fd >= 0 && (at = lseek(fd, at, SEEK_DATA)) >= 0 &&
	       (end = lseek(fd, at, SEEK_HOLE)) > at) {
		hash = sp_hash_word(hash, (uint64_t)at);
		for (; at < end; at += n) {
			n = pread(fd, block, sizeof(block), at);
			if (n <= 0)
				break;
			hash = sp_hash_bytes(hash, block, (size_t)n);
		}
		if (at < end)
			break;
	}
	if (fd >= 0)
		close(fd);
	return hash;
}

/* A mapped file may change without a new time: of what runs the content
 * decides, and whether its process is still there. */
static bool is_as_before(const struct process *p, const struct stat *now,
			 const uint64_t *content)
{
	const struct sp_file_header header = {.pid = p->pid};

	if (p->bytes != now->st_size || p->inode != now->st_ino)
		return false;
	if (p->is_running)
		return content && *content == p->content &&
		       sp_running(&header, now->st_ino);
	return p->changed.tv_sec == now->st_mtim.tv_sec &&
	       p->changed.tv_nsec == now->st_mtim.tv_nsec;
}

static int look_at(struct sp_metrics *m, const char *path)
{
	struct process *p = find_process(m, path);
	uint64_t content;
	struct stat now;
	int r;

	if (stat(path, &now) != 0 || !S_ISREG(now.st_mode))
		return 0;
	if (!p)
		p = add_process(m, path);
	if (!p)
		return -ENOMEM;
	p->is_there = true;
	if (is_as_before(p, &now, NULL))
		return 0;
	/* Before it is read: what comes meanwhile is a change. */
	content = content_of(path);
	if (is_as_before(p, &now, &content))
		return 0;
	forget_figures(p);
	r = read_process(p);
	p->content = content;
	p->bytes = now.st_size;
	p->inode = now.st_ino;
	p->changed = now.st_mtim;
	return r;
}

static void forget_missing(struct sp_metrics *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++) {
		if (m->processes[i]->is_there)
			m->processes[n++] = m->processes[i];
		else
			free_process(m->processes[i]);
	}
	m->n = n;
}

int sp_metrics_read(struct sp_metrics *m, uint64_t now_unix_ns,
		    struct sp_error *err)
{
	struct sp_files files;
	int r = sp_files_list(m->dir, 0, &files, err);

	if (r < 0)
		return r;
	m->now_unix_ns = now_unix_ns;
	for (size_t i = 0; i < m->n; i++)
		m->processes[i]->is_there = false;
	for (size_t i = 0; r >= 0 && i < files.n; i++)
		r = look_at(m, files.paths[i]);
	forget_missing(m);
	sp_files_free(&files);
	return r < 0 ? sp_error_set(err, r, NULL, "not enough memory") : 0;
}

bool sp_metrics_process(const struct sp_metrics *m, size_t i,
			struct sp_metrics_process *ret)
{
	size_t seen = 0;

	for (size_t k = 0; k < m->n; k++) {
		const struct process *p = m->processes[k];

		if (!p->labels || seen++ != i)
			continue;
		*ret = (struct sp_metrics_process){p->path, p->program, p->pid,
						   p->start_unix_ns,
						   p->is_running};
		return true;
	}
	return false;
}

/* ---- writing ---- */

static bool is_shown(const struct sp_metrics *m, const struct process *p)
{
	return p->labels && (p->is_running ||
			     p->stop_unix_ns + m->keep_ns >= m->now_unix_ns);
}

typedef bool value_fn(const struct process *p, double *ret);

static bool value_running(const struct process *p, double *ret)
{
	*ret = p->is_running;
	return true;
}

static bool value_bytes(const struct process *p, double *ret)
{
	*ret = (double)p->alloc_bytes;
	return true;
}

static bool value_objects(const struct process *p, double *ret)
{
	*ret = (double)p->alloc_objects;
	return true;
}

static bool value_rss(const struct process *p, double *ret)
{
	*ret = (double)p->rss_bytes;
	return p->has_rss;
}

static const struct sp_interval *live_bytes(const struct process *p)
{
	return &p->live_bytes;
}

static const struct sp_interval *live_objects(const struct process *p)
{
	return &p->live_objects;
}

static const struct sp_interval *peak_bytes(const struct process *p)
{
	return &p->peak_bytes;
}

static const struct {
	const char *name, *type, *unit, *help;
	value_fn *value;
} families[] = {
	{"running", "gauge", "", "1 while the process runs", value_running},
	{"allocated_bytes", "counter", "bytes", "Bytes allocated, exact",
	 value_bytes},
	{"allocated_objects", "counter", "", "Objects allocated, exact",
	 value_objects},
	{"resident_bytes", "gauge", "bytes",
	 "Resident memory as it was last recorded", value_rss},
};

static const struct {
	const char *name, *unit, *help;
	const struct sp_interval *(*of)(const struct process *p);
} estimates[] = {
	{"live_bytes", "bytes", "Bytes alive, estimated", live_bytes},
	{"live_objects", "", "Objects alive, estimated", live_objects},
	{"peak_bytes", "bytes", "Most bytes alive at a time, estimated",
	 peak_bytes},
};

static const struct {
	const char *suffix, *what;
	size_t at; /* of the double in struct sp_interval */
} bounds[] = {
	{"", "", offsetof(struct sp_interval, value)},
	{"_lo", ": the lower limit at 95 %", offsetof(struct sp_interval, lo)},
	{"_hi", ": the upper limit at 95 %", offsetof(struct sp_interval, hi)},
};

/* How a family is written.  OpenMetrics names a counter without the end of its
 * samples' name. */
struct style {
	FILE *out;
	bool is_open;
};

static void put_head(const struct style *style, const char *name,
		     const char *suffix, const char *type, const char *unit,
		     const char *help)
{
	const bool is_counter = strcmp(type, "counter") == 0;
	const char *end = is_counter && !style->is_open ? "_total" : "";
	FILE *out = style->out;

	fprintf(out, "# TYPE sampleprof_%s%s%s %s\n", name, suffix, end, type);
	if (style->is_open && *unit && !*suffix)
		fprintf(out, "# UNIT sampleprof_%s %s\n", name, unit);
	fprintf(out, "# HELP sampleprof_%s%s%s %s", name, suffix, end, help);
}

static void write_family(const struct sp_metrics *m, const struct style *style,
			 size_t f)
{
	FILE *out = style->out;
	const bool is_counter = strcmp(families[f].type, "counter") == 0;
	double value;

	put_head(style, families[f].name, "", families[f].type,
		 families[f].unit, families[f].help);
	fputs(".\n", out);
	for (size_t i = 0; i < m->n; i++)
		if (is_shown(m, m->processes[i]) &&
		    families[f].value(m->processes[i], &value))
			fprintf(out, "sampleprof_%s%s{%s} %.0f\n",
				families[f].name, is_counter ? "_total" : "",
				m->processes[i]->labels, value);
}

static void write_estimate(const struct sp_metrics *m,
			   const struct style *style, size_t e, size_t b)
{
	FILE *out = style->out;

	put_head(style, estimates[e].name, bounds[b].suffix, "gauge",
		 estimates[e].unit, estimates[e].help);
	fprintf(out, "%s.\n", bounds[b].what);
	for (size_t i = 0; i < m->n; i++) {
		const struct process *p = m->processes[i];
		double value;

		if (!is_shown(m, p) || !p->has_live)
			continue;
		memcpy(&value, (const char *)estimates[e].of(p) + bounds[b].at,
		       sizeof(value));
		fprintf(out, "sampleprof_%s%s{%s} %.0f\n", estimates[e].name,
			bounds[b].suffix, p->labels, value);
	}
}

static void write_classes(const struct sp_metrics *m, const struct style *style,
			  bool of_bytes)
{
	FILE *out = style->out;
	const char *name =
		of_bytes ? "class_allocated_bytes" : "class_allocated_objects";

	put_head(style, name, "", "counter", of_bytes ? "bytes" : "",
		 of_bytes ? "Bytes allocated by size class, exact"
			  : "Objects allocated by size class, exact");
	fputs(".\n", out);
	for (size_t i = 0; i < m->n; i++) {
		const struct process *p = m->processes[i];

		if (!is_shown(m, p) || !p->has_classes)
			continue;
		for (unsigned int k = 0; k < SP_FORMAT_CLASSES; k++) {
			const uint64_t max = sp_format_class_max(k);
			char limit[24] = "+Inf";

			if (!p->classes[k].objects)
				continue;
			if (max != UINT64_MAX)
				snprintf(limit, sizeof(limit), "%" PRIu64, max);
			fprintf(out,
				"sampleprof_%s_total{%s,size_max=\"%s\"} "
				"%" PRIu64 "\n",
				name, p->labels, limit,
				of_bytes ? p->classes[k].bytes
					 : p->classes[k].objects);
		}
	}
}

void sp_metrics_write(const struct sp_metrics *m, bool is_open, FILE *out)
{
	const struct style style = {out, is_open};

	for (size_t f = 0; f < sizeof(families) / sizeof(*families); f++)
		write_family(m, &style, f);
	for (size_t e = 0; e < sizeof(estimates) / sizeof(*estimates); e++)
		for (size_t b = 0; b < sizeof(bounds) / sizeof(*bounds); b++)
			write_estimate(m, &style, e, b);
	write_classes(m, &style, true);
	write_classes(m, &style, false);
	if (is_open)
		fputs("# EOF\n", out);
}
