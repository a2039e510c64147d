/* SPDX-License-Identifier: MIT */
/*
 * Static functions of one name, in different files, by as much of the files'
 * paths as tells those of each run apart: directories above that may be others
 * on each side.  A side that knows no files has all of them under the bare
 * name, so the other side has to do the same.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/blocks.h"
#include "base/order.h"
#include "compare/match.h"
#include "symbols/home.h"

/* A frame with a home. */
struct homed {
	uint32_t frame;
	uint32_t stem; /* the name without it */
	const char *file;
	size_t bytes;
};

/* All of one name. */
struct stem {
	uint32_t bare;       /* the frame of just that name; NO_FRAME */
	bool is_old, is_new; /* a frame with a home is there on that side */
	bool is_several;     /* with different ends of their paths */
	size_t parts;        /* of these ends */
	uint32_t n;          /* at most so many in one run */
};

#define NO_FRAME UINT32_MAX

struct homer {
	const struct sp_pair *pair;
	size_t n_frames;
	struct sp_intern stems;
	struct stem *of_stem;
	struct homed *homed; /* by stem, then from the ends of their paths */
	size_t n;
	struct sp_blocks files;
	bool *has; /* of each frame: the run at hand */
	bool *old_has, *new_has;
	uint32_t *name; /* what each frame is renamed to */
};

/* ---- names ---- */

static int compare_ends(const struct homed *a, const struct homed *b)
{
	size_t i = 0;

	while (i < a->bytes && i < b->bytes &&
	       a->file[a->bytes - 1 - i] == b->file[b->bytes - 1 - i])
		i++;
	if (i == a->bytes || i == b->bytes)
		return (a->bytes > b->bytes) - (a->bytes < b->bytes);
	return (unsigned char)a->file[a->bytes - 1 - i] <
			       (unsigned char)b->file[b->bytes - 1 - i]
		       ? -1
		       : 1;
}

SP_ORDER(compare_homed, struct homed, SP_UP(stem) || SP_BY(compare_ends(x, y)));

static int find_homed(struct homer *h)
{
	const struct sp_paths *paths = h->pair->paths;

	for (uint32_t i = 0; i < h->n_frames; i++) {
		const char *name = sp_paths_name(paths, i);
		const struct sp_home home = sp_home_of(name);
		struct homed *homed = &h->homed[h->n];

		if (!home.text || (!h->old_has[i] && !h->new_has[i]))
			continue;
		/* the frames' own texts move when one is added */
		*homed = (struct homed){.frame = i,
					.file = sp_blocks_text(&h->files,
							       home.text,
							       home.file_bytes),
					.bytes = home.file_bytes};
		if (!homed->file ||
		    sp_intern_add(&h->stems, name, home.name_bytes,
				  &homed->stem) < 0)
			return -ENOMEM;
		h->n++;
	}
	if (h->n)
		qsort(h->homed, h->n, sizeof(*h->homed), compare_homed);
	h->of_stem = calloc(h->stems.n_entries + 1, sizeof(*h->of_stem));
	if (!h->of_stem)
		return -ENOMEM;
	for (uint32_t i = 0; i < h->stems.n_entries; i++) {
		const char *stem = sp_intern_bytes(&h->stems, i);

		h->of_stem[i] = (struct stem){
			.bare = sp_intern_find(&paths->frames, stem,
					       strlen(stem)),
			.parts = 1};
	}
	return 0;
}

/* ---- what each run needs ---- */

static void look_at_run(struct homer *h, struct sp_summary *run)
{
	const struct sp_side one = {&run, 1};
	const struct homed *last = NULL;
	uint32_t n = 0;

	memset(h->has, 0, h->n_frames * sizeof(*h->has));
	sp_match_mark(h->pair, &one, h->has);
	for (const struct homed *at = h->homed; at < h->homed + h->n; at++) {
		struct stem *stem = &h->of_stem[at->stem];

		if (!h->has[at->frame])
			continue;
		if (last && last->stem == at->stem) {
			const size_t common = sp_home_common(
				last->file, last->bytes, at->file, at->bytes);

			if (common >= stem->parts)
				stem->parts = common + 1;
			n++;
		} else {
			n = 1;
		}
		if (n > stem->n)
			stem->n = n;
		last = at;
	}
}

static const char *tail_of(const struct homer *h, const struct homed *homed,
			   size_t *ret_bytes)
{
	const char *tail = sp_home_tail(homed->file, homed->bytes,
					h->of_stem[homed->stem].parts);

	*ret_bytes = (size_t)(homed->file + homed->bytes - tail);
	return tail;
}

