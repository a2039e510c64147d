/* SPDX-License-Identifier: MIT */
#include "rss/weigh.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "control/target.h"
#include "report/ledgers.h"
#include "rss/absent.h"
#include "rss/maps.h"
#include "rss/objects.h"
#include "rss/pages.h"

/* Zero all over in huge pages is as if it were not there. */
static int find_zeros(const struct sp_rss_maps *maps,
		      struct sp_rss_pages *pages)
{
	for (size_t i = 0; i < maps->n; i++)
		if (maps->list[i].huge &&
		    sp_rss_pages_find_zero(pages, &maps->list[i]) < 0)
			return -ENOMEM;
	return 0;
}

static int weigh_profile(const char *path, struct sp_profile *profile,
			 const struct sp_rss_maps *maps, struct sp_error *err)
{
	struct sp_rss_pages *pages = sp_rss_pages_new(maps);
	int r;

	if (!pages || find_zeros(maps, pages) < 0)
		r = sp_error_memory(err, NULL);
	else if (!sp_rss_pages_can_ask(pages))
		r = sp_error_set(err, -EACCES, NULL,
				 "the pages of that process cannot be read: "
				 "run as its user, or root");
	else
		r = sp_rss_objects_weigh(path, profile, pages, err);
	sp_rss_pages_free(pages);
	return r;
}

static int weigh_now(const char *path, uint64_t pid, struct sp_profile *profile,
		     struct sp_error *err)
{
	struct sp_rss_maps maps = {.n = 0};
	int r = sp_rss_maps_read(pid, &maps, err);

	if (r >= 0)
		r = weigh_profile(path, profile, &maps, err);
	sp_rss_maps_free(&maps);
	return r;
}

/* ---- what a ledger has kept ---- */

/* All but those of the list are resident; both by ascending ids. */
static int weigh_by(struct sp_profile *p, const struct sp_absent_object *list,
		    size_t n)
{
	size_t k = 0;

	p->resident = calloc(p->n_samples + 1, sizeof(*p->resident));
	if (!p->resident)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_samples; i++) {
		const struct sp_sample *s = &p->samples[i];

		while (k < n && list[k].id < s->id)
			k++;
		p->resident[i] =
			k < n && list[k].id == s->id &&
					list[k].resident_bytes < s->size_bytes
				? (float)((double)list[k].resident_bytes /
					  (double)s->size_bytes)
				: 1;
	}
	return 0;
}

static int weigh_by_text(struct sp_profile *p, const char *text)
{
	struct sp_absent_object *list;
	size_t n;
	int r = sp_absent_read(text, &list, &n);

	if (r < 0)
		return r;
	r = weigh_by(p, list, n);
	free(list);
	return r;
}

static int weigh_then(const struct sp_ledger *l, struct sp_profile *p,
		      struct sp_error *err)
{
	json_t *json = json_loads(l->text, 0, NULL);
	const char *text = json_string_value(
		json_object_get(json_object_get(json, "absent"), "samples"));
	int r = text ? weigh_by_text(p, text) : -ENODATA;

	json_decref(json);
	if (r == 0)
		p->resident_at_ns =
			l->why == SP_LEDGER_END ? SP_NEVER : l->time_ns;
	if (r == -ENOMEM)
		return sp_error_memory(err, NULL);
	return r == 0 ? 0
		      : sp_error_set(
				err, r, p->path,
				"its ledger of resident memory does not say "
				"which objects were resident: record again");
}

/* NULL: there is none of that moment. */
static const struct sp_ledger *find_ledger(const struct sp_ledgers *all,
					   const struct sp_moment *at)
{
	return at->kind == SP_MOMENT_SNAPSHOT
		       ? sp_ledgers_find(all, at->name)
		       : sp_ledgers_find(all, at->kind == SP_MOMENT_RSS_PEAK
						      ? "peak"
						      : "end");
}

static int fail_without(const struct sp_ledgers *all, struct sp_profile *p,
			const struct sp_moment *at, struct sp_error *err)
{
	char others[160] = "";
	size_t used = 0;

	for (size_t i = 0; i < all->n && used < sizeof(others); i++)
		used += (size_t)snprintf(
			others + used, sizeof(others) - used, "%s%.40s",
			i ? ", " : "; it has: ", sp_ledger_name(&all->list[i]));
	if (at->kind == SP_MOMENT_RSS_PEAK)
		return sp_error_set(
			err, -ENODATA, p->path,
			"its resident pages near the peak of RSS were not "
			"recorded: `sampleprof run --rss-at-peak` does it%s",
			others);
	if (at->kind == SP_MOMENT_SNAPSHOT)
		return sp_error_set(
			err, -ENODATA, p->path,
			"its resident pages at %.64s were not recorded: "
			"`sampleprof ctl --rss PID snapshot NAME` does it%s",
			at->name, others);
	return sp_error_set(err, -ENODATA, p->path,
			    "the process has ended (or belongs to another "
			    "user), and its resident pages at the end were not "
			    "recorded: `sampleprof run --rss` does it%s",
			    others);
}

static int weigh_stored(const struct sp_moment *at, struct sp_profile *p,
			struct sp_error *err)
{
	const struct sp_ledger *found;
	struct sp_ledgers all;
	int r = sp_ledgers_read(p, &all);

	if (r < 0)
		r = sp_error_memory(err, NULL);
	else if (!(found = find_ledger(&all, at)))
		r = fail_without(&all, p, at, err);
	else
		r = weigh_then(found, p, err);
	sp_ledgers_free(&all);
	return r;
}

int sp_resident_weigh(const char *path, const struct sp_question *question,
		      struct sp_profile *profile, struct sp_error *err)
{
	const struct sp_moment *at = &question->at;
	uint64_t pid;

	profile->resident_at_ns = SP_NEVER;
	if (at->kind == SP_MOMENT_TIME || at->kind == SP_MOMENT_SHARE)
		return sp_error_set(
			err, -EINVAL, profile->path,
			"resident pages are known at the end and at snapshots: "
			"--at takes the name of a snapshot here (sampleprof "
			"ctl --rss PID snapshot NAME), or end");
	if (at->kind == SP_MOMENT_NONE || at->kind == SP_MOMENT_END) {
		if (sp_target_writer(path, &pid) == 0 && pid)
			return weigh_now(path, pid, profile, err);
	}
	return weigh_stored(at, profile, err);
}
