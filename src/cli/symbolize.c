/* SPDX-License-Identifier: MIT */
#include "cli/symbolize.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/place.h"
#include "cli/arguments.h"
#include "cli/options.h"
#include "copy/packfile.h"
#include "copy/symbolfile.h"
#include "read/load.h"
#include "read/source.h"
#include "text/output.h"

#define CHUNK SP_FORMAT_CHUNK_BYTES

/* ---- the command line ---- */

static bool take_output(void *part, const char *text)
{
	struct sp_symbolize_options *o = part;

	o->output = text;
	return *text != '\0' && strcmp(text, "-") != 0;
}

static bool take_module(void *part, const char *text)
{
	struct sp_symbolize_options *o = part;
	const size_t n = o->symbols.n_moved;
	const char *equals = strrchr(text, '=');
	struct sp_moved_module *grown;

	if (!equals || equals == text || !equals[1])
		return false;
	grown = reallocarray(o->moved, n + 1, sizeof(*grown));
	if (!grown)
		return false;
	o->symbols.moved = o->moved = grown;
	grown[n] = (struct sp_moved_module){
		strndup(text, (size_t)(equals - text)), equals + 1};
	o->symbols.n_moved += grown[n].path != NULL;
	return grown[n].path != NULL;
}

static const struct sp_argument output_arguments[] = {
	{"output", 'o', "OUT", "a path", take_output, 0,
	 "file to write; packed, with zstd, if it ends in .zst"},
	{"module", 0, "PATH=FILE", "a path, = and the path of a file",
	 take_module, 0,
	 "read FILE in the place of the executable or library that\n"
	 "was at PATH and is not there any more; it has to have its\n"
	 "build id, if there is one; may be given again"},
	{0},
};

static const struct sp_argument_group output_group = {"How to write",
						      output_arguments, NULL};

static const struct sp_argument other_arguments[] = {
	SP_ARGUMENTS_ABOUT(struct sp_symbolize_options)};

static const struct sp_argument_group other_group = {NULL, other_arguments,
						     NULL};

const struct sp_command_line sp_symbolize_line = {
	.forms = "symbolize [OPTION]... FILE -o OUT",
	.about = "Copy a profile and put the names of its functions into the "
		 "copy, so that it can\n"
		 "be read where the programs and their debug files are not.\n"
		 "\n"
		 "A copy OUT.zst is also packed: it is much smaller, and has "
		 "everything that a\n"
		 "report needs. If it has more than one sample in a "
		 "millisecond, its times are\n"
		 "right to within a millisecond.\n",
	.parts =
		(const struct sp_argument_part[]){
			{&output_group, 0},
			SP_ARGUMENT_PART(struct sp_symbolize_options,
					 sp_options_symbols, symbols),
			{&other_group, 0},
			{0}},
	.ending = "Exit status: 0 fine, 1 error, 2 usage.\n",
};

int sp_symbolize_parse(int argc, char **argv, struct sp_symbolize_options *ret,
		       struct sp_error *err)
{
	const char *const *words;
	size_t n;
	int r;

	*ret = (struct sp_symbolize_options){0};
	r = sp_arguments_parse(&sp_symbolize_line, argc, argv, ret, &words, &n,
			       err);
	if (r)
		return r;
	r = sp_arguments_take_file(words, n, &ret->file, err);
	if (r < 0)
		return r;
	if (!ret->output)
		return sp_error_set(err, -EINVAL, NULL,
				    "where to? no -o OUT was given");
	return 0;
}

/* ---- writing ---- */

struct sink {
	struct sp_output *output;
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

static int check_profile(const struct sp_profile *p, struct sp_error *err)
{
	if (p->end == SP_PROFILE_END_RUNNING)
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
			 struct sink *sink, sp_progress_fn *progress,
			 void *progress_arg, struct sp_symbolize_result *ret,
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
	r = sp_symbolfile_write(profile, symbolizer, &file, progress,
				progress_arg, &ret->frames, err);
	sp_symbolizer_count(symbolizer, &ret->named, &stored);
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

static int open_sink(struct sink *sink, const char *path, bool is_packed,
		     struct sp_error *err)
{
	int r = sp_output_open(path, SP_OUTPUT_PRIVATE, &sink->output, err);

	if (r < 0 || !ends_with(path, ".zst"))
		return r;
	sink->zstd = ZSTD_createCCtx();
	if (!sink->zstd ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(
		    sink->zstd, ZSTD_c_compressionLevel,
		    is_packed ? PACKED_LEVEL : ZSTD_CLEVEL_DEFAULT)) ||
	    ZSTD_isError(
		    ZSTD_CCtx_setParameter(sink->zstd, ZSTD_c_checksumFlag, 1)))
		return sp_error_memory(err, path);
	return 0;
}

static int write_copy(const struct sp_profile *profile,
		      const struct sp_symbolize_options *options,
		      struct sink *sink, sp_progress_fn *progress,
		      void *progress_arg, struct sp_symbolize_result *ret,
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
		     : write_symbols(profile, options, NULL, sink, progress,
				     progress_arg, ret, err);
}

/* Events come last, since the last of them says that all is there. */
static int write_packed(const struct sp_profile *profile,
			const struct sp_symbolize_options *options,
			struct sink *sink, sp_progress_fn *progress,
			void *progress_arg, struct sp_symbolize_result *ret,
			struct sp_error *err)
{
	struct sp_packfile_facts facts = {0};
	int r = sp_packfile_write_facts(profile, put_chunk, sink, &facts, err);

