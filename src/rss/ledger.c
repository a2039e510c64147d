/* SPDX-License-Identifier: MIT */
#include "rss/ledger.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/order.h"
#include "base/patience.h"
#include "base/served.h"
#include "control/launch.h"
#include "control/mapped.h"
#include "control/target.h"
#include "rss/heap.h"
#include "rss/maps.h"
#include "rss/objects.h"
#include "rss/pages.h"
#include "rss/parts.h"
#include "rss/rounding.h"

#define RANGES_MAX  4096u
#define CLASSES_MAX 4096u
#define OBJECTS_MAX (8u << 20)

struct maker {
	const struct sp_rss_options *options;
	struct sp_rss_ledger *ledger;
	struct sp_target target;
	struct sp_rss_maps maps;
	struct sp_rss_pages *pages;
	struct sp_rss_parts parts;
	struct sp_rss_hints hints;
	struct sp_rss_objects objects;
	struct sp_control_range *ranges;
	uint64_t classes_at; /* where the process has its size classes; or 0 */
	uint32_t *classes;
	struct sp_rss_rounding rounding;
	struct sp_control_glibc glibc; /* zero if it did not say */
	/* Number of the order, 0: none; its answer; objects by addresses. */
	uint64_t slabs_order;
	struct sp_control_slabs slabs;
	struct sp_control_object *objects_of_slabs;
};

/* ---- what the process says ---- */

/* Nothing is said of a process that answers within that. */
#define GRACE_NS 200000000ull

static int wait_for_answer(struct maker *m, uint64_t number)
{
	const uint64_t all = m->options->timeout_ns;
	const uint64_t grace = all < GRACE_NS ? all : GRACE_NS;
	struct sp_error err;
	uint64_t time_ns;
	int r = sp_target_wait(&m->target, number, grace, &time_ns, &err);

	if (r != -ETIMEDOUT || all == grace)
		return r;
	if (m->options->on_wait)
		m->options->on_wait(m->options->pid);
	return sp_target_wait(&m->target, number, all - grace, &time_ns, &err);
}

/* Who pins is told by headers, or by the allocator, which the process asks for
 * live samples; it keeps no list of them at a period of 1.  Asked at once with
 * the other, so that it is waited for once. */
static void ask_for_slabs(struct maker *m)
{
	const struct sp_order order = {.command = SP_CONTROL_SLABS};
	struct sp_error err;

	if (!m->options->pins || m->target.header.period_bytes <= 1 ||
	    sp_target_ask(&m->target, &order, &m->slabs_order, &err) < 0)
		m->slabs_order = 0;
}

SP_ORDER(compare_objects, struct sp_control_object, SP_UP(address));

/* Another process that asks at the same time takes them away from us. */
static void read_slabs(struct maker *m)
{
	struct sp_control_slabs *s = &m->slabs;
	struct sp_error err;
	uint64_t time_ns;

	if (!m->slabs_order ||
	    sp_target_wait(&m->target, m->slabs_order, m->options->timeout_ns,
			   &time_ns, &err) != 0 ||
	    !sp_target_read_slabs(&m->target, m->slabs_order, s) ||
	    s->n_objects > OBJECTS_MAX)
		return;
	m->objects_of_slabs =
		calloc(s->n_objects + 1, sizeof(*m->objects_of_slabs));
	if (!m->objects_of_slabs ||
	    (s->n_objects &&
	     !sp_rss_pages_read(m->pages, s->objects, m->objects_of_slabs,
				s->n_objects * sizeof(*m->objects_of_slabs)))) {
		free(m->objects_of_slabs);
		m->objects_of_slabs = NULL;
		return;
	}
	qsort(m->objects_of_slabs, s->n_objects, sizeof(*m->objects_of_slabs),
	      compare_objects);
}

/* The process keeps the answer until it is asked something else.  Nobody waits
 * for what it says now. */
static void release_slabs(const struct maker *m)
{
	const struct sp_order order = {.command = SP_CONTROL_MEMORY};
	struct sp_error err;
	uint64_t number;

	if (m->objects_of_slabs)
		(void)sp_target_ask(&m->target, &order, &number, &err);
}

/* Does the last order ask that already, and wait?  Then it is not asked again:
 * there is room for few orders. */
static bool is_asked(const struct maker *m, uint64_t *ret_number)
{
	struct sp_control orders;
	const struct sp_control_order *last;

	if (!sp_target_read_orders(&m->target, &orders) ||
	    !sp_target_waiting(&orders))
		return false;
	last = &orders.queue[orders.request % SP_FORMAT_ORDERS];
	if (last->number != orders.request ||
	    last->command != SP_CONTROL_MEMORY)
		return false;
	*ret_number = orders.request;
	return true;
}

