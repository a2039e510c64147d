/* SPDX-License-Identifier: MIT */
/*
 * A program or library in the place of a profiled one: every page and every
 * export.
 */
#include <string.h>

#include "base/hash.h"
#include "format/fuzz/show.h"
#include "format/fuzz/target.h"
#include "support/memfile.h"

#define STACKS 48u
#define DEPTH  3u

static struct sp_module module = {.id = 1, .end_pc = UINT64_MAX};
static struct sp_frame frames[STACKS][DEPTH];
static struct sp_stack stacks[STACKS];
static struct sp_sample samples[2 * STACKS];
static struct sp_thread_info thread = {.index = 1, .name = "main"};

/* Where small programs have their code, and at the ends of all. */
static uint64_t address(unsigned int i)
{
	return i == 0 ? 0 : i == 1 ? UINT64_MAX : 0x1000 + 0x17ull * i;
}

static void make_stacks(void)
{
	for (unsigned int i = 0; i < STACKS; i++) {
		for (unsigned int k = 0; k < DEPTH; k++)
			frames[i][k] = (struct sp_frame){
				.module = module.id,
				.offset = address(i * (k + 1)),
			};
		stacks[i].frames = frames[i];
		stacks[i].n_frames = DEPTH;
	}
}

static void make_samples(void)
{
	for (unsigned int i = 0; i < 2 * STACKS; i++)
		samples[i] = (struct sp_sample){
			.id = i + 1,
			.born_ns = 10 * i,
			.freed_ns = i % 2 ? 10 * i + 7 : SP_NEVER,
			.size_bytes = 100 * (i + 1),
			.period_bytes = 4096,
			.stack = i / 2,
			.freed_by = i % 2 ? 0 : UINT32_MAX,
		};
}

static void show(const char *path, uint64_t choice)
{
	struct sp_part part = {
		.path = path,
		.program = "program",
		.command = "program --option",
		.period_bytes = 4096,
		.exact_alloc_bytes = 1 << 20,
		.exact_alloc_objects = 4 * STACKS,
		.end = SP_PROFILE_END_CLEAN,
		.stop_ns = 1000,
	};
	const struct sp_profile profile = {
		.parts = &part,
		.n_parts = 1,
		.path = path,
		.program = "program",
		.command = "program --option",
		.host = "host",
		.period_bytes = 4096,
		.has_frees = true,
		.exact_alloc_bytes = 1 << 20,
		.exact_alloc_objects = 4 * STACKS,
		.threads = 1,
		.duration_ns = 1000,
		.end = SP_PROFILE_END_CLEAN,
		.modules = &module,
		.n_modules = 1,
		.stacks = stacks,
		.n_stacks = STACKS,
		.samples = samples,
		.n_samples = 2 * STACKS,
		.thread_infos = &thread,
		.n_thread_infos = 1,
	};

	module.path = path;
	make_stacks();
	make_samples();
	fuzz_show(&profile, choice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memfile file;

	if (size == 0)
		return 0;
	memfile_open(&file);
	memfile_write(&file, 0, data, size);
	show(file.path, sp_hash_bytes(0, data, size) >> 32);
	memfile_close(&file);
	return 0;
}
