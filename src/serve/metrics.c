/* SPDX-License-Identifier: MIT */
#include "serve/metrics.h"

#include <math.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/patience.h"
#include "base/regular.h"
#include "base/saturate.h"
#include "control/files.h"
#include "format/layout.h"
#include "read/reader.h"
#include "read/running.h"
#include "read/source.h"
#include "report/analysis.h"
#include "report/load.h"
#include "serve/entry.h"
#include "text/escape.h"
#include "text/text.h"

/* A file of more is read by sp_metrics_read_slow(), so that nobody waits
 * for it, and so seldom that this takes a tenth of a processor. */
#define SLOW_BYTES  (4 << 20)
#define SLOW_FACTOR 10

struct sp_metrics *sp_metrics_new(const char *dir, uint64_t keep_ns)
{
	struct sp_metrics *m = calloc(1, sizeof(*m));

	sp_source_are_found();
	if (m) {
		m->dir = dir;
		m->keep_ns = keep_ns;
	}
	return m;
}

static void forget_figures(struct sp_metrics_entry *p)
{
	free(p->program);
	free(p->labels);
	*p = (struct sp_metrics_entry){.path = p->path,
				       .is_there = p->is_there};
}

static void free_process(struct sp_metrics_entry *p)
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

static bool take_figures(struct sp_metrics_entry *p,
			 const struct sp_analysis *a)
{
	const struct sp_profile *profile = a->profile;
	const struct sp_whole whole = sp_whole_of(profile);

	p->has_figures = true;
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
		/* A gauge that is not there says that nobody knows. */
		if (sp_whole_is_unknown_at(&whole, SP_NEVER))
			p->live_bytes = p->live_objects =
				(struct sp_interval){NAN, NAN, NAN};
	}
	p->is_whole = sp_whole_is_all(&whole);
	p->has_unseen = sp_profile_unseen(profile) != SP_UNSEEN_NONE;
	p->has_rss = sp_analysis_rss_at(profile, SP_NEVER, &p->rss_bytes);
	return p->labels && p->program;
}

/* 0, also of a file that is no profile, or -ENOMEM. */
static int read_process(struct sp_metrics_entry *p)
{
	static const struct sp_load_needs needs = {.while_written = true};
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

static struct sp_metrics_entry *find_process(const struct sp_metrics *m,
					     const char *path)
{
	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->processes[i]->path, path) == 0)
			return m->processes[i];
	return NULL;
}

static struct sp_metrics_entry *add_process(struct sp_metrics *m,
					    const char *path)
{
	struct sp_metrics_entry **more =
		realloc(m->processes, (m->n + 1) * sizeof(*m->processes));
	struct sp_metrics_entry *p = calloc(1, sizeof(*p));

	if (more)
		m->processes = more;
	if (!more || !p || !(p->path = strdup(path))) {
		free(p);
		return NULL;
	}
	m->processes[m->n++] = p;
	return p;
}

/* How far that was read. */
static off_t hash_bytes(int fd, uint64_t *hash, off_t at, off_t end)
{
	uint64_t block[4096];
	ssize_t n;

	for (; at < end; at += n) {
		n = sp_regular_read_found(fd, block, sizeof(block), at);
		if (n <= 0)
			break;
		*hash = sp_hash_bytes(*hash, block, (size_t)n);
	}
	return at;
}

/* What a running process has written so far, as a number: reading its bytes
 * takes a hundredth of the time of reading its samples.  Holes count as their
 * place alone. */
static uint64_t content_of(const char *path)
{
	const int fd = sp_regular_open_found(path);
	uint64_t hash = 0;
	off_t at = 0, end;

	/* Of one that a process serves the beginning tells. */
	if (fd >= 0 && sp_patience_is_place(fd))
		hash_bytes(fd, &hash, 0, SLOW_BYTES);
	while (fd >= 0 && (at = lseek(fd, at, SEEK_DATA)) >= 0 &&
	       (end = lseek(fd, at, SEEK_HOLE)) > at) {
		hash = sp_hash_word(hash, (uint64_t)at);
		at = hash_bytes(fd, &hash, at, end);
		if (at < end)
			break;
	}
	if (fd >= 0)
		close(fd);
	return hash;
}

static bool still_runs(const struct sp_metrics_entry *p)
{
	const struct sp_file_header header = {.pid = p->pid};
	const int fd = sp_regular_open_found(p->path);
	const bool r = fd >= 0 && sp_running(&header, fd);

	if (fd >= 0)
		close(fd);
	return r;
}