/* Of a process that allocates nothing there is no answer. */
static bool ask_process(struct maker *m)
{
	const struct sp_order order = {.command = SP_CONTROL_MEMORY};
	struct sp_error err;
	uint64_t number;

	if (m->options->answer) {
		m->ledger->memory = m->options->answer->memory;
		m->classes_at = m->options->answer->classes;
		return true;
	}
	m->ledger->is_stopped = sp_target_is_stopped(&m->target);
	/* Of a malloc that is not seen nothing answers. */
	if (m->ledger->is_stopped || m->ledger->why_unseen ||
	    (!is_asked(m, &number) &&
	     sp_target_ask(&m->target, &order, &number, &err) < 0))
		return false;
	ask_for_slabs(m);
	return wait_for_answer(m, number) == 0 &&
	       sp_target_read_memory(&m->target, number, &m->ledger->memory,
				     &m->classes_at);
}

static void read_ranges(struct maker *m)
{
	const struct sp_control_memory *answer = &m->ledger->memory;
	const size_t n = answer->n_ranges;

	if (!n || n > RANGES_MAX)
		return;
	m->ranges = calloc(n, sizeof(*m->ranges));
	if (!m->ranges || !sp_rss_pages_read(m->pages, answer->ranges,
					     m->ranges, n * sizeof(*m->ranges)))
		return;
	m->hints.ours = m->ranges;
	m->hints.n_ours = n;
}

/* Ascending, or none. */
static void read_classes(struct maker *m)
{
	struct sp_rss_rounding *r = &m->rounding;
	uint32_t n;

	if (!m->classes_at ||
	    !sp_rss_pages_read(m->pages, m->classes_at, &n, sizeof(n)) ||
	    n < 2 || n > CLASSES_MAX)
		return;
	m->classes = calloc(n, sizeof(*m->classes));
	if (!m->classes ||
	    !sp_rss_pages_read(m->pages, m->classes_at + sizeof(n), m->classes,
			       n * sizeof(*m->classes)))
		return;
	for (size_t i = 0; i + 1 < n; i++)
		if (m->classes[i] >= m->classes[i + 1])
			return;
	r->classes = m->classes;
	r->n = n;
	r->rule = m->ledger->memory.allocator == SP_ALLOCATOR_JEMALLOC
			  ? SP_RSS_RULE_DOUBLING
			  : SP_RSS_RULE_PAGES;
}

static void read_glibc(struct maker *m)
{
	if (m->ledger->memory.allocator != SP_ALLOCATOR_GLIBC ||
	    !m->classes_at ||
	    !sp_rss_pages_read(m->pages, m->classes_at, &m->glibc,
			       sizeof(m->glibc)) ||
	    m->glibc.n_classes || m->glibc.has_more != 1)
		memset(&m->glibc, 0, sizeof(m->glibc));
}

/* ---- what can be seen of it ---- */

static bool is_32_bit(uint64_t pid)
{
	unsigned char head[EI_NIDENT] = {0};
	const int fd = sp_mapped_open_exe(pid);

	if (fd < 0)
		return false;
	if (sp_patience_read(fd, head, sizeof(head), 0) !=
	    (ssize_t)sizeof(head))
		head[EI_CLASS] = 0;
	close(fd);
	return head[EI_CLASS] == ELFCLASS32;
}

static const char *why_unseen(uint64_t pid)
{
	struct sp_served_room room = sp_served_room();
	int fd = sp_mapped_open_exe(pid);
	const char *why = NULL;

	if (fd >= 0)
		fd = sp_served_keep(fd, &room);
	if (fd >= 0) {
		why = sp_launch_why_unseen(fd);
		close(fd);
	}
	return why;
}

static bool has_mapped(const struct sp_rss_maps *maps, const char *part)
{
	for (size_t i = 0; i < maps->n; i++) {
		const char *slash = strrchr(maps->list[i].path, '/');

		if (slash && strstr(slash, part))
			return true;
	}
	return false;
}

/* Whose malloc it is can be told for certain by the process alone: a library
 * may have brought another for itself. */
static bool has_other_malloc(const struct maker *m)
{
	static const char *const names[] = {"jemalloc", "tcmalloc", "mimalloc",
					    "snmalloc", "hoard"};

	if (m->ledger->memory.allocator)
		return m->ledger->memory.allocator != SP_ALLOCATOR_GLIBC;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (has_mapped(&m->maps, names[i]))
			return true;
	return !has_mapped(&m->maps, "/libc.so.6") &&
	       !has_mapped(&m->maps, "/libc-2.");
}

