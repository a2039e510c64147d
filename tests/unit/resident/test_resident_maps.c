/* SPDX-License-Identifier: MIT */
/* The text of /proc/PID/smaps: mappings, their amounts, sums over them; lines
 * that nobody knows. */
#include <string.h>

#include "resident/maps.h"
#include "support/test.h"

#define TEXT                                                                   \
	"55d0-55d8 r-xp 00001000 fd:01 77    /usr/bin/a name (deleted)\n"      \
	"Size:                 32 kB\n"                                        \
	"Rss:                  12 kB\n"                                        \
	"Pss:                   6 kB\n"                                        \
	"Shared_Clean:          8 kB\n"                                        \
	"Anonymous:             4 kB\n"                                        \
	"VmFlags: rd ex mr mw me \n"                                           \
	"60000-70000 rw-p 00000000 00:00 0   [heap]\n"                         \
	"Rss:                  60 kB\n"                                        \
	"Shared_Dirty:         20 kB\n"                                        \
	"Anonymous:            60 kB\n"                                        \
	"AnonHugePages:        32 kB\n"                                        \
	"Later_Amount:         99 kB\n"                                        \
	"Swap:                  8 kB\n"                                        \
	"SwapPss:               8 kB\n"                                        \
	"VmFlags: rd wr nr \n"                                                 \
	"70000-7ffff000 ---s 00000000 00:00 0 \n"                              \
	"Private_Hugetlb:    2048 kB\n"

TEST(smaps)
{
	char text[] = TEXT;
	struct sp_rss_maps maps = {.n = 0};
	const struct sp_rss_map *m;

	assert_int_equal(sp_rss_maps_parse(text, &maps), 0);
	assert_int_equal(maps.n, 3);
	assert_int_equal(maps.rss, 72 << 10);
	assert_int_equal(maps.swap, 8 << 10);
	assert_int_equal(maps.hugetlb, 2 << 20);
	assert_int_equal(maps.shared, 20 << 10);
	m = &maps.list[0];
	assert_int_equal(m->start, 0x55d0);
	assert_int_equal(m->end, 0x55d8);
	assert_int_equal(m->inode, 77);
	assert_string_equal(m->path, "/usr/bin/a name (deleted)");
	assert_true(m->can_read && !m->can_write && m->can_execute);
	assert_false(m->is_shared || m->no_reserve);
	assert_int_equal(m->anonymous, 4 << 10);
	m = &maps.list[1];
	assert_string_equal(m->path, "[heap]");
	assert_true(m->no_reserve && m->can_write && !m->can_execute);
	assert_int_equal(m->huge, 32 << 10);
	m = &maps.list[2];
	assert_string_equal(m->path, "");
	assert_true(m->is_shared && !m->can_read);
	assert_int_equal(m->rss, 0);
	free(maps.list);
}

/* Text that is no smaps. */
TEST(other_texts)
{
	static const char *const texts[] = {"",
					    "\n",
					    "Rss: 12 kB\n",
					    "x-y rw-p 0 0:0 0\n",
					    "20-10 rw-p 00000000 00:00 0 \n",
					    "10-20 rw-p"};
	struct sp_rss_maps maps = {.n = 0};
	char text[64];

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		strcpy(text, texts[i]);
		assert_int_equal(sp_rss_maps_parse(text, &maps), 0);
		assert_int_equal(maps.n, 0);
	}
	free(maps.list);
}

TEST_MAIN(NULL, NULL)