	if (r >= 0)
		r = write_symbols(profile, options, &facts, sink, progress,
				  progress_arg, ret, err);
	free(facts.places);
	return r < 0 ? r
		     : sp_packfile_write_events(profile, sink->n_chunks,
						facts.unfinished, put_chunk,
						sink, err);
}

static int copy_file(const struct sp_profile *profile,
		     const struct sp_symbolize_options *options,
		     sp_progress_fn *progress, void *progress_arg,
		     struct sp_symbolize_result *ret, struct sp_error *err)
{
	/* Damage is copied as it is, and reported by a reader of the copy. */
	const bool is_packed =
		ends_with(options->output, ".zst") && !*profile->damage;
	struct sink sink = {0};
	int r = open_sink(&sink, options->output, is_packed, err);

	if (r >= 0)
		r = (is_packed ? write_packed
			       : write_copy)(profile, options, &sink, progress,
					     progress_arg, ret, err);
	if (r >= 0) {
		r = end_sink(&sink);
		if (r < 0)
			sp_error_set(err, r, options->output,
				     "cannot be written: %s", strerror(-r));
	}
	ret->time_error_ns = is_packed ? sp_packfile_time_error_ns(profile) : 0;
	if (r >= 0)
		r = sp_output_commit(sink.output, err);
	else if (sink.output)
		sp_output_abandon(sink.output);
	ZSTD_freeCCtx(sink.zstd);
	return r;
}

/* ---- whose rights ---- */

#define NO_GROUP 65534

/* The groups of a user that nobody knows give nothing away. */
static int take_rights(uid_t user, const char *path, struct sp_error *err)
{
	const struct passwd *known = getpwuid(user);
	const gid_t group = known ? known->pw_gid : NO_GROUP;
	int r = known ? initgroups(known->pw_name, group) : setgroups(0, NULL);

	if (r == 0) {
		setfsgid(group);
		setfsuid(user);
	}
	return r == 0 && setfsuid((uid_t)-1) == (int)user
		       ? 0
		       : sp_error_set(
				 err, -EPERM, path,
				 "belongs to another user (uid %ld), whose "
				 "rights are not to be had: give another "
				 "name with -o",
				 (long)user);
}

/*
 * Root gives names to another user's profile, in its place.  The file stays the
 * user's, and says what it likes about which files to read: so they are read
 * with the user's rights, which also suffice to replace it.
 */
static int act_as_owner(const struct sp_symbolize_options *o,
			struct sp_error *err)
{
	struct sp_place place;
	struct stat from;
	int r = sp_place_find(o->output, &place, err);

	if (r >= 0 && geteuid() == 0 && !sp_place_is_closed(&place) &&
	    !sp_place_is_trusted(place.there.st_uid) &&
	    stat(o->file, &from) == 0 && from.st_dev == place.there.st_dev &&
	    from.st_ino == place.there.st_ino)
		r = take_rights(from.st_uid, o->file, err);
	sp_place_close(&place);
	return r;
}

int sp_symbolize(const struct sp_symbolize_options *options,
		 sp_progress_fn *progress, void *progress_arg,
		 struct sp_symbolize_result *ret, struct sp_error *err)
{
	const struct sp_plan plan = {.every_sample = false};
	struct sp_profile *profile;
	int r = act_as_owner(options, err);

	if (r >= 0)
		r = sp_profile_read(&options->file, 1, &plan, progress,
				    progress_arg, &profile, err);
	if (r < 0)
		return r;
	r = check_profile(profile, err);
	if (r >= 0)
		r = copy_file(profile, options, progress, progress_arg, ret,
			      err);
	sp_profile_free(profile);
	return r;
}
