/* SPDX-License-Identifier: MIT */
/*
 * A profile as it is, or the steps to one whose checks are right: refused, or
 * every page and every export is safe and valid.
 *
 * The input is a file after an 'r'.  After anything else it is a list of steps
 * that make a file with right checks, which blind changes of bytes would hardly
 * ever do.  All numbers are bytes, or two with the smaller part first (u16):
 *
 *   'c' kind                     go on with the next chunk
 *   'm' type length payload      a record in this chunk
 *   'M' type length u16 payload
 *   'n' count                    the last record so many times again
 *   'e' column length bytes      numbers behind a column of this chunk
 *   'E' u16                      it has so many events, stacks or places
 *   'L'                          no chunk of events comes after it
 *   's' length bytes             status, from its first field on
 *   't' slot u16 length bytes    a thread slot, likewise
 *   'k' pair length bytes        class totals in this chunk: seq, slot, classes
 *   'f' flags                    of the header; only first
 *   'h' length bytes             header, from file_id on; only then
 *   'p' chunk offset u16 value   a byte, when all else is done
 *   'l' pages                    the file's length
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/hash.h"
#include "format/fuzz/packed.h"
#include "format/fuzz/show.h"
#include "format/fuzz/target.h"
#include "model/profile.h"
#include "read/load.h"
#include "support/format_model.h"
#include "support/memfile.h"

#define CHUNK      SP_FORMAT_CHUNK_BYTES
#define CHUNKS_MAX 6u
#define POKES_MAX  16u

struct input {
	const uint8_t *at;
	size_t left;
};

static uint8_t get_u8(struct input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->at++;
}

static uint16_t get_u16(struct input *in)
{
	uint8_t low = get_u8(in);

	return (uint16_t)(low | get_u8(in) << 8);
}

/* Up to n bytes. */
static struct input get_bytes(struct input *in, size_t n)
{
	struct input bytes = {in->at, n < in->left ? n : in->left};

	in->at += bytes.left;
	in->left -= bytes.left;
	return bytes;
}

static struct {
	uint8_t image[CHUNKS_MAX * CHUNK];
	uint32_t chunk;
	uint8_t kind;
	struct model_bytes records;
	struct model_chunk state;
	uint8_t last_type;
	struct input last_payload;
	uint32_t pages;
	struct {
		uint32_t at;
		uint8_t value;
	} pokes[POKES_MAX];
	unsigned int n_pokes;
} made;

static struct sp_file_header *header(void)
{
	return (struct sp_file_header *)made.image;
}

static void begin_image(void)
{
	const struct sp_file_header h = {
		.magic = SP_FORMAT_MAGIC,
		.version = SP_FORMAT_VERSION,
		.header_bytes = sizeof(h),
		.chunk_bytes = CHUNK,
		.file_id = 1,
		.period_bytes = 4096,
	};

	memset(made.image, 0, sizeof(made.image));
	memcpy(made.image, &h, sizeof(h));
	made.chunk = 1;
	made.kind = SP_CHUNK_RECORDS;
	made.records.n = 0;
	made.last_payload.left = 0;
	made.pages = CHUNKS_MAX * CHUNK / SP_FORMAT_PAGE_BYTES;
	made.n_pokes = 0;
	fuzz_columns_begin();
}

static void end_chunk(void)
{
	struct sp_chunk_header h = {SP_FORMAT_CHUNK_MAGIC, made.kind,
				    made.chunk, 0};
	uint8_t *at = made.image + made.chunk * CHUNK;

	if (made.chunk == CHUNKS_MAX)
		return;
	model_seal(header()->file_id, SP_CHECK_CHUNK, &h, sizeof(h));
	memcpy(at, &h, sizeof(h));
	if (made.records.n > CHUNK - sizeof(h))
		made.records.n = CHUNK - sizeof(h);
	if (made.records.n)
		memcpy(at + sizeof(h), made.records.data, made.records.n);
	fuzz_columns_end(at, made.kind, header()->file_id);
	made.records.n = 0;
	made.chunk++;
}

static void begin_chunk(void)
{
	model_chunk_begin(&made.state, header()->file_id, made.chunk);
}

static void put_record(void)
{
	struct model_bytes payload = {0};

	/* There is no need to write what will not fit. */
	if (made.records.n > CHUNK || made.last_type == SP_RECORD_NONE)
		return;
	model_raw(&payload, made.last_payload.at, made.last_payload.left);
	model_record(&made.records, &made.state, made.last_type, &payload);
	model_done(&payload);
}

