/* SPDX-License-Identifier: MIT */
#include "read/embedded_symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/order.h"
#include "symbols/demangle.h"
#include "symbols/home.h"

static int take_name(struct sp_embedded *s, struct sp_blocks *blocks,
		     const struct sp_record_name *r)
{
	const uint32_t id = (uint32_t)r->id;

	if (sp_idmap_find(&s->names, id) != UINT32_MAX)
		return 0;
	if (sp_array_reserve((void **)&s->texts, &s->texts_room, s->n_texts,
			     sizeof(*s->texts)))
		return -ENOMEM;
	s->texts[s->n_texts] = sp_blocks_text(blocks, r->text, r->text_bytes);
	if (!s->texts[s->n_texts] ||
	    sp_idmap_add(&s->names, id, (uint32_t)s->n_texts))
		return -ENOMEM;
	s->n_texts++;
	return 0;
}

static const char *text_of(const struct sp_embedded *s, uint32_t id)
{
	const uint32_t i = sp_idmap_find(&s->names, id);

	return i == UINT32_MAX ? NULL : s->texts[i];
}

static int add_frame(struct sp_embedded *s, struct sp_blocks *blocks,
		     struct sp_frame frame, const struct sp_symbol *symbols,
		     size_t n)
{
	const struct sp_symbol *copy;

	if (sp_array_reserve((void **)&s->frames, &s->frames_room, s->n_frames,
			     sizeof(*s->frames)))
		return -ENOMEM;
	copy = sp_blocks_copy(blocks, symbols, n * sizeof(*symbols));
	if (!copy)
		return -ENOMEM;
	s->frames[s->n_frames++] = (struct sp_embedded_frame){frame, {copy, n}};
	return 0;
}

/* As people read it; NULL if memory is short. */
static const char *short_name(struct sp_blocks *blocks, const char *full)
{
	const size_t n = sp_demangle_short(full);

	return full[n] ? sp_blocks_text(blocks, full, n) : full;
}

static int take_symbol(struct sp_embedded *s, struct sp_blocks *blocks,
		       const struct sp_decoded *d)
{
	const uint32_t n = d->u.symbol.n_lines;
	struct sp_record_line lines[SP_FORMAT_LINES_MAX];
	struct sp_symbol symbols[SP_FORMAT_LINES_MAX];

	sp_decode_lines(d, lines);
	for (uint32_t i = 0; i < n; i++) {
		symbols[i] = (struct sp_symbol){
			.identity = text_of(s, lines[i].function),
			.file = text_of(s, lines[i].file),
			.line = lines[i].line,
			.is_inlined = lines[i].flags & SP_SYMBOL_INLINED,
			.is_fallback = lines[i].flags & SP_SYMBOL_FALLBACK,
			.is_clone = lines[i].flags & SP_SYMBOL_CLONE,
			.lacks_inlined = lines[i].flags & SP_SYMBOL_LACKS,
			.calls_wrapper = lines[i].flags & SP_SYMBOL_CALLS,
			.is_embedded = true,
		};
		/* A text may be empty, or begin with a zero byte. */
		if (!symbols[i].identity || !*symbols[i].identity)
			return 0;
		symbols[i].function = short_name(blocks, symbols[i].identity);
		if (!symbols[i].function)
			return -ENOMEM;
	}
	return add_frame(s, blocks,
			 (struct sp_frame){(uint32_t)d->u.symbol.frame.module,
					   d->u.symbol.frame.offset},
			 symbols, n);
}

/* A file of a library is the same one wherever that is installed: its path
 * behind "/python3.11/", or behind "site-packages/" there. */
static const char *home_of_script(const char *path)
{
	static const char start[] = "/python";
	const char *home = path;

	for (const char *at = path; (at = strstr(at, start));) {
		at += sizeof(start) - 1;
		const size_t n = strspn(at, "0123456789.");

		at += n + (n && at[n] == 't');
		if (n && *at == '/')
			home = at + 1;
	}
	if (home != path && (strncmp(home, "site-packages/", 14) == 0 ||
			     strncmp(home, "dist-packages/", 14) == 0))
		home += 14;
	return *home ? home : path;
}

/* A file knows the functions of a script by their names: two files may have
 * one of the same name, so the file is their home. */
