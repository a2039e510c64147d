/* SPDX-License-Identifier: MIT */
/* I1  at[i].start < at[i].end <= at[i + 1].start, for all i. */
#include "base/spans.h"

#include <string.h>

#include "base/bisect.h"

size_t sp_spans_find(const struct sp_spans *spans, uint64_t address)
{
	size_t i;

	SP_LOWER_BOUND(i, spans->n, spans->at[i].end <= address);
	return i;
}

static void drop_span(struct sp_spans *spans, size_t i)
{
	spans->n--;
	memmove(&spans->at[i], &spans->at[i + 1],
		(spans->n - i) * sizeof(*spans->at));
}

static bool insert_span(struct sp_spans *spans, size_t i,
			const struct sp_span *span)
{
	if (spans->n == spans->room)
		return false;
	memmove(&spans->at[i + 1], &spans->at[i],
		(spans->n - i) * sizeof(*spans->at));
	spans->at[i] = *span;
	spans->n++;
	return true;
}

/* Both ends of what was span i stay. */
static bool split_span(struct sp_spans *spans, size_t i, uint64_t start,
		       uint64_t end)
{
	struct sp_span upper = spans->at[i];

	upper.start = end;
	spans->at[i].end = start;
	return insert_span(spans, i + 1, &upper);
}

bool sp_spans_cut(struct sp_spans *spans, uint64_t start, uint64_t end,
		  uint64_t number, sp_span_fn *fn, void *arg)
{
	bool has_room = true;
	size_t i = sp_spans_find(spans, start);

	while (i < spans->n && spans->at[i].start < end) {
		struct sp_span *s = &spans->at[i];
		struct sp_span piece = *s;

		if (s->number >= number) {
			i++;
			continue;
		}
		if (piece.start < start)
			piece.start = start;
		if (piece.end > end)
			piece.end = end;
		if (fn)
			fn(arg, &piece);
		if (s->start < piece.start && piece.end < s->end) {
			has_room = split_span(spans, i, start, end);
			break;
		}
		if (s->start < piece.start) {
			s->end = piece.start;
			i++;
		} else if (piece.end < s->end) {
			s->start = piece.end;
			break;
		} else {
			drop_span(spans, i);
		}
	}
	return has_room;
}

bool sp_spans_put(struct sp_spans *spans, const struct sp_span *span)
{
	const size_t i = sp_spans_find(spans, span->start);

	if (i < spans->n && spans->at[i].start < span->end)
		return false;
	return insert_span(spans, i, span);
}
