/* SPDX-License-Identifier: MIT */
#include "report/label.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/order.h"
#include "symbols/demangle.h"
#include "symbols/home.h"
#include "symbols/plainname.h"

/* How much of a name is shown; the next level if labels are equal. */
enum spelling {
	PLAIN,
	WITH_TRAITS,
	FULL,
};

struct entry {
	const char *given;
	char *full; /* without its home; owned */
	char *name; /* of it, as it is spelled; owned */
	enum spelling spelling;
	size_t n_short; /* bytes of the name without parameters */
	size_t number;
};

/* The entries with equal labels, one for each name. */
struct group {
	const struct entry *at;
	size_t n;
};

static int compare_short(const struct entry *a, const struct entry *b)
{
	const size_t n = a->n_short < b->n_short ? a->n_short : b->n_short;
	const int c = memcmp(a->name, b->name, n);

	return c ? c : (a->n_short > b->n_short) - (a->n_short < b->n_short);
}

SP_ORDER(compare_entries, struct entry,
	 SP_BY(compare_short(x, y)) || SP_BY(strcmp(x->name, y->name)));

static int spell_entry(struct entry *e, enum spelling spelling)
{
	free(e->name);
	e->spelling = spelling;
	e->name = spelling == FULL
			  ? strdup(e->full)
			  : sp_plain_name(e->full, spelling == WITH_TRAITS);
	if (!e->name)
		return -ENOMEM;
	e->n_short = sp_demangle_short(e->name);
	return 0;
}

/* Add parameters to the entries from i on that have equal labels but different
 * names.  Returns the number of entries with equal labels; -ENOMEM. */
static ssize_t spell_alike(struct entry *entries, size_t i, size_t n)
{
	bool are_same = true;
	size_t end = i + 1;

	while (end < n && strcmp(entries[i].name, entries[end].name) == 0)
		are_same &= strcmp(entries[i].full, entries[end++].full) == 0;
	for (size_t k = i; !are_same && k < end; k++)
		if (entries[k].spelling != FULL &&
		    spell_entry(&entries[k], entries[k].spelling + 1) < 0)
			return -ENOMEM;
	return (ssize_t)(end - i);
}

