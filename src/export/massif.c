/* SPDX-License-Identifier: MIT */
/*
 * Paths are in the order of their frames, so each node of a tree is a range of
 * paths with the same beginning.  Running sums over the paths are rounded, and
 * a node is the difference of two of them, so rounded nodes still add up.
 */
#include "export/format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/order.h"
#include "export/callpath.h"
#include "stats/adjust.h"
#include "stats/timeline.h"
#include "text/lack.h"
#include "text/text.h"

#define POINTS SP_EXPORT_MASSIF_POINTS

/* Smaller parts of a snapshot share a line. */
#define THRESHOLD_PERCENT 1

/* Callers beyond are left out: a line is indented by its depth. */
#define DEPTH_MAX 1000

struct snapshot {
	uint64_t time_ns;
	uint64_t bytes;
	const uint64_t *sums; /* NULL: without a tree */
	const char *kind;
};

/* Paths [begin, end) have the first frames in common. */
struct range {
	uint32_t begin;
	uint32_t end;
	uint64_t bytes;
};

struct document {
	FILE *out;
	const struct sp_analysis *analysis;
	const struct sp_profile *profile;
	struct sp_callpaths paths; /* with texts that begin no comment */
	char *command;             /* likewise */
	/* Bytes of the paths before each, of the peak and of the end. */
	uint64_t *sums[2];
	struct sp_timeline_point *points;
	/* While a tree is written: the children of all nodes on the way. */
	const uint64_t *now;
	struct range *ranges;
	size_t n_ranges;
	size_t room;
};

static uint64_t rounded_value(double value)
{
	return value < 0x1p63 ? (uint64_t)(value + 0.5) : (uint64_t)1 << 63;
}

/* For live objects at the peak, or at the end. */
static int sum_up(const struct document *d, const struct sp_selection *births,
		  enum sp_view view, uint64_t *ret, struct sp_error *err)
{
	const uint32_t n = d->paths.n_paths;
	struct sp_selection alive = *births;
	double *bytes = calloc((size_t)n + 1, sizeof(*bytes)), sum = 0;
	struct sp_sums *sums;
	int r;

	if (!bytes)
		return sp_error_memory(err, d->profile->path);
	alive.view = view;
	alive.at_ns = SP_NEVER;
	alive.peak_ns = d->analysis->peak.rows_ns;
	r = sp_sums_new(d->profile, &alive, &sums, err);
	if (r < 0) {
		free(bytes);
		return r;
	}
	for (size_t i = 0; i < d->profile->n_stacks; i++)
		if (sums->stacks[i].all.samples)
			bytes[d->paths.path_of_stack[i]] +=
				sp_adjusted(&d->analysis->how, &sums->stacks[i])
					.est_bytes;
	for (uint32_t i = 0; i < n; i++) {
		ret[i] = rounded_value(sum);
		sum += bytes[i];
	}
	ret[n] = rounded_value(sum);
	sp_sums_free(sums, d->profile);
	free(bytes);
	return 0;
}

/* ---- the tree ---- */

SP_ORDER(compare_ranges, struct range, SP_DOWN(bytes) || SP_UP(begin));

static int add_range(struct document *d, uint32_t begin, uint32_t end)
{
	if (sp_array_reserve((void **)&d->ranges, &d->room, d->n_ranges,
			     sizeof(*d->ranges)) < 0)
		return -ENOMEM;
	d->ranges[d->n_ranges++] =
		(struct range){begin, end, d->now[end] - d->now[begin]};
	return 0;
}

/* The children of paths [begin, end), which share `depth` frames; a path that
 * ends there is one of its own. */
static int split_node(struct document *d, uint32_t begin, uint32_t end,
		      uint32_t depth)
{
	const struct sp_callpath *paths = d->paths.paths;

	while (begin < end) {
		uint32_t next = begin + 1;

		if (paths[begin].n_frames > depth)
			while (next < end && paths[next].frames[depth] ==
						     paths[begin].frames[depth])
				next++;
		if (d->now[next] > d->now[begin] &&
		    add_range(d, begin, next) < 0)
			return -ENOMEM;
		begin = next;
	}
	return 0;
}

