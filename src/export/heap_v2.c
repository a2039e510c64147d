/* SPDX-License-Identifier: MIT */
#include "export/format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "export/rows.h"
#include "symbols/elffile.h"
#include "text/text.h"

/* Readers know signed 64-bit numbers. */
#define MOST ((uint64_t)INT64_MAX)

/* Parts of one module that are code, at most. */
#define SEGMENTS 16

struct counts {
	uint64_t objects;
	uint64_t bytes;
};

static uint64_t at_most(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) || sum > MOST ? MOST : sum;
}

static void add_counts(struct counts *sum, struct counts more)
{
	sum->objects = at_most(sum->objects, more.objects);
	sum->bytes = at_most(sum->bytes, more.bytes);
}

static struct counts sampled_counts(const struct sp_acc *acc)
{
	return (struct counts){at_most(acc->samples, 0),
			       at_most(acc->size_bytes, 0)};
}

/* The samples of the in-use column. */
static struct counts in_use(const struct sp_profile *profile,
			    const struct sp_row *row)
{
	return sampled_counts(profile->has_frees ? &row->inuse : &row->alloc);
}

/* The period of the selected samples, which have to agree; *ret_period stays
 * as it is if there are none. */
static int find_period(const struct sp_analysis *a, uint64_t *ret_period,
		       struct sp_error *err)
{
	const struct sp_profile *p = a->profile;
	struct sp_selection births = a->selection;
	uint64_t period = 0;

	births.view = SP_VIEW_ALLOC;
	births.has_survivors = true;
	for (size_t i = 0; i < sp_alike_n(p); i++) {
		const struct sp_sample *s = sp_alike_at(p, i).one;

		if (s->period_bytes == period ||
		    !sp_selection_has(&births, p, s))
			continue;
		if (period)
			return sp_error_set(
				err, -EINVAL, p->path,
				"was sampled with several periods, %" PRIu64
				" and %" PRIu64
				" bytes among them, and heap_v2 can have only "
				"one: export pprof, or a part of the run with "
				"--from and --to",
				period, s->period_bytes);
		period = s->period_bytes;
	}
	if (period)
		*ret_period = period;
	return 0;
}

static void put_counts(FILE *out, struct counts now, struct counts all)
{
	fprintf(out,
		"%6" PRIu64 ": %8" PRIu64 " [%6" PRIu64 ": %8" PRIu64 "] @",
		now.objects, now.bytes, all.objects, all.bytes);
}

/* A period of 1 has taken every object: nothing is to be unbiased. */
static void put_head(FILE *out, const struct sp_profile *p,
		     const struct sp_row *rows, size_t n, uint64_t period)
{
	struct counts now = {0}, all = {0};

	for (size_t i = 0; i < n; i++) {
		add_counts(&now, in_use(p, &rows[i]));
		add_counts(&all, sampled_counts(&rows[i].alloc));
	}
	fputs("heap profile: ", out);
	put_counts(out, now, all);
	if (period == 1)
		fputs(" heapprofile\n", out);
	else
		fprintf(out, " heap_v2/%" PRIu64 "\n", period);
}

/*
 * Return addresses, innermost first.  Some readers step back into the call for
 * all of them, some for all but the first: that one does it here, and a second
 * step stays inside the call.
 */
static void put_stack(FILE *out, const struct sp_profile *p,
		      const struct sp_stack *stack)
{
	/* Without any address a row would not be read. */
	if (!stack->n_frames)
		fputs(" 0x1", out);
	for (uint32_t i = 0; i < stack->n_frames; i++) {
		const struct sp_frame frame = stack->frames[i];
		const struct sp_module *module =
			sp_profile_module(p, frame.module);
		uint64_t address =
			frame.offset + (module ? module->start_pc : 0);

		if (i == 0 && address)
			address--;
		fprintf(out, " 0x%" PRIx64, address);
	}
	putc('\n', out);
}

/* A path on one line, as the kernel escapes it. */
static void put_path(FILE *out, const char *path)
{
	while (*path) {
		uint32_t code;
		const unsigned int n = sp_text_decode_utf8(path, &code);

		if (n && !sp_text_is_unsafe(code))
			fwrite(path, 1, n, out);
		else
			for (unsigned int i = 0; i < (n ? n : 1); i++)
				fprintf(out, "\\%03o",
					(unsigned int)(unsigned char)path[i]);
		path += n ? n : 1;
	}
}

static void put_mapping(FILE *out, uint64_t start, uint64_t end,
			uint64_t offset, const char *path)
{
	fprintf(out, "%08" PRIx64 "-%08" PRIx64 " r-xp %08" PRIx64 " 00:00 0 ",
		start, end, offset);
	put_path(out, path);
	putc('\n', out);
}

/*
 * Readers compute addresses in the file from the segments of its code, which
 * only the file has.  If the file is missing, the whole module is one segment.
 */
static void put_module(FILE *out, const struct sp_module *module)
{
	const struct sp_build_id id = {module->build_id, module->build_id_len};
	const char *path = module->path;
	struct sp_elf_segment segments[SEGMENTS];
	int n = *path == '/' ? sp_elffile_code(path, &id, segments, SEGMENTS)
			     : 0;

	for (int i = 0; i < n; i++)
		put_mapping(out, segments[i].address + module->bias,
			    segments[i].address + segments[i].bytes +
				    module->bias,
			    segments[i].offset, path);
	if (n <= 0 && *path)
		put_mapping(out, module->start_pc, module->end_pc, 0, path);
}

int sp_export_heap_v2_write(FILE *out, const struct sp_aggregate *aggregate,
			    const struct sp_export_options *options,
			    struct sp_error *err)
{
	const struct sp_analysis *a = aggregate->analysis;
	const struct sp_profile *p = a->profile;
	struct sp_analysis at_one = *a;
	struct sp_row *rows;
	uint64_t period = p->period_bytes;
	size_t n;
	int r = find_period(a, &period, err);

	(void)options;
	/* Whoever reads it knows nothing of samples that chose. */
	if (a->selection.view == SP_VIEW_PEAK)
		at_one.selection.view = SP_VIEW_LIVE;
	if (r >= 0)
		r = sp_rows_new(&at_one, &rows, &n, err);
	if (r < 0)
		return r;
	put_head(out, p, rows, n, period);
	for (size_t i = 0; i < n; i++) {
		put_counts(out, in_use(p, &rows[i]),
			   sampled_counts(&rows[i].alloc));
		put_stack(out, p, &p->stacks[rows[i].stack]);
	}
	fputs("\nMAPPED_LIBRARIES:\n", out);
	for (size_t i = 0; i < p->n_modules; i++)
		put_module(out, &p->modules[i]);
	free(rows);
	return 0;
}