static bool is_same_tail(const struct homer *h, const struct homed *a,
			 const struct homed *b)
{
	size_t n_a, n_b;
	const char *tail_a = tail_of(h, a, &n_a), *tail_b = tail_of(h, b, &n_b);

	return n_a == n_b && memcmp(tail_a, tail_b, n_a) == 0;
}

static void look_at_all(struct homer *h)
{
	for (size_t i = 0; i < h->pair->old.n; i++)
		look_at_run(h, h->pair->old.run[i]);
	for (size_t i = 0; i < h->pair->new.n; i++)
		look_at_run(h, h->pair->new.run[i]);
	for (size_t i = 0; i < h->n; i++) {
		const struct homed *at = &h->homed[i];
		struct stem *stem = &h->of_stem[at->stem];

		stem->is_old |= h->old_has[at->frame];
		stem->is_new |= h->new_has[at->frame];
		stem->is_several |= i && at[-1].stem == at->stem &&
				    !is_same_tail(h, at, at - 1);
	}
}

/* ---- renaming ---- */

/* Does one side have the name alone, where the other has homes? */
static bool is_unknown(const struct homer *h, const struct stem *stem)
{
	return stem->bare != NO_FRAME &&
	       ((h->old_has[stem->bare] && !stem->is_old) ||
		(h->new_has[stem->bare] && !stem->is_new));
}

/* Has the name, as it is, no other function? */
static bool is_alone(const struct homer *h, const struct stem *stem)
{
	return !stem->is_several &&
	       (stem->bare == NO_FRAME ||
		(!h->old_has[stem->bare] && !h->new_has[stem->bare]));
}

static int rename_homed(struct homer *h, const struct homed *homed)
{
	struct sp_paths *paths = h->pair->paths;
	const struct stem *stem = &h->of_stem[homed->stem];
	const bool is_bare = is_unknown(h, stem) || is_alone(h, stem);
	const uint32_t n = is_unknown(h, stem)
				   ? stem->n
				   : sp_paths_functions(paths, homed->frame);
	size_t bytes;
	const char *at = tail_of(h, homed, &bytes);
	char *tail = is_bare ? NULL : strndup(at, bytes);
	char *name =
		sp_home_join(sp_intern_bytes(&h->stems, homed->stem), tail, 0);
	uint32_t *to = &h->name[homed->frame];
	int r = -ENOMEM;

	if (name && (tail || is_bare))
		r = sp_intern_add(&paths->frames, name, strlen(name), to);
	if (!r)
		r = sp_paths_set_functions(paths, *to, n);
	free(tail);
	free(name);
	return r;
}

static int rename_all(struct homer *h)
{
	int r = 0;

	for (size_t i = 0; i < h->n_frames; i++)
		h->name[i] = (uint32_t)i;
	for (size_t i = 0; !r && i < h->n; i++)
		r = rename_homed(h, &h->homed[i]);
	if (!r)
		r = sp_match_rename(h->pair, &h->pair->old, h->name);
	return r ? r : sp_match_rename(h->pair, &h->pair->new, h->name);
}

static int homer_init(struct homer *h, const struct sp_pair *pair)
{
	const size_t n = pair->paths->frames.n_entries;

	*h = (struct homer){.pair = pair, .n_frames = n};
	h->homed = calloc(n + 1, sizeof(*h->homed));
	h->name = calloc(n + 1, sizeof(*h->name));
	h->has = calloc(n + 1, sizeof(*h->has));
	h->old_has = calloc(n + 1, sizeof(*h->old_has));
	h->new_has = calloc(n + 1, sizeof(*h->new_has));
	if (!h->homed || !h->name || !h->has || !h->old_has || !h->new_has)
		return -ENOMEM;
	sp_match_mark(pair, &pair->old, h->old_has);
	sp_match_mark(pair, &pair->new, h->new_has);
	return find_homed(h);
}

static void homer_done(struct homer *h)
{
	sp_intern_done(&h->stems);
	sp_blocks_free(&h->files);
	free(h->of_stem);
	free(h->homed);
	free(h->name);
	free(h->has);
	free(h->old_has);
	free(h->new_has);
}

int sp_match_homes(const struct sp_pair *pair)
{
	struct homer h;
	int r = homer_init(&h, pair);

	if (!r && h.n) {
		look_at_all(&h);
		r = rename_all(&h);
	}
	homer_done(&h);
	return r;
}
