/* SPDX-License-Identifier: MIT */
/*
 * Profiles of processes that nobody has: objects of a byte to 2^47, one to 2^63
 * of them, periods of 1 to 2^36, all ways to end, files that are full or have
 * discarded samples.  What they say is right: each object was sampled by its
 * law, or lost with all behind it.
 *
 * Usage: program_extreme DIRECTORY SEED N PID: DIRECTORY/I.sprof, which the
 * process PID may still write; prints the name of each.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "support/format_model.h"

#define RECORDS 1
#define CLASSES 2
#define CHUNKS  3
#define MOST    120 /* samples of a site */
#define SITES   4

static struct sp_rng rng;
static struct model_file file;
static struct model_bytes records;
static struct model_chunk chunk;
static struct sp_class_page page;
static uint64_t period, length_ns, lost, alloc_bytes, alloc_objects, next_id;
static struct sp_window window; /* what was discarded; seq 0: nothing */

static uint64_t below(uint64_t n)
{
	return sp_rng_next(&rng) % n;
}

#define ONE_OF(...)                                                            \
	((const uint64_t[]){__VA_ARGS__}[below(                                \
		sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))])

static void put(struct sp_record record)
{
	model_encode(&records, &chunk, &record);
}

static void put_info(const char *key, const char *value, size_t bytes)
{
	put((struct sp_record){.type = SP_RECORD_INFO,
			       .u.info = {key, strlen(key), value, bytes}});
}

static void put_facts(void)
{
	put_info("exe", "/nonexistent/app", 16);
	put_info("command", "app\0", 4);
	put((struct sp_record){.type = SP_RECORD_MODULE,
			       .u.module = {.id = 1,
					    .start_pc = 1 << 20,
					    .end_pc = 2 << 20,
					    .flags = SP_MODULE_MAIN,
					    .path = "/nonexistent/app",
					    .path_bytes = 16}});
	put((struct sp_record){.type = SP_RECORD_THREAD,
			       .u.thread = {1, 4711, 0, "main", 4}});
	for (uint64_t id = 1; id <= SITES; id++) {
		const struct sp_record_frame frames[] = {
			{1, 64 * id}, {1, 8 + id / 3}, {1, 1}};

		put((struct sp_record){.type = SP_RECORD_STACK,
				       .u.stack = {id, 0, frames, 3}});
	}
	for (uint64_t i = below(4); i > 0; i--)
		put((struct sp_record){
			.type = SP_RECORD_RSS,
			.u.rss = {length_ns / i, ONE_OF(0, 4096, 1ull << 47)}});
}

/* What was freed before the window is not there any more. */
static void put_sample(uint64_t site, uint64_t size, bool is_early)
{
	const uint64_t id = next_id++;
	const uint64_t from_ns = is_early ? 0 : window.time_ns;
	const uint64_t to_ns = is_early ? window.time_ns : length_ns + 1;
	const uint64_t born_ns = from_ns + below(to_ns - from_ns);
	const uint64_t freed_ns = born_ns + below(length_ns - born_ns + 1);
	const bool is_freed = below(3);

	if (is_early && is_freed && freed_ns <= window.time_ns)
		return;
	put((struct sp_record){.type = SP_RECORD_SAMPLE,
			       .u.sample = {.id = id,
					    .time_ns = born_ns,
					    .address = id << 48,
					    .size_bytes = size,
					    .offset_bytes = below(size),
					    .period_bytes = period,
					    .stack = site,
					    .thread = 1}});
	if (is_freed)
		put((struct sp_record){.type = SP_RECORD_FREE,
				       .u.free = {.id = id,
						  .time_ns = freed_ns,
						  .thread = 1}});
}

/* How many of n objects were hit, about: a normal number, or one by one. */
static uint64_t hits(uint64_t n, uint64_t size)
{
	const double p = -expm1(-(double)size / (double)period);
	double sum = -6;
	uint64_t k = 0;

	if ((double)n * p < 1)
		return (double)below(1 << 20) < (double)n * p * (1 << 20);
	if (n > 4096) {
		for (int i = 0; i < 12; i++)
			sum += (double)below(1 << 20) / (1 << 20);
		sum = (double)n * p + sum * sqrt((double)n * p * (1 - p));
		return sum < 0 ? 0 : sum < 1e9 ? (uint64_t)sum : 1 << 30;
	}
	for (uint64_t i = 0; i < n; i++)
		k += (double)below(1 << 20) < p * (1 << 20);
	return k;
}

static void put_objects(uint64_t site, uint64_t size, uint64_t n, bool is_early)
{
	const uint64_t k = hits(n, size);

	alloc_bytes += n * size;
	alloc_objects += n;
	page.classes[sp_format_class(size)].bytes += n * size;
	page.classes[sp_format_class(size)].objects += n;
	if (is_early) {
		window.alloc_bytes += n * size;
		window.alloc_objects += n;
	}
	for (uint64_t i = 0; i < k && i < MOST; i++)
		put_sample(site, size, is_early);
	lost += k > MOST ? k - MOST : 0;
}

