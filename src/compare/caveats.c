/* SPDX-License-Identifier: MIT */
#include "compare/caveats.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/figures.h"
#include "text/text.h"

void sp_caveats_note(struct sp_caveats *c, const char *format, ...)
{
	va_list args;

	if (c->n_notes == sizeof(c->note) / sizeof(c->note[0]))
		return;
	va_start(args, format);
	vsnprintf(c->note[c->n_notes++], sizeof(c->note[0]), format, args);
	va_end(args);
}

static double missing_of(const struct sp_summary *run)
{
	return run->missing_bytes_max == UINT64_MAX
		       ? (double)INFINITY
		       : (double)run->missing_bytes_max;
}

/* Look at the runs of one side; the first one stands for the others. */
static void look_at(struct sp_caveats *c, const struct sp_side *side,
		    const char *name, bool *incomplete, bool *is_least,
		    bool *has_frees, double *missing_max)
{
	const struct sp_summary *first = side->n ? side->run[0] : NULL;
	bool is_unsampled = false;

	*has_frees = true;
	for (size_t i = 0; i < side->n; i++) {
		const struct sp_summary *run = side->run[i];

		*has_frees &= run->has_frees;
		c->lacking |= run->lacks_some;
		c->lacks_totals |= run->is_least;
		*missing_max = fmax(*missing_max, missing_of(run));
		*is_least |= run->why_incomplete && run->is_least;
		if (run->why_incomplete && !*incomplete) {
			sp_caveats_note(c,
					run->is_least
						? "%s: %s: its totals are "
						  "lower limits"
						: "%s: %s: its estimates may "
						  "be too low",
					name, run->why_incomplete);
			*incomplete = true;
		}
		if (run->why_doubtful && !c->doubtful) {
			sp_caveats_note(c,
					"%s: %s: its estimates may be too low",
					name, run->why_doubtful);
			c->doubtful = true;
		}
		if (sp_summary_unsampled(run, NULL) > 0 && !is_unsampled) {
			sp_caveats_note(
				c,
				"%s: no samples cover %s of what it "
				"allocated: its estimates are of the rest",
				name,
				sp_figure_share(sp_summary_unsampled(run, NULL))
					.text);
			c->unsampled = true;
			is_unsampled = true;
		}
		if (strcmp(run->program, first->program) != 0 &&
		    !c->other_program) {
			sp_caveats_note(
				c,
				"%s: runs of different programs: %.60s, %.60s",
				name, first->program, run->program);
			c->other_program = true;
		}
	}
}

static const char *law_name(const struct sp_law_used *law)
{
	return law->is_dotnet ? "dotnet" : "exponential";
}

static void look_at_both(struct sp_caveats *c, const struct sp_summary *old,
			 const struct sp_summary *new)
{
	if (strcmp(old->program, new->program) != 0) {
		sp_caveats_note(c, "different programs: %.90s, %.90s",
				old->program, new->program);
		c->other_program = true;
	}
	if (old->period_bytes != new->period_bytes)
		sp_caveats_note(c,
				"different sampling periods: %s, %s; the "
				"longer one limits how exact the estimates are",
				sp_text_size(old->period_bytes).text,
				sp_text_size(new->period_bytes).text);
	if (old->law.is_dotnet != new->law.is_dotnet)
		sp_caveats_note(c, "different sampling laws: %s, %s",
				law_name(&old->law), law_name(&new->law));
}

static bool overlaps(const struct sp_run_part *a, const struct sp_run_part *b)
{
	return (!a->to_ns || a->to_ns > b->from_ns) &&
	       (!b->to_ns || b->to_ns > a->from_ns);
}

/* Objects of one recording at two moments: those of both vary alike, which
 * leaves less to chance than sides of their own do. */
static void look_at_parts(struct sp_caveats *c, const struct sp_summary *old,
			  const struct sp_summary *new)
{
	if (overlaps(&old->part, &new->part))
		sp_caveats_note(c, "one recording on both sides: objects that "
				   "are on both make intervals of the change "
				   "wider than they have to be");
}

