/* SPDX-License-Identifier: MIT */
#include "cli/symbolize.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/place.h"
#include "cli/unread.h"
#include "read/packfile.h"
#include "read/symbolfile.h"
#include "read/load.h"
#include "read/running.h"
#include "read/source.h"
#include "text/output.h"

#define CHUNK SP_FORMAT_CHUNK_BYTES

/* ---- writing ---- */

struct sink {
	struct sp_output *output;
	struct sp_unread *unread;
	ZSTD_CCtx *zstd;   /* NULL: not compressed */
	uint64_t n_chunks; /* written so far */
	uint64_t n_zero;   /* chunks that are zero, not written yet */
	size_t n_rest;     /* bytes, all zero, after the last whole chunk */
};

/* stdio knows that a write failed, and sp_output_commit() says why. */
static int emit_bytes(struct sink *sink, const void *data, size_t n,
		      ZSTD_EndDirective mode)
{
	ZSTD_inBuffer in = {data, n, 0};
	uint8_t packed[16384];
	size_t left;

	if (!sink->zstd) {
		fwrite(data, 1, n, sink->output->stream);
		return 0;
	}
	do {
		ZSTD_outBuffer out = {packed, sizeof(packed), 0};

		left = ZSTD_compressStream2(sink->zstd, &out, &in, mode);
		if (ZSTD_isError(left))
			return -ENOMEM;
		/* cppcheck-suppress legacyUninitvar ; zstd has written that */
		fwrite(packed, 1, out.pos, sink->output->stream);
	} while (mode == ZSTD_e_end ? left > 0 : in.pos < in.size);
	return 0;
}

static const uint8_t zeros[CHUNK];

/* What is zero becomes a hole where there can be one. */
static int emit_zeros(struct sink *sink)
{
	struct sp_output *o = sink->output;
	int r = 0;

	if (!sink->zstd && !o->in_place && sink->n_zero) {
		fflush(o->stream);
		if (lseek(o->fd, (off_t)(sink->n_zero * CHUNK), SEEK_CUR) < 0)
			return -errno;
		sink->n_chunks += sink->n_zero;
		sink->n_zero = 0;
	}
	for (; sink->n_zero && r >= 0; sink->n_zero--, sink->n_chunks++)
		r = emit_bytes(sink, zeros, CHUNK, ZSTD_e_continue);
	return r;
}

static int put_chunk(void *arg, const uint8_t *chunk)
{
	struct sink *sink = arg;
	int r = emit_zeros(sink);

	if (r < 0)
		return r;
	sink->n_chunks++;
	sp_apart_progress(NULL, 0, 0);
	return emit_bytes(sink, chunk, CHUNK, ZSTD_e_continue);
}

static int end_sink(struct sink *sink)
{
	struct sp_output *o = sink->output;
	int r = emit_zeros(sink);

	if (r >= 0)
		r = emit_bytes(sink, zeros, sink->n_rest,
			       sink->zstd ? ZSTD_e_end : ZSTD_e_continue);
	/* A hole at the end is no hole before the file has that length. */
	fflush(o->stream);
	if (r >= 0 && !sink->zstd && !o->in_place &&
	    ftruncate(o->fd, (off_t)(sink->n_chunks * CHUNK + sink->n_rest)))
		return -errno;
	return r;
}

/* ---- copying ---- */

static bool is_zero(const uint8_t *p, size_t n)
{
	return p[0] == 0 && memcmp(p, p + 1, n - 1) == 0;
}

/* Names from an earlier run.  The number of the chunk tells one from records
 * that happen to begin like it. */
static bool is_symbols(const uint8_t *chunk, uint64_t index)
{
	struct sp_chunk_header h;

	memcpy(&h, chunk, sizeof(h));
	return h.magic == SP_FORMAT_CHUNK_MAGIC &&
	       (h.kind == SP_CHUNK_SYMBOLS || h.kind == SP_CHUNK_NAMES) &&
	       h.index == index;
}