static void put_site(uint64_t site)
{
	const uint64_t most = 1ull << (below(4) ? 50 : 61);
	const uint64_t size =
		ONE_OF(1, 2, 15, 16, 17, 1000, 1 << 20, 1ull << 31, 1ull << 47,
		       period, 5 * period, period / 7 + 1);
	uint64_t n = ONE_OF(1, 2, 3, 40, 1000, 1ull << 20, 1ull << 32, most);

	if (n > most / size)
		n = most / size + 1;
	if (alloc_objects == 0 && size == 1 && below(2))
		n = 1ull << 63;
	if (alloc_bytes > 1ull << 62)
		return;
	if (window.seq)
		put_objects(site, size, n / 2, true);
	put_objects(site, size, window.seq ? n - n / 2 : n, false);
}

static void put_totals(uint64_t pid)
{
	struct sp_status *status = model_file_status(&file, 1);
	struct sp_file_header *header = model_file_header(&file);

	status->end_kind = ONE_OF(SP_END_NONE, SP_END_CLEAN, SP_END_CLEAN,
				  SP_END_CLEAN, SP_END_EXEC, SP_END_NO_MEMORY,
				  SP_END_EXIT, SP_END_SIGNAL + 9);
	status->time_ns = length_ns;
	status->threads = below(3);
	status->losses[1] = lost; /* SP_LOSS_FILE_FULL */
	if (below(8) == 0)
		status->losses[below(SP_LOSS_COUNT)] = ONE_OF(1, 2, 1ull << 63);
	header->flags = SP_HEADER_ALWAYS_LARGE * (below(4) == 0) |
			SP_HEADER_FREES * (below(4) > 0);
	header->seed = ONE_OF(0, 1, UINT64_MAX);
	header->pid = pid;
	header->start_unix_ns = 1700000000123456789u;
	*model_file_slot(&file, 1, 1) =
		(struct sp_slot_copy){.seq = 1,
				      .alloc_bytes = alloc_bytes,
				      .alloc_objects = alloc_objects,
				      .thread = 1,
				      .tid = 4711};
}

/* Some have no totals by class. */
static void put_rest(void)
{
	struct sp_class_page *to;
	uint8_t *at = file.bytes.data + SP_FORMAT_WINDOW_OFFSET;

	if (below(4)) {
		model_file_put_classes(&file, CLASSES);
		to = model_file_class_page(&file, CLASSES, 1, 1);
		*to = page;
		model_file_seal_classes(&file, to);
	}
	if (!window.seq)
		return;
	model_file_header(&file)->flags |= SP_HEADER_SEGMENTS;
	model_seal(file.file_id, SP_CHECK_WINDOW, &window, sizeof(window));
	memcpy(at, &window, sizeof(window));
}

/* Half of them end early: in the header, between its pages, anywhere. */
static size_t cut(size_t n)
{
	return below(2) ? n
			: ONE_OF(96, 4096, 8192, 65536, 65537, 65536 + below(n),
				 4096 + below(8192));
}

static int make(const char *directory, uint64_t i, uint64_t pid)
{
	char path[4096];

	period = 1;
	if (below(5))
		period = ONE_OF(2, 512, 4096, 1 << 19, 1ull << 36, 1ull << 30);
	length_ns = ONE_OF(0, 1, 999999, 3000000000, 1ull << 50);
	lost = alloc_bytes = alloc_objects = 0;
	window = (struct sp_window){.seq = 0};
	if (length_ns > 1 && below(5) == 0)
		window = (struct sp_window){.seq = 2, .time_ns = length_ns / 2};
	next_id = 1;
	page = (struct sp_class_page){.seq = 1, .slot = 1};
	records.n = 0;
	model_file_init(&file, CHUNKS, period);
	file.file_id += i;
	model_file_header(&file)->file_id = file.file_id;
	model_chunk_begin(&chunk, file.file_id, RECORDS);
	put_facts();
	for (uint64_t site = below(SITES + 1); site > 0; site--)
		put_site(site);
	put_totals(pid);
	model_file_put(&file, RECORDS, &records);
	model_file_put(&file, CLASSES, &(struct model_bytes){0});
	put_rest();
	model_file_seal(&file);
	snprintf(path, sizeof(path), "%s/%llu.sprof", directory,
		 (unsigned long long)i);
	puts(path);
	if (model_file_write(&file, path, cut(file.bytes.n)) < 0) {
		perror(path);
		return 1;
	}
	model_done(&file.bytes);
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t n = argc == 5 ? strtoull(argv[3], NULL, 10) : 0;

	if (n == 0) {
		fprintf(stderr, "usage: %s DIRECTORY SEED N PID\n", argv[0]);
		return 2;
	}
	sp_rng_init(&rng, strtoull(argv[2], NULL, 10), 0);
	for (uint64_t i = 0; i < n; i++)
		if (make(argv[1], i, strtoull(argv[4], NULL, 10)) != 0)
			return 1;
	return 0;
}
