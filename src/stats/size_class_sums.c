/* SPDX-License-Identifier: MIT */
#include "stats/size_class_sums.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"

void sp_class_sums_init(struct sp_class_sums *sums, uint64_t period_bytes)
{
	*sums = (struct sp_class_sums){0};
	sp_acc_init(&sums->all, period_bytes);
}

void sp_class_sums_judge(struct sp_class_sums *sums,
			 const struct sp_class_sums *like)
{
	sums->is_measured = like->is_measured;
	sums->is_unknown = like->is_unknown;
	sums->is_least = like->is_least;
}

/* Most sets have objects of one or two classes. */
static int reserve_classes(struct sp_class_sums *sums, uint32_t n)
{
	uint32_t room = sums->room ? sums->room : 2;
	struct sp_class_sums_class *grown;

	if (n <= sums->room)
		return 0;
	while (room < n)
		room *= 2;
	grown = realloc(sums->classes, room * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	sums->classes = grown;
	sums->room = room;
	return 0;
}

/* The position of the first class that is not below that one. */
static uint32_t position_of_class(const struct sp_class_sums *sums,
				  uint32_t class)
{
	size_t at;

	SP_LOWER_BOUND(at, sums->n_classes, sums->classes[at].class < class);
	return (uint32_t)at;
}

int sp_class_sums_add_acc(struct sp_class_sums *sums, uint64_t size_bytes,
			  const struct sp_acc *acc)
{
	const uint32_t class = sp_format_class(size_bytes);
	const uint32_t at = position_of_class(sums, class);
	struct sp_class_sums_class *c;

	if (at == sums->n_classes || sums->classes[at].class != class) {
		if (reserve_classes(sums, sums->n_classes + 1) < 0)
			return -ENOMEM;
		c = &sums->classes[at];
		memmove(c + 1, c, (sums->n_classes - at) * sizeof(*c));
		c->class = class;
		sp_acc_init(&c->acc, sums->all.period_bytes);
		sums->n_classes++;
	}
	sp_acc_merge(&sums->classes[at].acc, acc);
	sp_acc_merge(&sums->all, acc);
	return 0;
}

int sp_class_sums_add_many(struct sp_class_sums *sums,
			   const struct sp_law_used *law, uint64_t size_bytes,
			   uint64_t n, uint64_t tail_bytes,
			   uint64_t period_bytes)
{
	struct sp_acc one;

	sp_acc_init(&one, period_bytes);
	sp_acc_add_many(&one, law, size_bytes, n, tail_bytes, period_bytes);
	return sp_class_sums_add_acc(sums, size_bytes, &one);
}

int sp_class_sums_add(struct sp_class_sums *sums, const struct sp_law_used *law,
		      uint64_t size_bytes, uint64_t offset_bytes,
		      uint64_t period_bytes)
{
	return sp_class_sums_add_many(sums, law, size_bytes, 1,
				      size_bytes - offset_bytes, period_bytes);
}

/* Classes of b that a lacks. */
static uint32_t missing_classes(const struct sp_class_sums *a,
				const struct sp_class_sums *b)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->n_classes; i++) {
		const uint32_t at = position_of_class(a, b->classes[i].class);

		n += at == a->n_classes ||
		     a->classes[at].class != b->classes[i].class;
	}
	return n;
}

/*
 * From the end, so that dst's classes move up before they are overwritten, as
 * far as there is something to insert.  Mostly there is nothing: a stack has
 * few classes, and functions that many stacks go through have them all.
 */
int sp_class_sums_merge(struct sp_class_sums *dst,
			const struct sp_class_sums *src)
{
	uint32_t i = dst->n_classes, j = src->n_classes;
	uint32_t n = i + missing_classes(dst, src);

	if (reserve_classes(dst, n) < 0)
		return -ENOMEM;
	dst->n_classes = n;
	while (n > i) {
		struct sp_class_sums_class *to = &dst->classes[--n];
		const struct sp_class_sums_class *from = &src->classes[j - 1];

		if (i && dst->classes[i - 1].class >= from->class) {
			*to = dst->classes[--i];
			if (to->class != from->class)
				continue;
			sp_acc_merge(&to->acc, &from->acc);
		} else {
			*to = *from;
		}
		j--;
	}
	while (j--) {
		const struct sp_class_sums_class *from = &src->classes[j];

		sp_acc_merge(
			&dst->classes[position_of_class(dst, from->class)].acc,
			&from->acc);
	}
	sp_acc_merge(&dst->all, &src->all);
	dst->is_measured |= src->is_measured;
	dst->is_unknown |= src->is_unknown;
	dst->is_least |= src->is_least;
	return 0;
}

void sp_class_sums_free(struct sp_class_sums *sums)
{
	free(sums->classes);
	sums->classes = NULL;
	sums->n_classes = sums->room = 0;
}
