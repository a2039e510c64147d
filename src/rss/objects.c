/* SPDX-License-Identifier: MIT */
#include "rss/objects.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/order.h"
#include "base/parse.h"
#include "model/whole.h"
#include "read/reader.h"
#include "report/analysis.h"
#include "report/load.h"
#include "stats/sums.h"

/* An alive sample and where it is; 0: not known. */
struct object {
	const struct sp_sample *sample;
	uint64_t address;
	uint64_t rounding_bytes; /* resident, beyond its size */
};

struct objects {
	struct object *list; /* by ascending ids, as samples are */
	size_t n;
};

static struct object *find_object(const struct objects *all, uint64_t id)
{
	size_t at;

	SP_LOWER_BOUND(at, all->n, all->list[at].sample->id < id);
	return at < all->n && all->list[at].sample->id == id ? &all->list[at]
							     : NULL;
}

/* A profile in memory has no addresses: they are read for those alone that are
 * alive. */
static int read_addresses(const char *path, const struct objects *all,
			  struct sp_error *err)
{
	struct sp_reader *reader = malloc(sizeof(*reader));
	struct sp_decoded d;
	struct object *found;
	int r;

	if (!reader)
		return sp_error_memory(err, NULL);
	r = sp_reader_open(reader, path, err);
	while (r >= 0 && (r = sp_reader_next(reader, &d, err)) > 0) {
		found = d.type == SP_RECORD_SAMPLE
				? find_object(all, d.u.sample.id)
				: NULL;
		if (found)
			found->address = d.u.sample.address;
	}
	sp_reader_close(reader);
	free(reader);
	return r;
}

/* The sums of samples that are of `share` of
 * their bytes (E60). */
static void add_share(struct sp_acc *sums, const struct sp_profile *profile,
		      const struct sp_sample *s, double share)
{
	struct sp_acc one;

	if (!(share > 0))
		return;
	sp_acc_init(&one, s->period_bytes);
	sp_acc_add(&one, &profile->law, s->size_bytes, s->offset_bytes,
		   s->period_bytes);
	sp_acc_share(&one, share);
	sp_acc_merge(sums, &one);
}

struct sums {
	struct sp_acc untouched, untouched_small, elsewhere;
};

/* With room for all. */
static void add_absent(struct sp_rss_objects *to, const struct sp_sample *s,
		       uint64_t resident_bytes)
{
	if (resident_bytes < s->size_bytes)
		to->absent[to->n_absent++] = (struct sp_absent_object){
			s->id, resident_bytes,
			(double)(s->size_bytes - resident_bytes) /
				sp_inclusion_probability(s->size_bytes,
							 s->period_bytes)};
}

static void add_object(struct sums *sums, const struct sp_profile *profile,
		       struct sp_rss_pages *pages,
		       const struct sp_rss_parts *parts, const struct object *o,
		       struct sp_rss_objects *ret)
{
	const uint64_t bytes = o->sample->size_bytes;
	struct sp_rss_part *part = sp_rss_parts_at(parts, o->address);
	const uint64_t resident =
		sp_rss_pages_resident(pages, o->address, o->address + bytes);
	const double share = (double)resident / (double)bytes;

	add_absent(ret, o->sample, resident);
	add_share(&sums->untouched, profile, o->sample, 1 - share);
	if (!part)
		return;
	part->has_objects = true;
	if (part->kind != SP_RSS_LARGE)
		add_share(&sums->untouched_small, profile, o->sample,
			  1 - share);
	if (part->kind == SP_RSS_OTHER)
		add_share(&sums->elsewhere, profile, o->sample, share);
}

/* Without a sample nothing is claimed: that there may be some is the same for
 * all parts of what is alive, which has limits of its own. */
static struct sp_interval limits_of(const struct sp_acc *acc, double confidence)
{
	return acc->samples ? sp_estimate_bytes_p3(acc, confidence)
			    : (struct sp_interval){0, 0, 0};
}

/* ---- rounding ---- */

static uint64_t rounding_at(struct sp_rss_rounding *rounding,
			    struct sp_rss_pages *pages, const struct object *o)
{
	const uint64_t end = o->address + o->sample->size_bytes;
	const struct sp_rss_extent e = sp_rss_rounding_of(
		rounding, pages, o->address, o->sample->size_bytes);

	return e.end ? sp_rss_pages_resident(pages, e.start, o->address) +
			       sp_rss_pages_resident(pages, end, e.end)
		     : 0;
}

static double rounding_share(const struct object *o)
{
	return (double)o->rounding_bytes / (double)o->sample->size_bytes;
}

/* The rounding of a small object is more than its size, but a share is at most
 * 1.  So all are shares of the largest, and the sum is so much larger (E60). */
static void add_rounding(const struct sp_profile *profile,
			 struct sp_rss_pages *pages,
			 struct sp_rss_rounding *rounding, struct objects *all,
			 double confidence, struct sp_rss_objects *ret)
{
	double largest = 1;
	struct sp_acc sum;

	for (size_t i = 0; i < all->n; i++) {
		all->list[i].rounding_bytes =
			rounding_at(rounding, pages, &all->list[i]);
		largest = fmax(largest, rounding_share(&all->list[i]));
	}
	ret->has_rounding = !ret->others && sp_rss_rounding_is_right(rounding);
	if (!ret->has_rounding)
		return;
	sp_acc_init(&sum, 1);
	for (size_t i = 0; i < all->n; i++)
		add_share(&sum, profile, all->list[i].sample,
			  rounding_share(&all->list[i]) / largest);
	ret->rounding = limits_of(&sum, confidence);
	ret->rounding.value *= largest;
	ret->rounding.lo *= largest;
	ret->rounding.hi *= largest;
}

