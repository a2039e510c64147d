/* SPDX-License-Identifier: MIT */
#include "rss/absent.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/order.h"

/* Two numbers of 20 digits, the colon, the blank. */
#define WORD_MAX 43u

SP_ORDER(compare_ids, struct sp_absent_object, SP_UP(id));

SP_ORDER(compare_amounts, struct sp_absent_object,
	 SP_DOWN(absent_bytes) || SP_UP(id));

static void sort_objects(struct sp_absent_object *list, size_t n,
			 int (*compare)(const void *, const void *))
{
	if (n)
		qsort(list, n, sizeof(*list), compare);
}

/* Bytes without the zero; SIZE_MAX: more than there is room for. */
static size_t write_objects(const struct sp_absent_object *list, size_t n,
			    char *to, size_t room)
{
	uint64_t before = 0;
	size_t used = 0;

	*to = '\0';
	for (size_t i = 0; i < n; i++) {
		char word[WORD_MAX + 1];
		int bytes = snprintf(word, sizeof(word), "%s%" PRIu64,
				     used ? " " : "", list[i].id - before);

		if (list[i].resident_bytes)
			bytes += snprintf(word + bytes,
					  sizeof(word) - (size_t)bytes,
					  ":%" PRIu64, list[i].resident_bytes);
		if (used + (size_t)bytes >= room)
			return SIZE_MAX;
		memcpy(to + used, word, (size_t)bytes + 1);
		used += (size_t)bytes;
		before = list[i].id;
	}
	return used;
}

char *sp_absent_write(struct sp_absent_object *list, size_t n, size_t bytes_max,
		      double *ret_left_out)
{
	char *text = malloc(bytes_max + 1);
	size_t kept = n;

	*ret_left_out = 0;
	if (!text)
		return NULL;
	sort_objects(list, n, compare_ids);
	while (write_objects(list, kept, text, bytes_max + 1) == SIZE_MAX) {
		const size_t fewer = kept - (kept + 15) / 16;

		sort_objects(list, kept, compare_amounts);
		for (size_t i = fewer; i < kept; i++)
			*ret_left_out += list[i].absent_bytes;
		kept = fewer;
		sort_objects(list, kept, compare_ids);
	}
	return text;
}

/* Past the digits; false: there are none, or too many. */
static bool take_number(const char **at, uint64_t *ret)
{
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	errno = 0;
	*ret = strtoull(*at, &end, 10);
	*at = end;
	return !errno;
}

static bool take_word(const char **at, uint64_t before, bool is_first,
		      struct sp_absent_object *ret)
{
	uint64_t more;

	*ret = (struct sp_absent_object){.id = before};
	if ((!is_first && *(*at)++ != ' ') || !take_number(at, &more) ||
	    (!more && !is_first) || ret->id + more < before)
		return false;
	ret->id += more;
	if (**at != ':')
		return true;
	++*at;
	return take_number(at, &ret->resident_bytes);
}

int sp_absent_read(const char *text, struct sp_absent_object **ret,
		   size_t *ret_n)
{
	struct sp_absent_object *list = NULL, one = {.id = 0};
	size_t n = 0, room = 0;
	int r = 0;

	while (*text && r == 0) {
		if (!take_word(&text, one.id, !n, &one))
			r = -EBADMSG;
		else if (sp_array_reserve((void **)&list, &room, n,
					  sizeof(*list)) < 0)
			r = -ENOMEM;
		else
			list[n++] = one;
	}
	if (r < 0) {
		free(list);
		return r;
	}
	*ret = list;
	*ret_n = n;
	return 0;
}