/* Exact runs have no chance in them. */
static void look_at_seeds(struct sp_caveats *c, const struct sp_pair *pair)
{
	for (size_t i = 0; i < pair->old.n; i++)
		for (size_t k = 0; k < pair->new.n; k++) {
			const struct sp_summary *old = pair->old.run[i];
			const struct sp_summary *new = pair->new.run[k];

			if (old->period_bytes == 1 || new->period_bytes == 1)
				continue;
			if (sp_summary_shares_recording(old, new)) {
				look_at_parts(c, old, new);
				return;
			}
			if (!sp_summary_shares_seed(old, new))
				continue;
			sp_caveats_note(
				c, "old and new have the same seed "
				   "(SAMPLEPROF_SEED): their samples are not "
				   "independent, as intervals of the change "
				   "assume");
			return;
		}
}

/* ---- names ---- */

/* Modules of which is said that they lack names; the others are counted. */
#define GAPS_MAX 3

struct gaps {
	struct sp_caveats *caveats;
	size_t n;
};

static void note_gap(void *arg, const struct sp_names_gap *gap)
{
	struct gaps *gaps = arg;
	char more[48] = "";

	if (gaps->n++ >= GAPS_MAX)
		return;
	if (gap->n_more)
		snprintf(more, sizeof(more), " and %zu more", gap->n_more);
	sp_caveats_note(
		gaps->caveats,
		"%.50s%s: no names in %s%.90s, for %s of the bytes, %zu of %zu "
		"call paths: %.60s",
		sp_text_base_name(gap->run->path), more,
		*gap->module ? "" : "the program", gap->module,
		sp_figure_share(gap->share).text, gap->paths, gap->of,
		gap->reason ? gap->reason : "there are no symbols");
}

static int look_at_names(struct sp_caveats *c, const struct sp_pair *pair)
{
	struct gaps gaps = {c, 0};
	int r = sp_names_init(&c->names, pair, note_gap, &gaps);

	if (r < 0 || !gaps.n)
		return r;
	if (gaps.n > GAPS_MAX)
		sp_caveats_note(c, "no names in %zu more", gaps.n - GAPS_MAX);
	if (c->names.n_mixed)
		sp_caveats_note(c, "functions with names in only some runs "
				   "cannot be compared: ? marks them");
	sp_caveats_note(c, "to keep names with a profile, run "
			   "`sampleprof-report symbolize` before the next "
			   "build; later, --debug-path DIR finds old builds");
	return 0;
}

/* ---- all of it ---- */

int sp_caveats_init(struct sp_caveats *ret, const struct sp_pair *pair)
{
	struct sp_caveats *c = ret;
	int r;

	memset(c, 0, sizeof(*c));
	r = look_at_names(c, pair);
	if (r < 0)
		return r;
	look_at(c, &pair->old, "old", &c->old_incomplete, &c->old_is_least,
		&c->old_has_frees, &c->old_missing_max);
	look_at(c, &pair->new, "new", &c->new_incomplete, &c->new_is_least,
		&c->new_has_frees, &c->new_missing_max);
	if (!pair->old.n)
		return 0;
	look_at_both(c, pair->old.run[0], pair->new.run[0]);
	look_at_seeds(c, pair);
	if (c->old_has_frees != c->new_has_frees)
		sp_caveats_note(c,
				"%s has no frees: live bytes, the peak and "
				"temporary objects cannot be compared",
				c->old_has_frees ? "new" : "old");
	return 0;
}

struct sp_interval sp_caveats_limits(const struct sp_caveats *c, bool is_exact,
				     struct sp_interval change)
{
	if (is_exact ? c->lacks_totals : c->lacking) {
		change.lo = -INFINITY;
		change.hi = INFINITY;
	}
	return change;
}

void sp_caveats_done(struct sp_caveats *c)
{
	sp_names_done(&c->names);
}

int sp_caveats_lambdas(struct sp_caveats *c, const struct sp_pair *pair)
{
	uint32_t *families;
	size_t n;
	int r = sp_match_lambdas(pair, &families, &n);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		sp_caveats_note(c,
				"lambdas whose numbers changed are compared as "
				"one: %.150s",
				sp_paths_name(pair->paths, families[i]));
	free(families);
	return 0;
}
