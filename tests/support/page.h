/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdlib.h>

#include "support/report_fixture.h"

/* A page of text about a profile made by hand, for TEST_BETWEEN. */
struct page {
	struct fixture *x;
	char *text; /* of the last page_end() */
	size_t size;
	/* How to print it, where a test sets them. */
	bool is_together;
	unsigned int columns;
	enum sp_aggregate_order order;
	bool has_bars;
};

static inline struct page *page_new(uint64_t period_bytes)
{
	struct page *page = calloc(1, sizeof(*page));

	page->x = fixture_new(period_bytes);
	return page;
}

static inline int page_teardown(void **state)
{
	struct page *page = *state;

	free(page->text);
	fixture_free(page->x);
	free(page);
	return 0;
}

/* What is written to this stream becomes the text. */
static inline FILE *page_begin(struct page *page)
{
	free(page->text);
	return open_memstream(&page->text, &page->size);
}

static inline const char *page_end(struct page *page, FILE *out)
{
	fclose(out);
	return page->text;
}

/* Functions that page_add_stacks() has; h is inlined into g. */
enum {
	MAIN,
	F,
	H_IN_G,
	NAMELESS,
};

static inline void page_add_symbols(struct fixture *x)
{
	fixture_symbol(x, MAIN, "main", "src/main.c", 10);
	fixture_symbol(x, F, "f", "f.c", 0);
	fixture_symbol(x, H_IN_G, "h", "h.c", 40);
	fixture_symbol(x, H_IN_G, "g", "g.c", 31);
	fixture_symbol(x, NAMELESS, "libz.so.1+0x1f", NULL, 0);
	x->symbolizer.symbols[NAMELESS][0].is_fallback = true;
}

/* A page with these functions, at the default period. */
static inline int page_setup(void **state)
{
	struct page *page = page_new(512 * 1024);

	page_add_symbols(page->x);
	*state = page;
	return 0;
}

/* Three stacks with 1000, 50 and 2 samples. */
static inline void page_add_stacks(struct fixture *x)
{
	fixture_stack(x, (size_t[]){H_IN_G, MAIN}, 2, 1000, 64);
	fixture_stack(x, (size_t[]){F, F, MAIN}, 3, 50, 64);
	fixture_stack(x, (size_t[]){NAMELESS, MAIN}, 2, 2, 64);
	x->stacks[2].frames[0].module = 2;
}

/* The next pages are of that view. */
static inline void page_choose(struct page *page, enum sp_view view)
{
	page->x->question.has_view = true;
	page->x->question.view = view;
}