/* All chunks of the file; those of zeros at its end are left for later. */
static int copy_chunks(struct sp_source *from, struct sink *sink)
{
	uint8_t chunk[CHUNK];

	for (uint64_t i = 0;; i++) {
		const uint64_t data = sp_source_next_data(from, i * CHUNK);
		ssize_t n = 0;
		int r;

		if (data >= (i + 1) * CHUNK && i * CHUNK < from->bytes) {
			sink->n_zero++;
			continue;
		}
		n = sp_source_read(from, chunk, CHUNK, i * CHUNK);
		if (n <= 0)
			return (int)n;
		if (n < CHUNK) {
			sink->n_rest = (size_t)n;
			return is_zero(chunk, (size_t)n) ? 0 : -EINVAL;
		}
		if (is_zero(chunk, CHUNK) || is_symbols(chunk, i)) {
			sink->n_zero++;
			continue;
		}
		r = put_chunk(sink, chunk);
		if (r < 0)
			return r;
	}
}

static int check_profile(const struct sp_profile *p, bool is_written,
			 struct sp_error *err)
{
	if (p->end == SP_PROFILE_END_RUNNING ||
	    (p->end == SP_PROFILE_END_KILLED && is_written))
		return sp_error_set(err, -EBUSY, p->path,
				    "its process still runs: symbolize it when "
				    "that has ended");
	if (p->is_cut)
		return sp_error_set(err, -EINVAL, p->path,
				    "was cut short, which the copy would hide: "
				    "symbolize the whole file");
	return 0;
}

/* Symbols come behind the last chunk that is used, in what is left of the
 * file's length while there is room. */
static int write_symbols(const struct sp_profile *profile,
			 const struct sp_symbolize_options *options,
			 const struct sp_packfile_facts *packed,
			 struct sink *sink, struct sp_symbolize_result *ret,
			 struct sp_error *err)
{
	const uint64_t n_zero = sink->n_zero, first = sink->n_chunks;
	const struct sp_symbolfile file = {
		.places = packed ? packed->places : NULL,
		.n_places = packed ? packed->n_places : 0,
		.first_chunk = first,
		.fn = put_chunk,
		.arg = sink};
	struct sp_symbolizer *symbolizer;
	size_t stored;
	int r = sp_symbolizer_new(profile, &options->symbols, &symbolizer, err);

	if (r < 0)
		return r;
	sink->n_zero = 0;
	r = sp_symbolfile_write(profile, symbolizer, &file, sp_apart_progress,
				NULL, &ret->frames, err);
	sp_symbolizer_count(symbolizer, &ret->named, &stored);
	sp_symbolizer_problems(symbolizer, sp_unread_module, sink->unread);
	sp_symbolizer_free(symbolizer);
	if (sink->n_chunks - first <= n_zero)
		sink->n_zero = n_zero - (sink->n_chunks - first);
	else
		sink->n_rest = 0;
	return r;
}

static bool ends_with(const char *text, const char *end)
{
	const size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

/* Columns are few bytes, and repeat themselves: the best level takes 0.1 to 0.4
 * microseconds for an event. */
#define PACKED_LEVEL 19

static int begin_sink(struct sink *sink, bool is_packed, struct sp_error *err)
{
	if (!ends_with(sink->output->path, ".zst"))
		return 0;
	sink->zstd = ZSTD_createCCtx();
	if (!sink->zstd ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(
		    sink->zstd, ZSTD_c_compressionLevel,
		    is_packed ? PACKED_LEVEL : ZSTD_CLEVEL_DEFAULT)) ||
	    ZSTD_isError(
		    ZSTD_CCtx_setParameter(sink->zstd, ZSTD_c_checksumFlag, 1)))
		return sp_error_memory(err, sink->output->path);
	return 0;
}

static int write_copy(const struct sp_profile *profile,
		      const struct sp_symbolize_options *options,
		      struct sink *sink, struct sp_symbolize_result *ret,
		      struct sp_error *err)
{
	struct sp_source from;
	int r = sp_source_open(&from, options->file, err);

	if (r >= 0) {
		r = copy_chunks(&from, sink);
		if (r < 0)
			sp_error_set(err, r, options->file,
				     "cannot be copied: %s",
				     r == -EINVAL ? "it ends within a chunk "
						    "that is in use"
						  : sp_source_strerror(r));
	}
	sp_source_close(&from);
	return r < 0 ? r
		     : write_symbols(profile, options, NULL, sink, ret, err);
}

