/* SPDX-License-Identifier: MIT */
/* A text drawn over the last one in a terminal, and cut to its size. */
#include "text/screen.h"
#include "support/test.h"

#define HOME "\033[H"
#define LINE "\033[K"
#define REST "\033[J"

static void draws(const char *text, unsigned int rows, unsigned int columns,
		  const char *want)
{
	FREED char *got = NULL;
	size_t size;
	FILE *out = open_memstream(&got, &size);

	sp_screen_draw(out, text, rows, columns);
	fclose(out);
	assert_string_equal(got, want);
}

TEST(draw)
{
	draws("", 5, 5, HOME REST);
	draws("a\nb\n", 5, 5, HOME "a" LINE "\nb" LINE REST);
	/* The last line need not end. */
	draws("a\n\nb", 5, 5, HOME "a" LINE "\n" LINE "\nb" LINE REST);
}

TEST(cut)
{
	draws("abcdef\nabc\n", 5, 3, HOME "abc" LINE "\nabc" LINE REST);
	draws("a\nb\nc\n", 2, 5, HOME "a" LINE "\nb" LINE REST);
	draws("a\nb\n", 1, 1, HOME "a" LINE REST);
	/* Characters, not bytes, and none in two. */
	draws("\xe2\x96\x88\xc3\xa9x\n", 1, 2,
	      HOME "\xe2\x96\x88\xc3\xa9" LINE REST);
}

TEST_MAIN(NULL, NULL)
