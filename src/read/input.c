/* SPDX-License-Identifier: MIT */
#include "read/input.h"

#include <errno.h>
#include <stdlib.h>

#include "base/saturate.h"

int sp_input_open(struct sp_input *in, struct sp_error *err)
{
	struct sp_input_file *f = calloc(1, sizeof(*f));
	struct sp_profile *p = calloc(1, sizeof(*p));
	int r;

	in->file = f;
	if (!f) {
		free(p);
		return sp_error_memory(err, in->path);
	}
	f->loader.p = p;
	if (p)
		p->parts = calloc(1, sizeof(*p->parts));
	if (!p || !p->parts)
		return sp_error_memory(err, in->path);
	p->n_parts = 1;
	p->path = in->path;
	f->loader.reader = &f->reader;
	r = sp_reader_open(&f->reader, in->path, err);
	if (r < 0)
		return r;
	p->owner = f->reader.source.stat.st_uid;
	sp_loader_begin(&f->loader, in->samples_of);
	if (f->reader.window.oldest)
		p->window_ns = f->reader.window.time_ns;
	in->file_id = p->file_id;
	in->start_unix_ns = p->start_unix_ns;
	in->published_ns = f->reader.status.time_ns;
	in->period_bytes = p->period_bytes;
	in->law = p->law;
	in->has_frees = p->has_frees;
	in->is_running = f->reader.is_running;
	return 0;
}

int sp_input_begin(struct sp_input *in, struct sp_sinks *sinks,
		   struct sp_error *err)
{
	struct sp_input_file *f = in->file;

	/* Segments of a ring are not in the order of time. */
	f->loader.stream = sp_stream_new(
		f->loader.p, sinks, in->part, in->start_ns,
		in->is_unordered || f->reader.window.oldest ||
			(in->is_running && sinks->plan->every_sample) ||
			in->samples_of != SP_SAMPLES_ALLOCATED);
	/* A sink of samples has their stacks from an earlier reading. */
	f->loader.p->has_no_code =
		sinks->plan->tell || sinks->plan->no_code ||
		(sinks->plan->only_peak && !sinks->plan->every_sample);
	f->loader.no_samples = sinks->plan->no_samples;
	return f->loader.stream ? 0 : sp_error_memory(err, in->path);
}

/* Records until the next chunk begins, or the last. */
static int read_chunk(struct sp_input_file *f, struct sp_error *err)
{
	const uint64_t chunk = f->reader.chunk_index;
	int r = f->has_record ? sp_loader_take(&f->loader, &f->record) : 0;

	f->has_record = false;
	while (!r && (r = sp_reader_next(&f->reader, &f->record, err)) > 0) {
		f->has_record = f->reader.chunk_index != chunk;
		if (f->has_record)
			return sp_stream_chunk(f->loader.stream);
		r = sp_loader_take(&f->loader, &f->record);
	}
	if (r < 0)
		return r;
	f->is_read = true;
	r = sp_loader_end_records(&f->loader);
	return r < 0 ? r : sp_stream_last(f->loader.stream);
}

int sp_input_advance(struct sp_input *in, uint64_t limit, struct sp_error *err)
{
	struct sp_input_file *f = in->file;
	struct sp_stream *stream = f->loader.stream;
	int r = sp_stream_pass(stream, limit);

	if (r >= 0 && !f->is_read && sp_stream_next(stream) == UINT64_MAX) {
		r = read_chunk(f, err);
		if (r >= 0)
			r = sp_stream_pass(stream, limit);
	}
	if (r == -ENOMEM)
		return sp_error_memory(err, in->path);
	if (r < 0)
		return r;
	in->is_unordered |= sp_stream_is_late(stream);
	if (sp_stream_next(stream) != UINT64_MAX) {
		in->when = sp_stream_next(stream);
	} else if (f->is_read) {
		in->when = UINT64_MAX;
		in->is_over = true;
		in->stop_ns = in->start_ns;
		sp_sat_add(&in->stop_ns, sp_loader_duration_ns(&f->loader));
		sp_raise(&in->period_bytes, sp_stream_period_bytes(stream));
	}
	return 0;
}

uint64_t sp_input_progress(const struct sp_input *in, uint64_t *ret_total)
{
	const struct sp_reader *r = &in->file->reader;
	const uint64_t chunks = r->status.chunks * SP_FORMAT_CHUNK_BYTES;
	const uint64_t done = sp_source_progress(
		&r->source, r->chunk_index * SP_FORMAT_CHUNK_BYTES, ret_total);

	/* What a library has not used yet is not there. */
	if (!r->source.unpacker && chunks && chunks < *ret_total)
		*ret_total = chunks;
	return done < *ret_total ? done : *ret_total;
}

int sp_input_finish(struct sp_input *in, struct sp_profile **ret_profile,
		    uint64_t *ret_last_id, struct sp_error *err)
{
	struct sp_loader *l = &in->file->loader;
	int r = 0;

	if (in->when != UINT64_MAX)
		r = sp_stream_stop(l->stream, in->when >> 1);
	if (r >= 0)
		r = sp_loader_finish(l);
	if (r == -ENOMEM)
		return sp_error_memory(err, in->path);
	if (r < 0)
		return r;
	if (sp_reader_is_outdated(l->reader))
		return sp_error_set(err, -EAGAIN, in->path,
				    "old samples were discarded while it was "
				    "read: the process writes faster than "
				    "that; try again, or give it a larger "
				    "SAMPLEPROF_MAX_FILE");
	l->p->is_unordered = in->is_unordered;
	sp_raise(&in->period_bytes, l->p->period_bytes);
	l->p->parts->start_ns = in->start_ns;
	l->p->parts->seed = l->p->seed;
	*ret_last_id = sp_stream_last_id(l->stream);
	*ret_profile = l->p;
	l->p = NULL;
	return 0;
}

void sp_input_close(struct sp_input *in)
{
	struct sp_input_file *f = in->file;

	if (!f)
		return;
	if (f->loader.reader)
		sp_reader_close(&f->reader);
	sp_stream_destroy(f->loader.stream);
	sp_loader_done(&f->loader);
	sp_profile_free(f->loader.p);
	free(f);
	in->file = NULL;
}