/* Events come last, since the last of them says that all is there. */
static int write_packed(const struct sp_profile *profile,
			const struct sp_symbolize_options *options,
			struct sink *sink, struct sp_symbolize_result *ret,
			struct sp_error *err)
{
	struct sp_packfile_facts facts = {0};
	int r = sp_packfile_write_facts(profile, put_chunk, sink, &facts, err);

	if (r >= 0)
		r = write_symbols(profile, options, &facts, sink, ret, err);
	free(facts.places);
	return r < 0 ? r
		     : sp_packfile_write_events(profile, sink->n_chunks,
						facts.unfinished, put_chunk,
						sink, err);
}

static int copy_file(const struct sp_profile *profile,
		     const struct sp_symbolize_options *options,
		     struct sp_output *output, struct sp_unread *unread,
		     struct sp_symbolize_result *ret, struct sp_error *err)
{
	/* Damage is copied as it is, and reported by a reader of the copy. */
	const bool is_packed =
		ends_with(options->output, ".zst") && !*profile->damage;
	struct sink sink = {.output = output, .unread = unread};
	int r = begin_sink(&sink, is_packed, err);

	if (r >= 0)
		r = (is_packed ? write_packed : write_copy)(profile, options,
							    &sink, ret, err);
	if (r >= 0) {
		r = end_sink(&sink);
		if (r < 0)
			sp_error_set(err, r, options->output,
				     "cannot be written: %s", strerror(-r));
	}
	if (r >= 0)
		r = sp_output_flush(output, err);
	ret->time_error_ns = is_packed ? sp_packfile_time_error_ns(profile) : 0;
	ZSTD_freeCCtx(sink.zstd);
	return r;
}

/* ---- with whose rights ---- */

struct job {
	const struct sp_symbolize_options *options;
	int from; /* the profile */
	struct stat st;
	struct sp_rights owner;
	const struct sp_rights *rights; /* that count; NULL: as they are */
	bool is_owner_other; /* root works on another user's profile */
	bool is_acting;      /* root, as the owner, to open it */
	bool is_written;     /* some process has it mapped for that */
	struct sp_output *output;
};

/* Root of another machine may not be one for the file system: then its user
 * opens it. */
static int open_as_user(struct job *j, struct sp_error *err)
{
	const struct sp_symbolize_options *o = j->options;
	int r;

	if (stat(o->file, &j->st) == 0)
		sp_rights_of(j->st.st_uid, &j->owner);
	else if (o->rights)
		j->owner = *o->rights;
	else
		return sp_error_set(
			err, -EACCES, o->file,
			"cannot be opened: root may not, and --user "
			"says who may");
	r = sp_rights_act(&j->owner, o->file, err);
	if (r >= 0)
		r = sp_source_hold(o->file, &j->st, err);
	j->is_acting = r >= 0;
	return r;
}

/* Into some processes their own user cannot look. */
static bool is_written(const char *path)
{
	struct sp_file_header header;
	struct sp_source s;
	const bool is_mapped = sp_source_open(&s, path, NULL) == 0 &&
			       !s.unpacker &&
			       sp_source_read(&s, &header, sizeof(header), 0) ==
				       sizeof(header) &&
			       sp_running(&header, s.fd);

	sp_source_close(&s);
	return is_mapped;
}

static int open_profile(struct job *j, struct sp_error *err)
{
	const struct sp_symbolize_options *o = j->options;

	if (o->rights && geteuid() != 0 && o->rights->user != geteuid())
		return sp_error_set(err, -EPERM, "--user",
				    "only root can have another user's rights");
	j->from = sp_source_hold(o->file, &j->st, err);
	if (j->from == -EACCES && geteuid() == 0)
		j->from = open_as_user(j, err);
	j->is_owner_other =
		j->from >= 0 && geteuid() == 0 &&
		(j->is_acting || !sp_place_is_trusted(j->st.st_uid));
	if (j->is_owner_other)
		sp_rights_of(j->st.st_uid, &j->owner);
	j->is_written = j->is_owner_other && is_written(o->file);
	j->rights = o->rights           ? o->rights
		    : j->is_owner_other ? &j->owner
					: NULL;
	return j->from;
}