/* Is all that there is a path that ends here? */
static bool is_leaf(const struct document *d, size_t first, uint32_t depth)
{
	return d->n_ranges == first + 1 &&
	       d->paths.paths[d->ranges[first].begin].n_frames <= depth;
}

static int put_children(struct document *d, size_t first, uint64_t total,
			uint32_t depth);

/*
 * The node of paths [begin, end): "nCHILDREN: BYTES NAME", indented, and its
 * children.  Ranges of the way up stay below `first`.
 */
static int put_node(struct document *d, struct range node, uint64_t total,
		    uint32_t depth)
{
	const struct sp_callpath *path = &d->paths.paths[node.begin];
	const size_t first = d->n_ranges;
	size_t n_large = 0, n;
	int r;

	if (depth < DEPTH_MAX && split_node(d, node.begin, node.end, depth) < 0)
		return -ENOMEM;
	if (is_leaf(d, first, depth))
		d->n_ranges = first;
	n = d->n_ranges - first;
	if (n)
		qsort(d->ranges + first, n, sizeof(*d->ranges), compare_ranges);
	while (n_large < n && (double)d->ranges[first + n_large].bytes >=
				      (double)total * THRESHOLD_PERCENT / 100)
		n_large++;
	fprintf(d->out, "%*sn%zu: %" PRIu64 " ", (int)depth, "",
		n_large + (n_large < n), node.bytes);
	if (depth)
		sp_text_print(d->out, d->paths.texts[path->frames[depth - 1]]);
	else
		fputs("(heap allocation functions) malloc/new/new[], "
		      "--alloc-fns, etc.",
		      d->out);
	putc('\n', d->out);
	r = put_children(d, first, total, depth);
	d->n_ranges = first;
	return r;
}

static void put_folded(struct document *d, size_t n, uint64_t bytes,
		       uint32_t depth)
{
	fprintf(d->out,
		"%*sn0: %" PRIu64 " in %zu place%s, %sbelow massif's "
		"threshold (%d.00%%)\n",
		(int)depth + 1, "", bytes, n, sp_text_plural(n),
		n == 1 ? "" : "all ", THRESHOLD_PERCENT);
}