/* Give all entries names, and sort them. */
static int spell_all(struct entry *entries, size_t n, bool are_full)
{
	for (size_t i = 0; i < n; i++)
		if (spell_entry(&entries[i], are_full ? FULL : PLAIN) < 0)
			return -ENOMEM;
	/* a longer label may again equal another */
	for (int pass = PLAIN; n && pass <= FULL; pass++) {
		ssize_t alike = 0;

		qsort(entries, n, sizeof(*entries), compare_entries);
		for (size_t i = 0; pass < FULL && i < n; i += (size_t)alike) {
			alike = spell_alike(entries, i, n);
			if (alike < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

/*
 * Length of the name up to the end of parameter number k, from 1; of the whole
 * name if it has no more than k. *ret_end is where the qualifiers behind the
 * parameters begin.
 */
static size_t bytes_with(const struct entry *e, size_t k, size_t *ret_end)
{
	const char *name = e->name;
	size_t i = e->n_short, depth = 0, cut = 0;

	for (; name[i]; i++) {
		depth += strchr("([{<", name[i]) != NULL;
		depth -= depth && strchr(")]}>", name[i]);
		if (!cut && depth == 1 && name[i] == ',' && !--k)
			cut = i;
		if (!depth)
			break;
	}
	*ret_end = name[i] ? i + 1 : i;
	return cut ? cut : strlen(name);
}

static bool is_alike(const struct entry *a, const struct entry *b, size_t k)
{
	size_t end_a, end_b;
	const size_t n_a = bytes_with(a, k, &end_a);
	const size_t n_b = bytes_with(b, k, &end_b);
	const bool is_cut = a->name[n_a] != '\0';

	return n_a == n_b && memcmp(a->name, b->name, n_a) == 0 &&
	       is_cut == (b->name[n_b] != '\0') &&
	       strcmp(a->name + end_a, b->name + end_b) == 0;
}

/* With how many parameters the entry is like no other of its group. */
static size_t parameters_for(const struct group *g, const struct entry *e)
{
	for (size_t k = 1;; k++) {
		size_t i = 0, end;

		while (i < g->n &&
		       (&g->at[i] == e || strcmp(g->at[i].name, e->name) == 0 ||
			!is_alike(&g->at[i], e, k)))
			i++;
		if (i == g->n || !e->name[bytes_with(e, k, &end)])
			return k;
	}
}

static char *label_of(const struct group *g, const struct entry *e)
{
	static const char more[] = ", ...)";
	const char *name = e->name;
	bool is_alone = true;
	size_t n, end;
	char *label;

	for (size_t i = 0; i < g->n; i++)
		is_alone &= strcmp(g->at[i].name, name) == 0;
	if (is_alone)
		return strndup(name, e->n_short);
	n = bytes_with(e, parameters_for(g, e), &end);
	if (!name[n])
		return strdup(name);
	label = malloc(n + sizeof(more) + strlen(name + end));
	if (label) {
		memcpy(label, name, n);
		strcpy(stpcpy(label + n, more), name + end);
	}
	return label;
}

static int label_all(const struct entry *entries, size_t n, char **labels)
{
	struct group g = {entries, 0};
	int r = 0;

	for (; !r && g.at < entries + n; g.at += g.n) {
		for (g.n = 1; g.at + g.n < entries + n &&
			      compare_short(g.at, g.at + g.n) == 0;)
			g.n++;
		for (size_t i = 0; !r && i < g.n; i++) {
			char *label = label_of(&g, &g.at[i]);

			labels[g.at[i].number] = label;
			r = label ? 0 : -ENOMEM;
		}
	}
	return r;
}

/* ---- homes ---- */

SP_ORDER(compare_full, struct entry,
	 SP_BY(strcmp(x->full, y->full)) || SP_BY(strcmp(x->given, y->given)));

/* With how many parts of its home the entry is like no other of its group. */
static size_t parts_for(const struct group *g, const struct entry *e)
{
	const struct sp_home home = sp_home_of(e->given);
	size_t parts = 1;

	for (size_t i = 0; i < g->n; i++) {
		const struct sp_home other = sp_home_of(g->at[i].given);
		size_t common;

		if (!other.text || !strcmp(g->at[i].given, e->given))
			continue;
		common = sp_home_common(home.text, home.file_bytes, other.text,
					other.file_bytes);
		if (common >= parts)
			parts = common + 1;
	}
	return parts;
}

/* The entries of a group have the same name; their homes become part of their
 * labels, if they have several. */
static int add_homes(const struct group *g, char **labels)
{
	bool are_same = true;

	for (size_t i = 1; i < g->n; i++)
		are_same &= !strcmp(g->at[i].given, g->at->given);
	for (size_t i = 0; !are_same && i < g->n; i++) {
		const struct entry *e = &g->at[i];
		const struct sp_home home = sp_home_of(e->given);
		char *label;

		if (!home.text)
			continue;
		if (asprintf(&label, "%s [in %s", labels[e->number],
			     sp_home_tail(home.text, home.file_bytes,
					  parts_for(g, e))) < 0)
			return -ENOMEM;
		free(labels[e->number]);
		labels[e->number] = label;
	}
	return 0;
}

static int add_all_homes(struct entry *entries, size_t n, char **labels)
{
	struct group g = {entries, 0};
	int r = 0;

	if (n)
		qsort(entries, n, sizeof(*entries), compare_full);
	for (; !r && g.at < entries + n; g.at += g.n) {
		for (g.n = 1; g.at + g.n < entries + n &&
			      !strcmp(g.at->full, g.at[g.n].full);)
			g.n++;
		r = add_homes(&g, labels);
	}
	return r;
}

int sp_labels_new(const char *const *names, size_t n, bool are_full,
		  char ***ret)
{
	struct entry *entries = calloc(n + 1, sizeof(*entries));
	char **labels = calloc(n + 1, sizeof(*labels));
	int r = entries && labels ? 0 : -ENOMEM;

	for (size_t i = 0; !r && i < n; i++) {
		entries[i] = (struct entry){.given = names[i],
					    .full = sp_home_without(names[i]),
					    .number = i};
		if (!entries[i].full)
			r = -ENOMEM;
	}
	if (!r)
		r = spell_all(entries, n, are_full);
	if (!r)
		r = label_all(entries, n, labels);
	if (!r)
		r = add_all_homes(entries, n, labels);
	for (size_t i = 0; entries && i < n; i++) {
		free(entries[i].full);
		free(entries[i].name);
	}
	free(entries);
	if (r < 0) {
		sp_labels_free(labels, n);
		return r;
	}
	*ret = labels;
	return 0;
}

void sp_labels_free(char **labels, size_t n)
{
	for (size_t i = 0; labels && i < n; i++)
		free(labels[i]);
	free(labels);
}

int sp_labels_add(struct sp_labels *labels, const char *name)
{
	uint32_t number;

	return sp_intern_add(&labels->names, name, strlen(name), &number);
}

int sp_labels_make(struct sp_labels *labels)
{
	const size_t n = labels->names.n_entries;
	const char **names = calloc(n + 1, sizeof(*names));
	int r = names ? 0 : -ENOMEM;

	sp_labels_free(labels->labels, labels->n);
	labels->labels = NULL;
	labels->n = 0;
	for (uint32_t i = 0; !r && i < n; i++)
		names[i] = sp_intern_bytes(&labels->names, i);
	if (!r)
		r = sp_labels_new(names, n, labels->are_full, &labels->labels);
	if (!r)
		labels->n = n;
	free(names);
	return r;
}

const char *sp_labels_find(const struct sp_labels *labels, const char *name)
{
	const uint32_t i = sp_intern_find(&labels->names, name, strlen(name));

	return i < labels->n ? labels->labels[i] : NULL;
}

void sp_labels_done(struct sp_labels *labels)
{
	sp_labels_free(labels->labels, labels->n);
	sp_intern_done(&labels->names);
}