/* A mapped file may change without a new time: of what runs the content
 * decides, and whether its process is still there. */
static bool is_as_before(const struct sp_metrics_entry *p,
			 const struct stat *now, const uint64_t *content)
{
	if (p->bytes != now->st_size || p->inode != now->st_ino)
		return false;
	if (p->is_running)
		return content && *content == p->content && still_runs(p);
	return p->changed.tv_sec == now->st_mtim.tv_sec &&
	       p->changed.tv_nsec == now->st_mtim.tv_nsec;
}

/* What threads have published, and whether the process is still there, without
 * a record.  What was read of the records may be more. */
static void read_totals(struct sp_metrics_entry *p)
{
	struct sp_reader *reader = malloc(sizeof(*reader));
	uint64_t bytes = 0, objects = 0;
	struct sp_error err;

	if (!reader)
		return;
	if (sp_reader_open(reader, p->path, &err) >= 0) {
		for (unsigned int i = 0; i < SP_FORMAT_SLOTS; i++) {
			sp_sat_add(&bytes, reader->slots[i].alloc_bytes);
			sp_sat_add(&objects, reader->slots[i].alloc_objects);
		}
		p->is_late |= p->is_running && !reader->is_running;
		p->is_running = reader->is_running;
	}
	sp_reader_close(reader);
	free(reader);
	sp_raise(&p->alloc_bytes, bytes);
	sp_raise(&p->alloc_objects, objects);
}

/* ---- a large file, at first sight ---- */

static int take_info(struct sp_profile *p, size_t *room,
		     const struct sp_record_info *r)
{
	struct sp_info info = {
		.key = sp_blocks_text(&p->storage, r->key, r->key_bytes),
		.value = sp_blocks_text(&p->storage, r->value, r->value_bytes),
	};

	if (!info.key || !info.value ||
	    sp_array_reserve((void **)&p->infos, room, p->n_infos,
			     sizeof(info)))
		return -ENOMEM;
	p->infos[p->n_infos++] = info;
	return 0;
}

/* The facts are in its first chunk. */
static int read_infos(struct sp_profile *p, struct sp_reader *reader)
{
	struct sp_decoded record;
	struct sp_error err;
	uint64_t chunk = 0;
	size_t room = 0;
	int r = 0;

	while (r >= 0 && sp_reader_next(reader, &record, &err) > 0 &&
	       (!chunk || reader->chunk_index == chunk)) {
		chunk = reader->chunk_index;
		if (record.type == SP_RECORD_INFO)
			r = take_info(p, &room, &record.u.info);
	}
	return r;
}

static int take_facts(struct sp_metrics_entry *p, struct sp_reader *reader)
{
	struct sp_profile *profile = calloc(1, sizeof(*profile));
	const char *text;
	int r = profile ? read_infos(profile, reader) : -ENOMEM;

	if (r >= 0) {
		text = sp_profile_info(profile, "exe");
		profile->program = text ? text : "(unknown)";
		text = sp_profile_info(profile, "host");
		profile->host = text ? text : "";
		profile->path = p->path;
		p->pid = profile->pid = reader->header.pid;
		p->start_unix_ns = reader->header.start_unix_ns;
		p->stop_unix_ns = p->start_unix_ns;
		sp_sat_add(&p->stop_unix_ns, reader->status.time_ns);
		p->labels = labels_of(profile);
		p->program = strdup(sp_text_base_name(profile->program));
		r = p->labels && p->program ? 0 : -ENOMEM;
	}
	sp_profile_free(profile);
	return r;
}

/* Whose it is; not what is no profile. */
static int read_facts(struct sp_metrics_entry *p, const struct stat *now)
{
	struct sp_reader *reader = malloc(sizeof(*reader));
	struct sp_error err;
	int r = 0;

	if (!reader)
		return -ENOMEM;
	if (sp_reader_open(reader, p->path, &err) >= 0) {
		r = take_facts(p, reader);
		p->is_running = reader->is_running;
		p->is_late = !reader->is_running;
		p->inode = now->st_ino;
	}
	sp_reader_close(reader);
	free(reader);
	return r;
}

/* ---- all files ---- */

static bool is_large(const struct stat *now)
{
	return (off_t)now->st_blocks * 512 > SLOW_BYTES;
}

/* Is it a large one whose samples are read aside: it runs, or has ended since
 * they were read? */
