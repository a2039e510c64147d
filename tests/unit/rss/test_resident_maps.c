/* SPDX-License-Identifier: MIT */
/* The text of /proc/PID/smaps: mappings, their amounts, sums over them; lines
 * that nobody knows.  What is not read of another user's process. */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rss/maps.h"
#include "rss/pages.h"
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

/* A process of that user, with two pages: one of a file, one of none. */
static pid_t make_process(uid_t uid, char *const pages[2])
{
	const pid_t pid = fork();

	if (pid != 0)
		return pid;
	pages[0][0] = 1;
	pages[1][0] = 1;
	if (setresuid(uid, uid, uid) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
		_exit(1);
	raise(SIGSTOP);
	_exit(0);
}

static void check_readable(uid_t uid, char *const at[2], bool of_file)
{
	const pid_t pid = make_process(uid, at);
	struct sp_rss_maps maps;
	struct sp_rss_pages *pages;
	char byte = 0;

	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
	assert_int_equal(sp_rss_maps_read((uint64_t)pid, &maps, NULL), 0);
	pages = sp_rss_pages_new(&maps);
	assert_non_null(pages);
	assert_int_equal(
		sp_rss_pages_read(pages, (uint64_t)(uintptr_t)at[0], &byte, 1),
		of_file);
	assert_true(
		sp_rss_pages_read(pages, (uint64_t)(uintptr_t)at[1], &byte, 1));
	assert_int_equal(byte, 1);
	assert_false(sp_rss_pages_read(pages, 0, &byte, 1));
	sp_rss_pages_free(pages);
	sp_rss_maps_free(&maps);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Of another user's process no page that a file system may serve, is read. */
TEST(pages_of_files)
{
	FILE *file = tmpfile();
	char *at[2];

	assert_non_null(file);
	assert_int_equal(ftruncate(fileno(file), 4096), 0);
	at[0] = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE,
		     fileno(file), 0);
	at[1] = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(at[0] != MAP_FAILED && at[1] != MAP_FAILED);
	check_readable(geteuid(), at, true);
	if (geteuid() == 0)
		check_readable(65534, at, false);
	munmap(at[0], 4096);
	munmap(at[1], 4096);
	fclose(file);
}

TEST_MAIN(NULL, NULL)
