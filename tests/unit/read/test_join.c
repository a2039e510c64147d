/* SPDX-License-Identifier: MIT */
/* Several files as one, held against the files one by one. */
#include <math.h>

#include "model/whole.h"
#include "stats/estimate.h"
#include "stats/sums.h"
#include "stats/timeline.h"
#include "support/process_files.h"

/* ---- the same, one by one ---- */

static void same_sample(const struct sp_profile *all, const struct sp_sample *s,
			const struct sp_profile *one, const struct sp_sample *t)
{
	const uint64_t by = one->start_unix_ns - all->start_unix_ns;
	const struct sp_stack *x = &all->stacks[s->stack];
	const struct sp_stack *y = &one->stacks[t->stack];

	assert_int_equal(s->born_ns, t->born_ns + by);
	assert_int_equal(s->freed_ns,
			 t->freed_ns == SP_NEVER ? SP_NEVER : t->freed_ns + by);
	assert_int_equal(s->size_bytes, t->size_bytes);
	assert_int_equal(s->offset_bytes, t->offset_bytes);
	assert_int_equal(s->period_bytes, t->period_bytes);
	assert_int_equal(s->thread == UINT32_MAX, t->thread == UINT32_MAX);
	assert_int_equal(x->n_frames, y->n_frames);
	for (uint32_t k = 0; k < x->n_frames; k++)
		same_frame(all, x->frames[k], one, y->frames[k]);
}

TEST(parts)
{
	for (unsigned int round = 0; round < 20; round++) {
		uint64_t bytes = 0, objects = 0, losses = 0, end_ns = 0;
		struct sp_profile *all;
		size_t at = 0, threads = 0;

		for (unsigned int i = 0; i < FILES; i++)
			put_random_file(i);
		all = load(FILES);
		assert_int_equal(all->n_parts, FILES);
		each_once(all);
		for (unsigned int i = 0; i < FILES; i++) {
			struct sp_profile *one = NULL;

			assert_int_equal(sp_profile_load(names[i], NULL, NULL,
							 &one, NULL),
					 0);
			for (size_t k = 0; k < one->n_samples; k++, at++) {
				assert_int_equal(all->samples[at].part, i);
				same_sample(all, &all->samples[at], one,
					    &one->samples[k]);
			}
			assert_string_equal(all->parts[i].path, names[i]);
			assert_int_equal(all->parts[i].pid, one->pid);
			assert_true(all->start_unix_ns <= one->start_unix_ns);
			bytes += one->exact_alloc_bytes;
			objects += one->exact_alloc_objects;
			losses += one->losses[2];
			threads += one->n_thread_infos;
			if (one->start_unix_ns + one->duration_ns > end_ns)
				end_ns = one->start_unix_ns + one->duration_ns;
			sp_profile_free(one);
		}
		assert_int_equal(at, all->n_samples);
		assert_int_equal(at, FILES * 40);
		assert_int_equal(all->exact_alloc_bytes, bytes);
		assert_int_equal(all->exact_alloc_objects, objects);
		assert_int_equal(all->losses[2], losses);
		assert_int_equal(all->n_thread_infos, threads);
		assert_int_equal(all->start_unix_ns + all->duration_ns, end_ns);
		assert_int_equal(all->period_bytes, 64 << (FILES - 1));
		assert_string_equal(sp_profile_info(all, "same"), "yes");
		assert_null(sp_profile_info(all, "own"));
		sp_profile_free(all);
	}
}

/* Threads of the same number in two processes are two. */
TEST(threads)
{
	struct sp_profile *p;

	for (unsigned int i = 0; i < 2; i++) {
		begin(i, 1);
		put_object(1, 10, SP_NEVER, 100, 1, 0, 1);
		end(i);
	}
	p = load(2);
	assert_int_equal(p->n_thread_infos, 2);
	assert_int_equal(p->thread_infos[0].index, 1);
	assert_int_equal(p->thread_infos[1].index, 2);
	assert_int_equal(p->samples[0].thread, 0);
	assert_int_equal(p->samples[1].thread, 1);
	sp_profile_free(p);
}

/* ---- time ---- */

