/* SPDX-License-Identifier: MIT */
#ifndef SP_READ_STORED_H
#define SP_READ_STORED_H

#include <stddef.h>
#include <stdint.h>

#include "base/blocks.h"
#include "base/idmap.h"
#include "base/index.h"
#include "format/decode.h"
#include "model/profile.h"

/*
 * The symbols that a profile file brings along (docs/format.md, NAME and
 * SYMBOL), on their way into the profile.  Zero-initialise.
 */
struct sp_stored {
	struct sp_idmap names; /* ids to positions in `texts` */
	const char **texts;
	size_t n_texts, texts_room;
	struct sp_stored_frame *frames; /* in any order */
	size_t n_frames, frames_room;
	/* What texts of another profile became. */
	struct sp_stored_pointer {
		const char *from;
		const char *to;
	} * pointers;
	size_t n_pointers, pointers_room;
	struct sp_index index; /* of pointers */
};

/* A NAME or a SYMBOL.  What names nothing that came before is passed over.
 * Texts go into `blocks`.  0 or -ENOMEM. */
int sp_stored_take(struct sp_stored *stored, struct sp_blocks *blocks,
		   const struct sp_decoded *record);

/*
 * The symbols of another profile's frame as those of `frame`.  0 or -ENOMEM.
 * That profile has each text once, and so will this one, until its pointers are
 * to be forgotten because it is freed.
 */
int sp_stored_copy(struct sp_stored *stored, struct sp_blocks *blocks,
		   struct sp_frame frame, const struct sp_stored_frame *from);
void sp_stored_forget_pointers(struct sp_stored *stored);

/* All frames go to the profile, in order; of one that comes again one is
 * kept. */
void sp_stored_finish(struct sp_stored *stored, struct sp_profile *profile);

void sp_stored_done(struct sp_stored *stored);

#endif