/* Overwrite what is behind the first `from` bytes of a structure, seal it. */
static void put_structure(uint8_t *to, size_t bytes, size_t from,
			  enum sp_check_kind kind, struct input with)
{
	size_t room = bytes - from - 8;

	if (with.left)
		memcpy(to + from, with.at, with.left < room ? with.left : room);
	model_seal(header()->file_id, kind, to, bytes);
}

static void put_status(struct input with)
{
	uint8_t *to = made.image + SP_FORMAT_STATUS_OFFSET;

	if (with.left && with.at[0] & 1)
		to += SP_FORMAT_STATUS_STRIDE;
	put_structure(to, sizeof(struct sp_status), 0, SP_CHECK_STATUS, with);
}

static void put_slot(unsigned int slot, struct input with)
{
	uint8_t *to = made.image + SP_FORMAT_SLOTS_OFFSET +
		      slot % SP_FORMAT_SLOTS * sizeof(struct sp_slot);

	if (with.left && with.at[0] & 1)
		to += sizeof(struct sp_slot_copy);
	put_structure(to, sizeof(struct sp_slot_copy), 0, SP_CHECK_SLOT, with);
}

/* Its sums and its check are right, the rest is as it comes. */
static void put_classes(unsigned int pair, struct input with)
{
	struct sp_class_page page = {.seq = 0};
	size_t head = with.left < 16 ? with.left : 16;
	size_t room = sizeof(page.classes), n = with.left - head;

	if (made.chunk == CHUNKS_MAX)
		return;
	if (with.left) {
		memcpy(&page, with.at, head);
		memcpy(page.classes, with.at + head, n < room ? n : room);
	}
	for (unsigned int i = 0; i < SP_FORMAT_CLASSES; i++) {
		page.alloc_bytes += page.classes[i].bytes;
		page.alloc_objects += page.classes[i].objects;
	}
	model_seal(header()->file_id, SP_CHECK_CLASSES, &page,
		   offsetof(struct sp_class_page, classes));
	memcpy(made.image + made.chunk * CHUNK +
		       (1 + 2 * (pair % SP_FORMAT_CLASS_SLOTS) +
			(page.seq & 1)) *
			       SP_FORMAT_PAGE_BYTES,
	       &page, sizeof(page));
}

static void put_poke(uint32_t at, uint8_t value)
{
	if (made.n_pokes == POKES_MAX)
		return;
	made.pokes[made.n_pokes].at = at % sizeof(made.image);
	made.pokes[made.n_pokes++].value = value;
}

static void take_record(struct input *in, bool is_long)
{
	made.last_type = get_u8(in);
	made.last_payload = get_bytes(in, is_long ? get_u16(in) : get_u8(in));
	put_record();
}

static void take_column(struct input *in)
{
	const unsigned int column = get_u8(in);
	const struct input bytes = get_bytes(in, get_u8(in));

	fuzz_columns_add(column, bytes.at, bytes.left);
}

static void take_step(struct input *in, uint8_t step)
{
	unsigned int n;

	switch (step) {
	case 'c':
		end_chunk();
		made.kind = get_u8(in);
		begin_chunk();
		break;
	case 'm':
	case 'M':
		take_record(in, step == 'M');
		break;
	case 'n':
		for (n = get_u8(in); n; n--)
			put_record();
		break;
	case 'e':
		take_column(in);
		break;
	case 'E':
		fuzz_columns_count(get_u16(in));
		break;
	case 'L':
		fuzz_columns_last();
		break;
	case 's':
		put_status(get_bytes(in, get_u8(in)));
		break;
	case 't':
		n = get_u16(in);
		put_slot(n, get_bytes(in, get_u8(in)));
		break;
	case 'k':
		n = get_u8(in);
		put_classes(n, get_bytes(in, get_u8(in)));
		break;
	case 'p':
		n = get_u8(in) * CHUNK;
		n += get_u16(in);
		put_poke(n, get_u8(in));
		break;
	case 'l':
		made.pages = get_u8(in) % (made.pages + 1);
		break;
	default:
		break;
	}
}