/* Two processes of 1000 ns, `gap_ns` between their starts, each of which holds
 * 100 bytes from 100 ns on and has 30 more from 200 to 300. */
static struct sp_profile *load_two(uint64_t gap_ns)
{
	for (unsigned int i = 0; i < 2; i++) {
		begin(i, 1);
		model_file_header(&file)->start_unix_ns = START + i * gap_ns;
		model_file_status(&file, 1)->time_ns = 1000;
		put_object(1, 100, SP_NEVER, 100, 1, 0, 1);
		put_object(2, 200, 300, 30, 1, 0, 1);
		end(i);
	}
	return load(2);
}

static double live_bytes(const struct sp_profile *p, uint64_t at_ns)
{
	struct sp_selection live;
	double sum = 0;

	sp_selection_init(&live);
	live.view = SP_VIEW_LIVE;
	live.at_ns = at_ns;
	for (size_t i = 0; i < p->n_samples; i++)
		if (sp_selection_has(&live, p, &p->samples[i]))
			sum += (double)p->samples[i].size_bytes;
	return sum;
}

/* One after the other: what the first held at its end is there "at the end",
 * and no more while the second runs. */
TEST(one_after_the_other)
{
	struct sp_profile *p = load_two(5000);
	const struct sp_estimation p3 = {SP_METHOD_P3, 0.95, NULL, 0};
	struct sp_timeline_point points[7];
	struct sp_selection all;

	assert_int_equal(p->duration_ns, 6000);
	assert_close(live_bytes(p, SP_NEVER), 200, 0);
	assert_close(live_bytes(p, 999), 100, 0);
	assert_close(live_bytes(p, 1000), 0, 0);
	assert_close(live_bytes(p, 5250), 130, 0);
	assert_close(live_bytes(p, 6000), 100, 0);
	assert_close(peak_of(p), 130, 0);
	sp_selection_init(&all);
	assert_int_equal(sp_timeline(p, &all, &p3, points, 7, NULL), 0);
	assert_close(points[1].live_bytes.value, 0, 0);
	assert_close(points[6].live_bytes.value, 100, 0);
	sp_profile_free(p);
}

TEST(side_by_side)
{
	struct sp_profile *p = load_two(50);

	assert_close(live_bytes(p, SP_NEVER), 200, 0);
	assert_close(live_bytes(p, 275), 260, 0);
	assert_close(live_bytes(p, 1025), 100, 0);
	assert_close(peak_of(p), 260, 0);
	sp_profile_free(p);
}

static struct sp_interval live_of(const struct sp_profile *p, uint64_t at_ns)
{
	const struct sp_estimation p3 = {SP_METHOD_P3, 0.95, NULL, 0};
	struct sp_selection live;
	struct sp_interval bytes;
	struct sp_sums *sums;

	sp_selection_init(&live);
	live.view = SP_VIEW_LIVE;
	live.at_ns = at_ns;
	assert_int_equal(sp_sums_new(p, &live, &sums, NULL), 0);
	bytes = sp_estimate_bytes(&p3, &sums->all);
	sp_sums_free(sums, p);
	return bytes;
}

/* What was alive of a process is not known after its file was cut.  That makes
 * nothing of the others unknown: there is at least what they have. */
TEST(beside_a_cut_one)
{
	struct sp_interval bytes;
	struct sp_profile *p;
	struct sp_whole whole;

	sp_profile_free(load_two(50));
	assert_int_equal(truncate(names[1], 2 * SP_FORMAT_CHUNK_BYTES), 0);
	p = load(2);
	whole = sp_whole_of(p);
	assert_int_equal(whole.n_parts, 2);
	assert_int_equal(whole.n_lacking, 1);
	assert_int_equal(whole.n_cut, 1);
	assert_true(whole.is_cut && whole.has_rest && p->parts[1].is_cut);
	/* Its last record is of 300, 350 of all. */
	assert_int_equal(whole.known_ns, 350);
	assert_close(live_bytes(p, 275), 260, 0);
	assert_close(live_bytes(p, 350), 200, 0);
	assert_close(live_bytes(p, 351), 100, 0);
	assert_close(live_bytes(p, SP_NEVER), 100, 0);
	bytes = live_of(p, SP_NEVER);
	assert_close(bytes.value, 100, 0);
	assert_close(bytes.lo, 100, 0);
	assert_true(isinf(bytes.hi));
	bytes = live_of(p, 350);
	assert_close(bytes.hi, 200, 0);
	sp_profile_free(p);
	/* Where none is known to its end nothing is. */
	assert_int_equal(truncate(names[0], 2 * SP_FORMAT_CHUNK_BYTES), 0);
	p = load(2);
	whole = sp_whole_of(p);
	assert_true(whole.n_lacking == 2 && whole.n_cut == 2 &&
		    !whole.has_rest);
	bytes = live_of(p, SP_NEVER);
	assert_true(bytes.lo == 0 && isinf(bytes.hi));
	sp_profile_free(p);
}