/*
 * Root gives names to another user's profile, in its place.  The file stays the
 * user's, whose rights suffice to replace it unless only root can put a file
 * there.
 */
static int open_output(struct job *j, struct sp_error *err)
{
	const char *path = j->options->output;
	struct sp_place place;
	int r = sp_place_find(path, &place, err);
	const bool is_users = r >= 0 && j->is_owner_other &&
			      place.there.st_dev == j->st.st_dev &&
			      place.there.st_ino == j->st.st_ino;
	const bool acts =
		is_users && (j->is_acting || !sp_place_is_closed(&place));

	if (r >= 0 && acts != j->is_acting)
		r = sp_rights_act(acts ? &j->owner : NULL, path, err);
	sp_place_close(&place);
	if (r >= 0)
		r = sp_output_open(path, SP_OUTPUT_PRIVATE, &j->output, err);
	if (r >= 0 && is_users && !acts &&
	    fchown(j->output->fd, j->st.st_uid, j->st.st_gid) != 0)
		r = sp_error_set(err, -errno, path,
				 "cannot be given to its user: %s",
				 strerror(errno));
	return r;
}

static int work(void *arg, void *answer, struct sp_error *err)
{
	const struct job *j = arg;
	const struct sp_symbolize_options *o = j->options;
	/* A packed file says how its samples are rounded. */
	const struct sp_plan plan = {.no_samples =
					     !ends_with(o->output, ".zst")};
	struct sp_symbolize_result *ret = answer;
	struct sp_unread unread = {.file = o->file};
	struct sp_profile *profile;
	int r;

	if (j->rights && j->rights->user)
		unread.user = j->rights;
	sp_unread_options(&unread, &o->symbols);
	r = sp_profile_read(&o->file, 1, &plan, sp_apart_progress, NULL,
			    &profile, err);
	if (r < 0)
		return r;
	r = check_profile(profile, j->is_written, err);
	if (r >= 0)
		r = copy_file(profile, o, j->output, &unread, ret, err);
	memcpy(ret->note, unread.note, sizeof(ret->note));
	sp_profile_free(profile);
	return r;
}

/* The descriptors that the work needs; NULL: no memory. */
static int *list_kept(const struct job *j, size_t *ret_n)
{
	const struct sp_symbolize_options *o = j->options;
	int *kept = calloc(o->symbols.n_moved + 2, sizeof(*kept));
	size_t n = 0;

	*ret_n = 0;
	if (!kept)
		return NULL;
	kept[n++] = j->from;
	kept[n++] = j->output->fd;
	for (size_t i = 0; i < o->symbols.n_moved; i++)
		kept[n++] = sp_unread_descriptor(o->moved[i].file);
	*ret_n = n;
	return kept;
}

static int work_apart(struct job *j, sp_progress_fn *progress,
		      void *progress_arg, struct sp_symbolize_result *ret,
		      struct sp_error *err)
{
	const struct sp_symbolize_options *o = j->options;
	size_t n_kept;
	int *kept = list_kept(j, &n_kept);
	const struct sp_apart apart = {
		.file = o->file,
		.rights = j->rights,
		.kept = kept,
		.n_kept = n_kept,
		/* A server may take its time. */
		.silence_ms = o->symbols.use_debuginfod ? INT_MAX
							: SP_APART_SILENCE_MS,
		.all_ns = o->timeout_ns,
		.progress = progress,
		.progress_arg = progress_arg,
		.work = work,
		.arg = j};
	int r = kept ? sp_apart_run(&apart, ret, sizeof(*ret), err)
		     : sp_error_memory(err, o->file);

	free(kept);
	return r;
}

int sp_symbolize(const struct sp_symbolize_options *options,
		 sp_progress_fn *progress, void *progress_arg,
		 struct sp_symbolize_result *ret, struct sp_error *err)
{
	struct job j = {.options = options};
	int r = open_profile(&j, err);

	if (r >= 0)
		r = open_output(&j, err);
	if (r >= 0)
		r = work_apart(&j, progress, progress_arg, ret, err);
	/* A child that was misled may say anything. */
	ret->note[sizeof(ret->note) - 1] = '\0';
	if (r >= 0)
		r = sp_output_commit(j.output, err);
	else if (j.output)
		sp_output_abandon(j.output);
	return r;
}