static void make_image(struct input in)
{
	begin_image();
	if (in.left && in.at[0] == 'f') {
		get_u8(&in);
		header()->flags = get_u8(&in);
	}
	/* All else depends on the file_id. */
	if (in.left && in.at[0] == 'h') {
		get_u8(&in);
		put_structure(made.image, sizeof(struct sp_file_header),
			      offsetof(struct sp_file_header, file_id),
			      SP_CHECK_HEADER, get_bytes(&in, get_u8(&in)));
	} else {
		model_seal(header()->file_id, SP_CHECK_HEADER, header(),
			   sizeof(struct sp_file_header));
	}
	begin_chunk();
	while (in.left)
		take_step(&in, get_u8(&in));
	end_chunk();
	for (unsigned int i = 0; i < made.n_pokes; i++)
		made.image[made.pokes[i].at] = made.pokes[i].value;
}

/* Store the image without its empty chunks. */
static void write_image(const struct memfile *file)
{
	static const uint8_t zeros[CHUNK];

	for (uint32_t i = 0; i < CHUNKS_MAX; i++)
		if (memcmp(made.image + i * CHUNK, zeros, CHUNK) != 0)
			memfile_write(file, i * CHUNK, made.image + i * CHUNK,
				      CHUNK);
	memfile_resize(file, (uint64_t)made.pages * SP_FORMAT_PAGE_BYTES);
}

/* Every position is one, and nothing ends before it began. */
static void check_samples(const struct sp_profile *p)
{
	for (size_t i = 0; i < p->n_samples; i++) {
		const struct sp_sample *s = &p->samples[i];

		FUZZ_ASSERT(i == 0 || s->id > s[-1].id);
		FUZZ_ASSERT(s->size_bytes > s->offset_bytes);
		FUZZ_ASSERT(s->period_bytes > 0);
		FUZZ_ASSERT(s->freed_ns >= s->born_ns);
		FUZZ_ASSERT(s->stack < p->n_stacks);
		FUZZ_ASSERT(s->thread == UINT32_MAX ||
			    s->thread < p->n_thread_infos);
		FUZZ_ASSERT(s->freed_by == UINT32_MAX ||
			    s->freed_by < p->n_thread_infos);
	}
	for (size_t i = 1; i < p->n_rss; i++)
		FUZZ_ASSERT(p->rss[i].time_ns >= p->rss[i - 1].time_ns);
}

/* Then there may be no field that could not be read. */
static bool begins_with(const struct memfile *file, const char *magic,
			size_t bytes)
{
	uint64_t n;
	uint8_t *have = memfile_read(file, &n);
	const bool is = n >= bytes && memcmp(have, magic, bytes) == 0;

	free(have);
	return is;
}

static bool is_compressed(const struct memfile *file)
{
	return begins_with(file, "\x28\xb5\x2f\xfd", 4);
}

static void check_profile(const struct sp_profile *p)
{
	FUZZ_ASSERT((p->damage[0] != '\0') == (p->damaged_records > 0));
	FUZZ_ASSERT(p->program && p->command && p->host);
	for (size_t i = 0; i < p->n_stacks; i++) {
		const struct sp_stack *s = &p->stacks[i];

		FUZZ_ASSERT(s->n_frames <= SP_FORMAT_FRAMES_MAX);
		FUZZ_ASSERT(s->n_frames == 0 || s->frames);
	}
	check_samples(p);
	for (size_t i = 0; i < p->n_infos; i++)
		FUZZ_ASSERT(sp_profile_info(p, p->infos[i].key) ==
			    p->infos[i].value);
	for (size_t i = 0; i < p->n_modules; i++)
		FUZZ_ASSERT(sp_profile_module(p, p->modules[i].id) ==
			    &p->modules[i]);
}

/* No file of this machine is opened because a profile names it. */
static char **hide_modules(struct sp_profile *p)
{
	char **paths = calloc(p->n_modules + 1, sizeof(*paths));

	FUZZ_ASSERT(paths);
	for (size_t i = 0; i < p->n_modules; i++) {
		FUZZ_ASSERT(asprintf(&paths[i], "/nonexistent/%s",
				     p->modules[i].path) >= 0);
		if (p->modules[i].path[0])
			p->modules[i].path = paths[i];
	}
	return paths;
}

static void use(struct sp_profile *p, uint64_t choice)
{
	char **paths = hide_modules(p);

	fuzz_show(p, choice);
	for (size_t i = 0; i < p->n_modules; i++)
		free(paths[i]);
	free(paths);
}

/* What was folded while it was read has the same totals, and as many samples:
 * but one of an id that was there before, as only a forged file has, is one
 * more, since that would take the memory that folding saves. */