/* Age counts to the end of the process, not of all. */
TEST(leaks)
{
	struct sp_profile *p = load_two(5000);
	struct sp_selection leaks;

	sp_selection_init(&leaks);
	leaks.view = SP_VIEW_LEAKS;
	leaks.tail_ns = 900;
	assert_true(sp_selection_has(&leaks, p, &p->samples[0]));
	leaks.tail_ns = 901;
	assert_false(sp_selection_has(&leaks, p, &p->samples[0]));
	assert_false(sp_selection_has(&leaks, p, &p->samples[2]));
	sp_profile_free(p);
}

/* ---- resident memory ---- */

static uint64_t rss_at(const struct sp_profile *p, uint64_t time_ns)
{
	uint64_t now = 0;

	for (size_t i = 0; i < p->n_rss; i++)
		if (p->rss[i].time_ns <= time_ns)
			now = p->rss[i].rss_bytes;
	return now;
}

TEST(rss)
{
	struct sp_profile *p;

	begin(0, 1);
	model_file_status(&file, 1)->time_ns = 100;
	put_info("setting.rss", "on");
	put_rss(10, 1000);
	put_rss(50, 3000);
	end(0);
	begin(1, 1);
	model_file_header(&file)->start_unix_ns = START + 20;
	model_file_status(&file, 1)->time_ns = 200;
	put_info("setting.rss", "on");
	put_rss(30, 500);
	end(1);
	/* Too short to have recorded any. */
	begin(2, 1);
	put_info("setting.rss", "on");
	end(2);
	p = load(3);
	assert_int_equal(rss_at(p, 10), 1000);
	assert_int_equal(rss_at(p, 49), 1000);
	assert_int_equal(rss_at(p, 50), 3500);
	assert_int_equal(rss_at(p, 99), 3500);
	assert_int_equal(rss_at(p, 100), 500);
	assert_int_equal(rss_at(p, 220), 500);
	for (size_t i = 1; i < p->n_rss; i++)
		assert_true(p->rss[i - 1].time_ns < p->rss[i].time_ns);
	sp_profile_free(p);
	/* A sum that lacks one is none. */
	begin(2, 1);
	end(2);
	p = load(3);
	assert_int_equal(p->n_rss, 0);
	sp_profile_free(p);
}

/* ---- what does not go together ---- */

static void refuse(size_t n, const char *words)
{
	struct sp_profile *p = NULL;
	struct sp_error err;

	assert_true(sp_profile_load_many(names, n, NULL, NULL, &p, &err) < 0);
	assert_non_null(strstr(err.message, words));
	assert_null(p);
}

TEST(refused)
{
	begin(0, 1);
	end(0);
	begin(1, 1);
	model_file_header(&file)->flags |= SP_HEADER_LAW_DOTNET;
	end(1);
	refuse(2, "same law");
	begin(1, 1);
	file.file_id = 1000;
	model_file_header(&file)->file_id = 1000;
	end(1);
	refuse(2, "same recording");
}

TEST(one_file)
{
	struct sp_profile *p;

	begin(0, 1);
	put_object(7, 10, SP_NEVER, 100, 1, 0, 1);
	end(0);
	p = load(1);
	assert_int_equal(p->n_parts, 1);
	assert_int_equal(p->samples[0].id, 7);
	assert_int_equal(sp_sample_gone_ns(p, &p->samples[0]), SP_NEVER);
	sp_profile_free(p);
}

TEST_MAIN(make_paths, remove_paths)