static void fill_hints(struct maker *m)
{
	struct stat st;

	m->hints.is_32_bit = is_32_bit(m->options->pid);
	m->ledger->is_32_bit = m->hints.is_32_bit;
	m->ledger->has_other_malloc =
		m->ledger->why_unseen || has_other_malloc(m);
	m->hints.is_glibc = !m->ledger->has_other_malloc;
	m->hints.large_bytes = m->ledger->memory.allocator
				       ? m->ledger->memory.large_bytes
				       : UINT64_MAX;
	if (m->target.fd >= 0 && sp_patience_stat(m->target.fd, "", &st) == 0)
		m->hints.profile_inode = st.st_ino;
	if (m->ledger->was_asked) {
		read_ranges(m);
		read_glibc(m);
	}
	if (m->hints.is_glibc && !m->hints.is_32_bit &&
	    (m->ledger->memory.allocator || sp_rss_pages_can_read(m->pages)))
		m->rounding.rule = SP_RSS_RULE_GLIBC;
	else
		read_classes(m);
}

/* ---- the rows ---- */

static void set_row(struct maker *m, enum sp_rss_row_name name,
		    enum sp_rss_kind kind, bool has_zero)
{
	const double bytes = (double)(m->parts.rss[kind] -
				      (has_zero ? m->parts.zero[kind] : 0));
	struct sp_rss_row *row = &m->ledger->rows[name];

	row->bytes = (struct sp_interval){bytes, bytes, bytes};
	row->swap = m->parts.swap[kind];
	row->is_there = bytes > 0 || row->swap;
}

/* What is zero is taken from the others. */
static void fill_huge(struct maker *m)
{
	static const enum sp_rss_kind kinds[] = {SP_RSS_HEAP, SP_RSS_LARGE,
						 SP_RSS_OTHER, SP_RSS_THREADS,
						 SP_RSS_STACK};
	struct sp_rss_row *row = &m->ledger->rows[SP_RSS_ROW_HUGE];
	double sum = 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		sum += (double)m->parts.zero[kinds[i]];
	row->bytes = (struct sp_interval){sum, sum, sum};
	row->is_there = sum > 0;
}

static void fill_rows(struct maker *m)
{
	struct sp_rss_ledger *l = m->ledger;

	set_row(m, SP_RSS_ROW_THREADS, SP_RSS_THREADS, true);
	set_row(m, SP_RSS_ROW_STACK, SP_RSS_STACK, true);
	set_row(m, SP_RSS_ROW_CODE, SP_RSS_CODE, false);
	set_row(m, SP_RSS_ROW_DATA, SP_RSS_DATA, false);
	set_row(m, SP_RSS_ROW_FILES, SP_RSS_FILES, false);
	set_row(m, SP_RSS_ROW_SHARED, SP_RSS_SHARED, false);
	set_row(m, SP_RSS_ROW_PROFILE, SP_RSS_OURS, false);
	sp_rss_heap_fill(&m->parts, &l->memory, &m->objects, m->maps.threads,
			 l->rows);
	l->rows[l->has_objects ? SP_RSS_ROW_ALIVE : SP_RSS_ROW_HEAP].swap =
		m->parts.swap[SP_RSS_HEAP] + m->parts.swap[SP_RSS_LARGE];
	l->rows[SP_RSS_ROW_ANONYMOUS].swap = m->parts.swap[SP_RSS_OTHER];
	fill_huge(m);
	l->rss = m->maps.rss;
	l->vm_rss = m->maps.vm_rss;
	l->swap = m->maps.swap;
	l->hugetlb = m->maps.hugetlb;
	l->threads = m->maps.threads;
	l->stacks = m->parts.stacks;
	memcpy(l->name, m->maps.name, sizeof(l->name));
}

static void fill_objects(struct maker *m)
{
	struct sp_rss_ledger *l = m->ledger;
	struct sp_error err;

	if (!l->has_profile || l->why_unseen ||
	    sp_target_read(&m->target, &err) < 0 ||
	    sp_rss_objects_find(m->target.file, m->pages, &m->parts,
				&m->rounding, m->options->confidence,
				&m->objects, &err) < 0)
		return;
	l->has_objects = m->objects.is_known;
	l->untouched = m->objects.untouched;
	l->unsampled_bytes = m->objects.unsampled_bytes;
	l->before_bytes = m->objects.before_bytes;
	l->before = m->objects.before;
	if (!m->options->absent)
		return;
	l->absent = m->objects.absent;
	l->n_absent = m->objects.n_absent;
	m->objects.absent = NULL;
}