static void check_folded(const char *path, const struct sp_profile *whole,
			 uint64_t choice)
{
	static const uint64_t cuts[] = {0, 1000, 5000000};
	const struct sp_plan plan = {.confidence = 0.95,
				     .has_lifetimes = choice & 1,
				     .has_temporary = choice & 2,
				     .within_ns = choice & 4 ? 1000 : SP_NEVER,
				     .cuts = cuts,
				     .n_cuts = choice & 4 ? 0 : choice % 4,
				     .n_points = choice & 8 ? 201 : 0};
	struct sp_profile *p;
	struct sp_error err;

	FUZZ_ASSERT(sp_profile_read(&path, 1, &plan, NULL, NULL, &p, &err) ==
		    0);
	FUZZ_ASSERT(sp_profile_samples(p) >= whole->n_samples);
	FUZZ_ASSERT(p->exact_alloc_bytes == whole->exact_alloc_bytes);
	FUZZ_ASSERT(p->n_stacks == whole->n_stacks);
	FUZZ_ASSERT(strcmp(p->damage, whole->damage) == 0);
	use(p, choice);
	sp_profile_free(p);
}

/* Together with a profile that is kept, whatever that makes of both. */
static void check_merged(const char *path, const struct sp_profile *whole,
			 uint64_t choice)
{
	const char *const paths[] = {SP_GOLDEN "/v1-live/exit.sprof", path};
	struct sp_profile *p;
	struct sp_error err = {0};

	if (sp_profile_load_many(paths, 2, NULL, NULL, &p, &err) == 0) {
		FUZZ_ASSERT(p->n_parts == 2 && p->n_samples > whole->n_samples);
		check_samples(p);
		use(p, choice);
		sp_profile_free(p);
	} else {
		FUZZ_ASSERT(err.message[0]);
	}
}

/* The same file, compressed. */
static void check_compressed(const struct memfile *file,
			     const struct sp_profile *whole)
{
	uint64_t n;
	uint8_t *bytes = memfile_read(file, &n);
	const size_t room = ZSTD_compressBound(n);
	uint8_t *packed = malloc(room);
	const size_t n_packed = ZSTD_compress(packed, room, bytes, n, 1);
	struct memfile other;
	struct sp_profile *p;
	struct sp_error err;

	FUZZ_ASSERT(!ZSTD_isError(n_packed));
	memfile_open(&other);
	memfile_write(&other, 0, packed, n_packed);
	FUZZ_ASSERT(sp_profile_load(other.path, NULL, NULL, &p, &err) == 0);
	FUZZ_ASSERT(p->n_samples == whole->n_samples);
	FUZZ_ASSERT(p->n_stacks == whole->n_stacks);
	sp_profile_free(p);
	memfile_close(&other);
	free(packed);
	free(bytes);
}

/* A search looks at the other ways to read a profile one at a time. */
#ifdef SP_FUZZ_SEARCH
#define IS_CHOSEN(choice, i) ((choice) % 8 == (i))
#else
#define IS_CHOSEN(choice, i) true
#endif

static void check_all(const struct memfile *file, struct sp_profile *p,
		      uint64_t choice)
{
	check_profile(p);
	use(p, choice / 8);
	if (IS_CHOSEN(choice, 0))
		check_folded(file->path, p, choice / 8);
	if (IS_CHOSEN(choice, 1))
		check_merged(file->path, p, choice / 8);
	if (IS_CHOSEN(choice, 3) && !p->damage[0] && !p->is_cut)
		fuzz_check_packed(p);
	if (IS_CHOSEN(choice, 2) && !is_compressed(file))
		check_compressed(file, p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memfile file;
	struct sp_profile *p;
	struct sp_error err = {0};

	memfile_open(&file);
	if (size && data[0] == 'r') {
		memfile_write(&file, 0, data + 1, size - 1);
	} else {
		make_image((struct input){data, size});
		write_image(&file);
	}
	if (sp_profile_load(file.path, NULL, NULL, &p, &err) == 0) {
		check_all(&file, p, sp_hash_bytes(0, data, size) >> 32);
		sp_profile_free(p);
	} else {
		FUZZ_ASSERT(err.message[0]);
		/* Of a file of another kind it is said what that is. */
		FUZZ_ASSERT((err.has_offset && err.field) ||
			    is_compressed(&file) ||
			    !begins_with(&file, SP_FORMAT_MAGIC,
					 SP_FORMAT_MAGIC_BYTES));
	}
	memfile_close(&file);
	return 0;
}
