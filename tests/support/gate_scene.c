/* SPDX-License-Identifier: MIT */
#include "support/gate_scene.h"
#include "support/test.h"

static void scene_free(void *made)
{
	struct scene *s = made;

	for (int i = 0; i < 3; i++) {
		sp_summary_free(s->old[i]);
		sp_summary_free(s->new[i]);
	}
	sp_check_free(s->check);
	sp_limits_done(&s->limits);
	sp_paths_done(&s->paths);
	free(s);
}

/* n runs on each side, of 1000 bytes in 10 objects, exactly. */
struct scene *scene_new(size_t n)
{
	struct scene *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	at_test_end(scene_free, s);
	for (size_t i = 0; i < n; i++) {
		s->old[i] = gate_run_new(R);
		s->new[i] = gate_run_new(R);
		s->old[i]->exact_alloc_bytes = 1000;
		s->new[i]->exact_alloc_bytes = 1000;
		s->old[i]->exact_alloc_objects = 10;
		s->new[i]->exact_alloc_objects = 10;
	}
	return s;
}

void add(struct scene *s, struct sp_summary *run, const char *path,
	 unsigned int samples)
{
	const struct sp_acc acc = gate_samples(samples, 16, R);

	gate_run_add(run, &s->paths, SP_VIEW_ALLOC, path, &acc);
}

static size_t count_runs(struct sp_summary *const *runs)
{
	size_t n = 0;

	while (n < 3 && runs[n])
		n++;
	return n;
}

/* The verdict on one limit. */
const struct sp_finding *judge(struct scene *s, const char *limit)
{
	struct sp_pair pair = {{s->old, count_runs(s->old)},
			       {s->new, count_runs(s->new)},
			       &s->paths};
	struct sp_error err;

	sp_check_free(s->check);
	s->check = NULL;
	sp_limits_done(&s->limits);
	if (sp_limits_add(&s->limits, limit, &err) != 0)
		fail_msg("%s: %s", limit, err.message);
	assert_int_equal(
		sp_check_new(&pair, &s->limits, false, &s->check, &err), 0);
	assert_int_equal(s->check->n_findings, 1);
	assert_int_equal(s->check->verdict, s->check->findings[0].verdict);
	return &s->check->findings[0];
}

void assert_verdict(struct scene *s, const char *limit, enum sp_verdict verdict)
{
	const struct sp_finding *f = judge(s, limit);

	if (f->verdict != verdict)
		fail_msg("%s: %s, not %s; %s", limit,
			 sp_verdict_name(f->verdict), sp_verdict_name(verdict),
			 f->why);
}