SP_ORDER(compare_addresses, struct object, SP_UP(address));

static void add_objects(const struct sp_profile *profile,
			struct sp_rss_pages *pages,
			const struct sp_rss_parts *parts, struct objects *all,
			double confidence, struct sp_rss_objects *ret)
{
	struct sums sums;

	sp_acc_init(&sums.untouched, 1);
	sp_acc_init(&sums.untouched_small, 1);
	sp_acc_init(&sums.elsewhere, 1);
	/* In the order of addresses, as the pages are asked for. */
	if (all->n)
		qsort(all->list, all->n, sizeof(*all->list), compare_addresses);
	for (size_t i = 0; i < all->n; i++) {
		if (all->list[i].address)
			add_object(&sums, profile, pages, parts, &all->list[i],
				   ret);
		ret->samples += all->list[i].address != 0;
		ret->others += all->list[i].address == 0;
	}
	for (size_t i = 0; i < parts->n; i++)
		if (parts->list[i].has_objects &&
		    parts->list[i].kind == SP_RSS_OTHER)
			ret->around_bytes += sp_rss_pages_resident(
				pages, parts->list[i].start,
				parts->list[i].end);
	ret->untouched = limits_of(&sums.untouched, confidence);
	ret->untouched_small = limits_of(&sums.untouched_small, confidence);
	ret->elsewhere = limits_of(&sums.elsewhere, confidence);
}

static int list_alive(const struct sp_profile *profile, struct objects *ret)
{
	ret->n = 0;
	ret->list = calloc(profile->n_samples + 1, sizeof(*ret->list));
	for (size_t i = 0; ret->list && i < profile->n_samples; i++)
		if (profile->samples[i].freed_ns == SP_NEVER)
			ret->list[ret->n++].sample = &profile->samples[i];
	return ret->list ? 0 : -ENOMEM;
}

int sp_rss_objects_weigh(const char *path, struct sp_profile *profile,
			 struct sp_rss_pages *pages, struct sp_error *err)
{
	struct objects all = {.n = 0};
	int r = list_alive(profile, &all);

	profile->resident = calloc(profile->n_samples + 1, sizeof(float));
	if (r < 0 || !profile->resident) {
		free(all.list);
		return sp_error_memory(err, NULL);
	}
	r = read_addresses(path, &all, err);
	if (r >= 0 && all.n)
		qsort(all.list, all.n, sizeof(*all.list), compare_addresses);
	for (size_t i = 0; r >= 0 && i < all.n; i++) {
		const struct object *o = &all.list[i];
		const uint64_t bytes = o->sample->size_bytes;

		profile->resident[o->sample - profile->samples] =
			(float)((double)sp_rss_pages_resident(
					pages, o->address, o->address + bytes) /
				(double)bytes);
	}
	free(all.list);
	return r < 0 ? r : 0;
}

static int find_alive(const char *path, const struct sp_analysis *a,
		      struct sp_rss_pages *pages,
		      const struct sp_rss_parts *parts,
		      struct sp_rss_rounding *rounding,
		      struct sp_rss_objects *ret, struct sp_error *err)
{
	const struct sp_profile *profile = a->profile;
	const char *before = sp_profile_info(profile, "attached.before_bytes");
	struct sp_estimation how = a->how;
	struct objects all;
	int r;

	/* What was discarded of live objects was written once more. */
	ret->unsampled_bytes = sp_profile_off_bytes(profile);
	if (before)
		sp_parse_u64(before, &ret->before_bytes);
	ret->before = sp_profile_unseen(profile);
	if (!a->live)
		return 0;
	if (list_alive(profile, &all) < 0)
		return sp_error_memory(err, NULL);
	ret->absent = calloc(all.n + 1, sizeof(*ret->absent));
	r = ret->absent ? read_addresses(path, &all, err)
			: sp_error_memory(err, NULL);
	if (r >= 0) {
		ret->is_known = true;
		add_objects(profile, pages, parts, &all,
			    sp_confidence_of_each(a->how.confidence, 2), ret);
		add_rounding(profile, pages, rounding, &all, a->how.confidence,
			     ret);
		if (ret->untouched.value > 0)
			how.confidence =
				sp_confidence_of_each(how.confidence, 2);
		ret->live = sp_estimate_bytes(&how, &a->live->all);
	}
	free(all.list);
	return r;
}

void sp_rss_objects_free(struct sp_rss_objects *objects)
{
	free(objects->absent);
}

int sp_rss_objects_find(const char *path, struct sp_rss_pages *pages,
			const struct sp_rss_parts *parts,
			struct sp_rss_rounding *rounding, double confidence,
			struct sp_rss_objects *ret, struct sp_error *err)
{
	static const struct sp_load_needs needs = {.while_written = true};
	const char *files[] = {path};
	struct sp_question question;
	struct sp_analysis *analysis;
	struct sp_profile *profile;
	int r;

	memset(ret, 0, sizeof(*ret));
	sp_question_init(&question);
	question.confidence = confidence;
	r = sp_load(files, 1, &question, &needs, NULL, NULL, &profile, err);
	if (r < 0)
		return r;
	r = sp_analysis_new(profile, &question, SP_VIEW_ALLOC, &analysis, err);
	if (r >= 0) {
		r = find_alive(path, analysis, pages, parts, rounding, ret,
			       err);
		sp_analysis_free(analysis);
	}
	sp_profile_free(profile);
	return r < 0 ? r : 0;
}