static int take_code(struct sp_embedded *s, struct sp_blocks *blocks,
		     const struct sp_record_code *r)
{
	struct sp_symbol symbol = {.line = (uint32_t)r->line,
				   .is_embedded = true};
	char *full;

	symbol.function =
		sp_blocks_text(blocks, r->function, r->function_bytes);
	if (r->file_bytes)
		symbol.file = sp_blocks_text(blocks, r->file, r->file_bytes);
	if (!symbol.function || (r->file_bytes && !symbol.file))
		return -ENOMEM;
	/* A text may begin with a zero byte. */
	if (!*symbol.function)
		return 0;
	full = sp_home_join(symbol.function,
			    symbol.file ? home_of_script(symbol.file) : NULL,
			    0);
	if (full)
		symbol.identity = sp_blocks_text(blocks, full, strlen(full));
	free(full);
	if (!symbol.identity)
		return -ENOMEM;
	return add_frame(
		s, blocks,
		(struct sp_frame){(uint32_t)r->frame.module, r->frame.offset},
		&symbol, 1);
}

int sp_embedded_take(struct sp_embedded *s, struct sp_blocks *blocks,
		     const struct sp_decoded *record)
{
	if (record->type == SP_RECORD_CODE)
		return take_code(s, blocks, &record->u.code);
	return record->type == SP_RECORD_NAME
		       ? take_name(s, blocks, &record->u.name)
		       : take_symbol(s, blocks, record);
}

/* ---- from another profile ---- */

static int copy_text(struct sp_embedded *s, struct sp_blocks *blocks,
		     const char *from, const char **ret)
{
	struct sp_index_probe probe =
		sp_index_begin(sp_hash_word(0, (uintptr_t)from));

	*ret = NULL;
	if (!from)
		return 0;
	if (sp_index_reserve(&s->index) < 0 ||
	    sp_array_reserve((void **)&s->pointers, &s->pointers_room,
			     s->n_pointers, sizeof(*s->pointers)))
		return -ENOMEM;
	while (sp_index_next(&s->index, &probe))
		if (s->pointers[probe.position].from == from) {
			*ret = s->pointers[probe.position].to;
			return 0;
		}
	*ret = sp_blocks_text(blocks, from, strlen(from));
	if (!*ret)
		return -ENOMEM;
	sp_index_put(&s->index, &probe, s->n_pointers);
	s->pointers[s->n_pointers++] = (struct sp_embedded_pointer){from, *ret};
	return 0;
}

int sp_embedded_copy(struct sp_embedded *s, struct sp_blocks *blocks,
		     struct sp_frame frame,
		     const struct sp_embedded_frame *from)
{
	struct sp_symbol symbols[SP_FORMAT_LINES_MAX];
	const size_t n = from->symbols.count;

	for (size_t i = 0; i < n; i++) {
		const struct sp_symbol *symbol = &from->symbols.symbol[i];

		symbols[i] = *symbol;
		if (copy_text(s, blocks, symbol->function,
			      &symbols[i].function) < 0 ||
		    copy_text(s, blocks, symbol->identity,
			      &symbols[i].identity) < 0 ||
		    copy_text(s, blocks, symbol->file, &symbols[i].file) < 0)
			return -ENOMEM;
	}
	return add_frame(s, blocks, frame, symbols, n);
}

void sp_embedded_forget_pointers(struct sp_embedded *s)
{
	free(s->pointers);
	s->pointers = NULL;
	s->n_pointers = s->pointers_room = 0;
	sp_index_done(&s->index);
}

/* ---- in the profile ---- */

static int compare_frames(struct sp_frame a, struct sp_frame b)
{
	if (a.module != b.module)
		return a.module < b.module ? -1 : 1;
	return (a.offset > b.offset) - (a.offset < b.offset);
}

SP_ORDER(compare_stored, struct sp_embedded_frame,
	 SP_BY(compare_frames(x->frame, y->frame)));

void sp_embedded_finish(struct sp_embedded *s, struct sp_profile *profile)
{
	size_t kept = 0;

	if (s->n_frames)
		qsort(s->frames, s->n_frames, sizeof(*s->frames),
		      compare_stored);
	for (size_t i = 0; i < s->n_frames; i++)
		if (!kept || compare_frames(s->frames[kept - 1].frame,
					    s->frames[i].frame) != 0)
			s->frames[kept++] = s->frames[i];
	profile->embedded = s->frames;
	profile->n_embedded = kept;
	s->frames = NULL;
	s->n_frames = s->frames_room = 0;
}

void sp_embedded_done(struct sp_embedded *s)
{
	sp_embedded_forget_pointers(s);
	sp_idmap_done(&s->names);
	free(s->texts);
	free(s->frames);
	*s = (struct sp_embedded){0};
}