static bool is_slow(const struct sp_metrics_entry *p, const struct stat *now)
{
	return p->labels && (p->is_running || p->is_late) &&
	       p->inode == now->st_ino && is_large(now);
}

static int look_at(struct sp_metrics *m, const char *path)
{
	struct sp_metrics_entry *p = find_process(m, path);
	uint64_t content;
	struct stat now;
	int r;

	if (sp_regular_look_found(path, &now) < 0 || !S_ISREG(now.st_mode))
		return 0;
	if (!p)
		p = add_process(m, path);
	if (!p)
		return -ENOMEM;
	p->is_there = true;
	if (is_large(&now) && (!p->labels || p->inode != now.st_ino) &&
	    !is_as_before(p, &now, NULL)) {
		forget_figures(p);
		r = read_facts(p, &now);
		if (r < 0)
			return r;
	}
	if (is_slow(p, &now))
		read_totals(p);
	if (is_slow(p, &now) || is_as_before(p, &now, NULL))
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

/* ---- slow files ---- */

/* A file that is read while others are asked for. */
struct sp_metrics_file {
	struct sp_metrics_entry is,
		was; /* of which `was` has what decides alone */
};

struct sp_metrics_file *sp_metrics_begin_slow(const struct sp_metrics *m)
{
	const uint64_t now_ns = sp_clock_ns();
	const struct sp_metrics_entry *first = NULL;
	struct sp_metrics_file *file;
	struct stat now;

	for (size_t i = 0; i < m->n; i++) {
		const struct sp_metrics_entry *p = m->processes[i];

		if ((p->is_late || p->next_ns <= now_ns) &&
		    sp_regular_look_found(p->path, &now) == 0 &&
		    is_slow(p, &now) && (!first || p->next_ns < first->next_ns))
			first = p;
	}
	file = first ? calloc(1, sizeof(*file)) : NULL;
	if (!file)
		return NULL;
	file->was.content = first->content;
	file->was.is_late = first->is_late;
	file->is.path = strdup(first->path);
	if (!file->is.path) {
		free(file);
		return NULL;
	}
	return file;
}

void sp_metrics_read_slow(struct sp_metrics_file *file)
{
	const uint64_t begin_ns = sp_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	struct sp_metrics_entry *p = &file->is;
	struct stat now;
	int r = sp_regular_look_found(p->path, &now);

	if (!r) {
		p->content = content_of(p->path);
		p->bytes = now.st_size;
		p->inode = now.st_ino;
		p->changed = now.st_mtim;
		if (p->content != file->was.content || file->was.is_late)
			r = read_process(p);
	}
	if (r < 0)
		forget_figures(p);
	p->next_ns = sp_clock_ns() +
		     SLOW_FACTOR * (sp_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) -
				    begin_ns);
}

void sp_metrics_end_slow(struct sp_metrics *m, struct sp_metrics_file *file)
{
	struct sp_metrics_entry *p = find_process(m, file->is.path);
	struct sp_metrics_entry *is = &file->is;

	if (p)
		p->next_ns = is->next_ns;
	/* It is no profile: that is known as long as it does not change. */
	if (p && !is->labels) {
		p->is_late = false;
		p->bytes = is->bytes;
		p->changed = is->changed;
	}
	if (p && is->labels && p->inode == is->inode) {
		/* A request may have seen more meanwhile. */
		sp_raise(&is->alloc_bytes, p->alloc_bytes);
		sp_raise(&is->alloc_objects, p->alloc_objects);
		is->is_late = is->is_running && !p->is_running;
		is->is_running &= p->is_running;
		forget_figures(p);
		free(is->path);
		is->path = p->path;
		is->is_there = p->is_there;
		*p = *is;
		*is = (struct sp_metrics_entry){.path = NULL};
	}
	forget_figures(is);
	free(is->path);
	free(file);
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
	return r < 0 ? sp_error_memory(err, NULL) : 0;
}

bool sp_metrics_process(const struct sp_metrics *m, size_t i,
			struct sp_metrics_process *ret)
{
	size_t seen = 0;

	for (size_t k = 0; k < m->n; k++) {
		const struct sp_metrics_entry *p = m->processes[k];

		if (!p->labels || seen++ != i)
			continue;
		*ret = (struct sp_metrics_process){p->path, p->program, p->pid,
						   p->start_unix_ns,
						   p->is_running};
		return true;
	}
	return false;
}
