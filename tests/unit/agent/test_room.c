/* SPDX-License-Identifier: MIT */
/* Room of the address space: what is mapped takes whole pages of it, and what
 * is given back gives the same, however odd its size; without room there is no
 * memory, and none is lost. */
#include <stddef.h>

#include "agent/sys/sys.h"
#include "support/test.h"

#define PAGES  8u
#define ROUNDS 100u

static void *pages[PAGES];

static unsigned int map_all(size_t bytes, void *(*map)(size_t bytes))
{
	unsigned int n = 0;

	while (n < PAGES && (pages[n] = map(bytes)) != NULL)
		n++;
	return n;
}

static void unmap(unsigned int n, size_t bytes)
{
	while (n--)
		sp_sys_unmap(pages[n], bytes);
}

/* Twice as many as there is room for would be had if a round gave more than it
 * took, and none at the end if it gave less. */
static void check_size(size_t bytes, unsigned int want)
{
	for (unsigned int i = 0; i < ROUNDS; i++) {
		const unsigned int n = map_all(bytes, sp_sys_map);

		assert_int_equal(n, want);
		unmap(n, bytes);
	}
}

TEST(what_is_given_back_is_what_was_taken)
{
	const size_t page = sp_sys_page_bytes();

	sp_sys_limit_room(PAGES / 2 * page);
	check_size(page, PAGES / 2);
	check_size(1, PAGES / 2);
	check_size(page - 1, PAGES / 2);
	check_size(page + 1, PAGES / 4);
	check_size(2 * page - 1, PAGES / 4);
	check_size(PAGES / 2 * page, 1);
}

/* It takes of the same room. */
TEST(wiped)
{
	const size_t page = sp_sys_page_bytes();
	unsigned int n;

	sp_sys_limit_room(PAGES / 2 * page);
	if (!sp_sys_map_wiped(1))
		skip();
	n = map_all(1, sp_sys_map_wiped);
	assert_int_equal(n, PAGES / 2 - 1);
	assert_null(sp_sys_map(1));
	unmap(n, 1);
}

/* The kernel refuses. */
TEST(failure_takes_nothing)
{
	const size_t page = sp_sys_page_bytes(), most = PTRDIFF_MAX & -page;

	sp_sys_limit_room(most);
	for (unsigned int i = 0; i < ROUNDS; i++)
		assert_null(sp_sys_map(most));
	sp_sys_limit_room(PAGES / 2 * page);
	assert_null(sp_sys_map((PAGES / 2 + 1) * page));
	assert_int_equal(map_all(1, sp_sys_map), PAGES / 2);
	unmap(PAGES / 2, 1);
}

TEST_MAIN(NULL, NULL)
