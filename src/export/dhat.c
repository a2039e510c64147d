/* SPDX-License-Identifier: MIT */
/*
 * Figures are sums over samples (E46), which add up over paths as viewers
 * expect.  The maximum of a path is the highest point of its own curve.
 */
#include "export/format.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "export/callpath.h"
#include "model/walk.h"
#include "text/json.h"

/* Readers in JavaScript know no integers beyond. */
#define MOST ((int64_t)1 << 53)

/* Blocks that live shorter are short-lived to the viewer, in microseconds. */
#define SHORT_LIVED_US 10

struct amount {
	double bytes;
	double blocks;
};

/* The figures of one path. */
struct point {
	struct amount total;
	struct amount now; /* while walking */
	struct amount most;
	struct amount at_peak;
	struct amount at_end;
	double lived_ns; /* of all blocks together */
};

struct document {
	const struct sp_analysis *analysis;
	const struct sp_profile *profile;
	struct sp_selection births;
	struct sp_selection peak; /* of these births */
	struct sp_callpaths paths;
	struct point *points; /* of each path */
};

/* What the sample adds to the rows of a report. */
static struct amount weight_of(const struct document *d,
			       const struct sp_selection *of,
			       const struct sp_sample *s)
{
	struct sp_acc part;

	if (!sp_selection_has(of, d->profile, s))
		return (struct amount){0};
	part = sp_analysis_part(d->analysis, of, s);
	return (struct amount){part.est_bytes, part.est_count};
}

static void add_amount(struct amount *sum, struct amount amount, double sign)
{
	sum->bytes += sign * amount.bytes;
	sum->blocks += sign * amount.blocks;
}

static struct point *point_of(const struct document *d,
			      const struct sp_sample *s)
{
	return &d->points[d->paths.path_of_stack[s->stack]];
}

/* Blocks that are alive at the end have lived until then. */
static void add_sample(struct document *d, const struct sp_sample *s)
{
	const struct amount weight = weight_of(d, &d->births, s);
	const bool is_alive = s->freed_ns == SP_NEVER;
	const uint64_t until =
		is_alive ? sp_sample_stop_ns(d->profile, s) : s->freed_ns;
	struct point *point = point_of(d, s);

	add_amount(&point->total, weight, 1);
	if (until > s->born_ns)
		point->lived_ns += weight.blocks * (double)(until - s->born_ns);
	add_amount(&point->at_peak, weight_of(d, &d->peak, s), 1);
	if (is_alive)
		add_amount(&point->at_end, weight, 1);
}

/* It begins (sign 1) or ceases (sign -1) to be alive. */
static void pass_sample(struct document *d, const struct sp_sample *s,
			double sign)
{
	struct point *point = point_of(d, s);

	add_amount(&point->now, weight_of(d, &d->births, s), sign);
	if (point->now.bytes > point->most.bytes)
		point->most = point->now;
}

/* A path may have several stacks, so its maximum needs all of them together. */
static int take_event(void *arg, enum sp_sample_event event,
		      const struct sp_sample *s)
{
	struct document *d = arg;
	const uint64_t gone_ns = sp_sample_gone_ns(d->profile, s);

	if (!sp_selection_has(&d->births, d->profile, s))
		return 0;
	if (d->paths.path_of_stack[s->stack] == UINT32_MAX)
		return -ESTALE;
	if (event == SP_SAMPLE_BORN) {
		pass_sample(d, s, 1);
		return 0;
	}
	add_sample(d, s);
	if (gone_ns > s->born_ns && gone_ns != SP_NEVER)
		pass_sample(d, s, -1);
	return 0;
}

static int sum_up(struct document *d, struct sp_error *err)
{
	const struct sp_profile *p = d->profile;

	d->points = calloc(d->paths.n_paths + 1, sizeof(*d->points));
	if (!d->points)
		return sp_error_memory(err, p->path);
	return sp_profile_walk(p, NULL, NULL, take_event, d, err);
}

/* ---- writing ---- */

static uint64_t rounded_value(double value, uint64_t *hash)
{
	*hash = sp_hash_word(*hash, 1);
	return (uint64_t)sp_export_round(value, *hash, MOST);
}

static uint64_t largest_of(uint64_t a, uint64_t b, uint64_t c)
{
	const uint64_t most = a > b ? a : b;

	return most > c ? most : c;
}

/* Rounding by the same hash keeps equal amounts equal.  The maximum of a path
 * is at least its bytes at the peak and at the end. */