static int put_children(struct document *d, size_t first, uint64_t total,
			uint32_t depth)
{
	const double least = (double)total * THRESHOLD_PERCENT / 100;
	const size_t end = d->n_ranges;
	uint64_t folded = 0;

	for (size_t i = first; i < end; i++) {
		const struct range child = d->ranges[i];

		if ((double)child.bytes < least) {
			for (size_t k = i; k < end; k++)
				folded += d->ranges[k].bytes;
			put_folded(d, end - i, folded, depth);
			return 0;
		}
		if (d->paths.paths[child.begin].n_frames <= depth)
			fprintf(d->out, "%*sn0: %" PRIu64 " (caller unknown)\n",
				(int)depth + 1, "", child.bytes);
		else if (put_node(d, child, total, depth + 1) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int put_tree(struct document *d, const uint64_t *sums)
{
	const struct range all = {0, d->paths.n_paths, sums[d->paths.n_paths]};

	d->now = sums;
	d->n_ranges = 0;
	if (!d->paths.n_paths) {
		fputs("n0: 0 (heap allocation functions) malloc/new/new[], "
		      "--alloc-fns, etc.\n",
		      d->out);
		return 0;
	}
	return put_node(d, all, all.bytes, 0);
}

/* ---- snapshots ---- */

static int put_snapshot(struct document *d, const struct snapshot *s,
			unsigned int number)
{
	fprintf(d->out,
		"#-----------\nsnapshot=%u\n#-----------\n"
		"time=%" PRIu64 ".%03u\nmem_heap_B=%" PRIu64 "\n"
		"mem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=%s\n",
		number, s->time_ns / 1000000,
		(unsigned int)(s->time_ns / 1000 % 1000), s->bytes, s->kind);
	return s->sums ? put_tree(d, s->sums) : 0;
}

/* In the order of time: the points of the timeline and the peak among them, the
 * last one with a tree. */
static int put_snapshots(struct document *d)
{
	const uint32_t n = d->paths.n_paths;
	const struct snapshot peak = {
		.time_ns = d->analysis->peak.time_ns,
		.bytes = d->sums[0][n],
		.sums = d->sums[0],
		.kind = "peak",
	};
	bool is_before = true;
	unsigned int number = 0;

	for (size_t i = 0; i < POINTS; i++) {
		const bool is_last = i + 1 == POINTS;
		const struct snapshot point = {
			.time_ns = d->points[i].time_ns,
			.bytes = is_last ? d->sums[1][n]
					 : rounded_value(
						   d->points[i]
							   .live_bytes.value),
			.sums = is_last ? d->sums[1] : NULL,
			.kind = is_last ? "detailed" : "empty",
		};

		if (is_before && (is_last || point.time_ns > peak.time_ns)) {
			is_before = false;
			if (put_snapshot(d, &peak, number++) < 0)
				return -ENOMEM;
		}
		if (put_snapshot(d, &point, number++) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int put_document(struct document *d, struct sp_error *err)
{
	const struct sp_profile *p = d->profile;
	const struct sp_whole whole = sp_whole_of(p);

	fprintf(d->out,
		"desc: sampleprof, one sample in %" PRIu64 " bytes; all "
		"figures are estimates",
		p->period_bytes);
	if (!sp_whole_is_all(&whole)) {
		fputs("; ", d->out);
		sp_lack_print(d->out, &whole);
	}
	fputs("\ncmd: ", d->out);
	sp_text_print(d->out, d->command);
	fputs("\ntime_unit: ms\n", d->out);
	return put_snapshots(d) < 0 ? sp_error_memory(err, d->profile->path)
				    : 0;
}

static void hide_comments(char *text)
{
	for (; (text = strchr(text, '#')); text++)
		*text = '~';
}

static int prepare_document(struct document *d,
			    const struct sp_aggregate *aggregate,
			    const struct sp_selection *births,
			    struct sp_error *err)
{
	const struct sp_analysis *a = d->analysis;
	const enum sp_view views[2] = {SP_VIEW_PEAK, SP_VIEW_LIVE};
	int r = sp_callpaths_init(&d->paths, aggregate, births, err);

	if (r < 0)
		return r;
	d->command = strdup(d->profile->command);
	d->points = calloc(POINTS, sizeof(*d->points));
	for (int i = 0; i < 2; i++)
		d->sums[i] = calloc((size_t)d->paths.n_paths + 1,
				    sizeof(*d->sums[i]));
	if (!d->command || !d->points || !d->sums[0] || !d->sums[1])
		return sp_error_memory(err, d->profile->path);
	hide_comments(d->command);
	for (uint32_t i = 0; i < d->paths.n_texts; i++)
		hide_comments(d->paths.texts[i]);
	for (int i = 0; i < 2 && r >= 0; i++)
		r = sum_up(d, births, views[i], d->sums[i], err);
	return r < 0 ? r
		     : sp_timeline(d->profile, births, &a->how, d->points,
				   POINTS, err);
}

int sp_export_massif_write(FILE *out, const struct sp_aggregate *aggregate,
			   const struct sp_export_options *options,
			   struct sp_error *err)
{
	const struct sp_analysis *a = aggregate->analysis;
	struct document d = {.out = out, .analysis = a, .profile = a->profile};
	struct sp_selection births;
	int r = sp_question_needs_frees(a->profile, "massif", err);

	(void)options;
	if (r >= 0)
		r = sp_selection_births(&a->selection, a->profile, "massif",
					&births, err);
	if (r < 0)
		return r;
	r = prepare_document(&d, aggregate, &births, err);
	if (r >= 0)
		r = put_document(&d, err);
	sp_callpaths_done(&d.paths);
	free(d.command);
	free(d.sums[0]);
	free(d.sums[1]);
	free(d.points);
	free(d.ranges);
	return r < 0 ? r : 0;
}
