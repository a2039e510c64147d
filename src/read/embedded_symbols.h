/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

#include "base/blocks.h"
#include "base/idmap.h"
#include "base/index.h"
#include "format/decode.h"
#include "model/profile.h"

/*
 * The symbols that a profile file brings along (docs/format.md, NAME, SYMBOL
 * and CODE), on their way into the profile.  Zero-initialise.
 */
struct sp_embedded {
	struct sp_idmap names; /* ids to positions in `texts` */
	const char **texts;
	size_t n_texts, texts_room;
	struct sp_embedded_frame *frames; /* in any order */
	size_t n_frames, frames_room;
	/* What texts of another profile became. */
	struct sp_embedded_pointer {
		const char *from;
		const char *to;
	} * pointers;
	size_t n_pointers, pointers_room;
	struct sp_index index; /* of pointers */
};

/* A NAME, a SYMBOL or a CODE.  What names nothing that came before is passed
 * over. Texts go into `blocks`.  0 or -ENOMEM. */
int sp_embedded_take(struct sp_embedded *stored, struct sp_blocks *blocks,
		     const struct sp_decoded *record);

/*
 * The symbols of another profile's frame as those of `frame`.  0 or -ENOMEM.
 * That profile has each text once, and so will this one, until its pointers are
 * to be forgotten because it is freed.
 */
int sp_embedded_copy(struct sp_embedded *stored, struct sp_blocks *blocks,
		     struct sp_frame frame,
		     const struct sp_embedded_frame *from);
void sp_embedded_forget_pointers(struct sp_embedded *stored);

/* All frames go to the profile, in order; of one that comes again one is
 * kept. */
void sp_embedded_finish(struct sp_embedded *stored, struct sp_profile *profile);

void sp_embedded_done(struct sp_embedded *stored);