/* ---- who pins ---- */

/* Heaps of the arenas but the main one: how many. */
static size_t list_arenas(struct maker *m, uint64_t *to)
{
	size_t n = 0;

	for (size_t i = 0; i < m->maps.n; i++)
		if (sp_rss_blocks_is_arena(&m->maps.list[i], m->pages))
			to[n++] = m->maps.list[i].start;
	return n;
}

static int find_pins(struct maker *m, struct sp_error *err)
{
	static const struct sp_symbolizer_options symbols;
	const struct sp_rss_options *o = m->options;
	struct sp_rss_ledger *l = m->ledger;
	uint64_t *arenas = calloc(m->maps.n + 1, sizeof(*arenas));
	const struct sp_rss_pins_question question = {
		.path = m->target.file,
		.symbols = o->symbols ? o->symbols : &symbols,
		.granularity = o->granularity,
		.confidence = o->confidence,
		.progress = o->progress,
	};
	const struct sp_rss_pins_process process = {
		.pages = m->pages,
		.is_glibc = m->hints.is_glibc && !m->hints.is_32_bit,
		.threads = m->maps.threads,
		.free_bytes = l->memory.free_bytes,
		.glibc = m->glibc,
		.arenas = arenas,
		.n_arenas = arenas ? list_arenas(m, arenas) : 0,
		.was_asked = l->was_asked,
		.slabs = m->slabs,
		.objects = m->objects_of_slabs,
	};
	int r = 0;

	l->pins_top = o->top;
	if (!arenas)
		return sp_error_memory(err, NULL);
	if (l->why_unseen)
		l->pins = sp_rss_pins_unknown(SP_RSS_PINS_UNSEEN);
	else if (l->has_profile)
		r = sp_rss_pins_find(&question, &process, &l->pins, err);
	else
		l->pins = sp_rss_pins_unknown(SP_RSS_PINS_NO_PROFILE);
	free(arenas);
	return r;
}

static int check_silence(const struct maker *m, struct sp_error *err)
{
	const uint64_t at = sp_rss_pages_silent(m->pages);

	return at ? sp_error_set(err, -ETIMEDOUT, NULL,
				 "the memory of process %" PRIu64
				 " at 0x%" PRIx64
				 " was not answered in %u ms: a process serves "
				 "it, which may be stopped",
				 m->options->pid, at, sp_patience_waited_ms())
		  : 0;
}

/* The kernel's figures are read last, and what they are split by next to them:
 * a process does not wait. */
static int make_ledger(struct maker *m, struct sp_error *err)
{
	struct sp_rss_ledger *l = m->ledger;
	int r;

	l->why_unseen = why_unseen(m->options->pid);
	if (!l->why_unseen)
		sp_brought_by_process(m->options->pid, l->brought);
	r = sp_target_open(&m->target, m->options->pid, err);
	if (r == -ETIMEDOUT)
		return r;
	l->has_profile = r == 0;
	l->was_asked = l->has_profile && ask_process(m);
	r = sp_rss_maps_read(m->options->pid, &m->maps, err);
	if (r < 0)
		return r;
	m->pages = sp_rss_pages_new(&m->maps);
	if (!m->pages)
		return sp_error_memory(err, NULL);
	if (l->was_asked && l->memory.allocator == SP_ALLOCATOR_JEMALLOC)
		read_slabs(m);
	l->is_unreadable = !sp_rss_pages_can_read(m->pages) ||
			   !sp_rss_pages_can_ask(m->pages);
	fill_hints(m);
	if (sp_rss_parts_find(&m->maps, m->pages, &m->hints, &m->parts) < 0)
		return sp_error_memory(err, NULL);
	fill_objects(m);
	fill_rows(m);
	r = m->options->pins ? find_pins(m, err) : 0;
	return r == 0 ? check_silence(m, err) : r;
}

int sp_rss_ledger_make(const struct sp_rss_options *options,
		       struct sp_rss_ledger *ret, struct sp_error *err)
{
	struct maker m = {.options = options, .ledger = ret};
	int r;

	memset(ret, 0, sizeof(*ret));
	ret->pid = options->pid;
	ret->confidence = options->confidence;
	ret->waited_ns = options->timeout_ns;
	r = make_ledger(&m, err);
	release_slabs(&m);
	sp_rss_objects_free(&m.objects);
	sp_rss_parts_free(&m.parts);
	sp_rss_pages_free(m.pages);
	sp_rss_maps_free(&m.maps);
	sp_target_close(&m.target);
	free(m.ranges);
	free(m.classes);
	free(m.objects_of_slabs);
	return r;
}