static void put_live_blocks(struct sp_json *json, const struct point *point,
			    uint64_t hash)
{
	const uint64_t same = hash;
	uint64_t gb = rounded_value(point->at_peak.bytes, &hash);
	uint64_t gbk = rounded_value(point->at_peak.blocks, &hash);
	uint64_t eb, ebk, mb, mbk;

	hash = same;
	eb = rounded_value(point->at_end.bytes, &hash);
	ebk = rounded_value(point->at_end.blocks, &hash);
	hash = same;
	mb = rounded_value(point->most.bytes, &hash);
	mbk = rounded_value(point->most.blocks, &hash);
	sp_json_u64(json, "tl", rounded_value(point->lived_ns / 1e3, &hash));
	sp_json_u64(json, "mb", largest_of(mb, gb, eb));
	sp_json_u64(json, "mbk", mbk);
	sp_json_u64(json, "gb", gb);
	sp_json_u64(json, "gbk", gbk);
	sp_json_u64(json, "eb", eb);
	sp_json_u64(json, "ebk", ebk);
}

static void put_point(struct sp_json *json, const struct document *d,
		      uint32_t i)
{
	const struct sp_callpath *path = &d->paths.paths[i];
	const struct point *point = &d->points[i];
	const uint64_t seed = sp_hash_word(sp_export_seed(d->profile), i);
	uint64_t hash = seed;

	sp_json_open_flat(json, NULL, '{');
	sp_json_u64(json, "tb", rounded_value(point->total.bytes, &hash));
	sp_json_u64(json, "tbk", rounded_value(point->total.blocks, &hash));
	if (d->profile->has_frees)
		put_live_blocks(json, point, seed);
	sp_json_open(json, "fs", '[');
	for (uint32_t k = 0; k < path->n_frames; k++)
		sp_json_u64(json, NULL, path->frames[k]);
	sp_json_close(json, ']');
	sp_json_close(json, '}');
}

static uint64_t ns_to_us(uint64_t ns)
{
	return ns / 1000;
}

/* The viewer divides by the duration. */
static uint64_t end_time(const struct sp_profile *profile)
{
	const uint64_t us = ns_to_us(profile->duration_ns);

	return us ? us : 1;
}

static void put_head(struct sp_json *json, const struct document *d)
{
	const struct sp_profile *p = d->profile;

	sp_json_u64(json, "dhatFileVersion", 2);
	sp_json_string(json, "mode", "heap");
	sp_json_string(json, "verb", "Allocated");
	sp_json_bool(json, "bklt", p->has_frees);
	sp_json_bool(json, "bkacc", false);
	sp_json_string(json, "tu", "us");
	sp_json_string(json, "Mtu", "s");
	if (p->has_frees)
		sp_json_u64(json, "tuth", SHORT_LIVED_US);
	sp_json_string(json, "cmd", p->command);
	sp_json_u64(json, "pid", p->pid);
	if (p->has_frees)
		sp_json_u64(json, "tg", ns_to_us(d->analysis->peak.time_ns));
	sp_json_u64(json, "te", end_time(p));
}

static void put_document(struct sp_json *json, const struct document *d)
{
	sp_json_open(json, NULL, '{');
	put_head(json, d);
	sp_json_open(json, "pps", '[');
	for (uint32_t i = 0; i < d->paths.n_paths; i++)
		put_point(json, d, i);
	sp_json_close(json, ']');
	sp_json_open(json, "ftbl", '[');
	for (uint32_t i = 0; i < d->paths.n_texts; i++)
		sp_json_string(json, NULL, d->paths.texts[i]);
	sp_json_close(json, ']');
	sp_json_end(json);
}

int sp_export_dhat_write(FILE *out, const struct sp_aggregate *aggregate,
			 const struct sp_export_options *options,
			 struct sp_error *err)
{
	const struct sp_analysis *a = aggregate->analysis;
	struct document d = {.analysis = a, .profile = a->profile};
	struct sp_json json = {.out = out, .is_first = true};
	int r = sp_selection_births(&a->selection, a->profile, "dhat",
				    &d.births, err);

	(void)options;
	if (r < 0)
		return r;
	d.peak = d.births;
	d.peak.view = SP_VIEW_PEAK;
	d.peak.peak_ns = a->peak.rows_ns;
	r = sp_callpaths_init(&d.paths, aggregate, &d.births, err);
	if (r < 0)
		return r;
	r = sum_up(&d, err);
	if (r >= 0)
		put_document(&json, &d);
	free(d.points);
	sp_callpaths_done(&d.paths);
	return r < 0 ? r : 0;
}
