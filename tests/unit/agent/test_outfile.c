/* SPDX-License-Identifier: MIT */
/* The file as an object of the file system: its name, and that nothing else
 * than a fresh regular file is ever opened. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/file/outfile.h"
#include "format/layout.h"
#include "support/agent_fixture.h"
#include "support/test.h"

#define CHUNK 65536u
#define LIMIT (4 * CHUNK)

static const struct sp_outfile_limit limit = {.bytes = LIMIT};

static void unmap(const struct sp_outfile *file)
{
	assert_int_equal(munmap(file->base, file->mapped), 0);
}

/* Create from `pattern` (relative to DIR unless absolute or "./") with process
 * id 42; the error, or 0 and the mapping undone. */
static int create(const char *pattern)
{
	struct sp_outfile file;
	int err;

	assert_true(sp_outfile_prepare(pattern, "/opt/my app/.tool", "no/de",
				       1700000000));
	err = sp_outfile_create(42, 0, &limit, CHUNK, &file);
	if (!err)
		unmap(&file);
	return err;
}

static void creates(const char *pattern, const char *want)
{
	const char *path = agent_fixture_path(want);
	struct stat st;
	int err = create(agent_fixture_path(pattern));

	if (err)
		fail_msg("%s: %s", pattern, strerror(-err));
	assert_string_equal(sp_outfile_name(), path);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_size, LIMIT);
	assert_int_equal(st.st_blocks, 0);
	assert_int_equal(unlink(path), 0);
}

TEST(patterns)
{
	umask(0);
	creates("plain", "plain");
	creates("%e", "_tool");
	creates("%p", "42");
	creates("%t.%h", "1700000000.no_de");
	creates("%n", "0");
	creates("%e.%p.%t.%h.%n.sprof", "_tool.42.1700000000.no_de.0.sprof");
	creates("100%%", "100%");
	creates("%", "%");
	creates("a%", "a%");
	creates("%x%%p", "%x%p");
	creates("%ee", "_toole");
}

TEST(directory)
{
	assert_int_equal(mkdir(agent_fixture_path("sub"), 0700), 0);
	creates("sub", "sub/_tool.42.sprof");
	creates("sub/", "sub/_tool.42.sprof");
	assert_int_equal(create(agent_fixture_path("missing/")), -ENOENT);
	assert_string_equal(sp_outfile_name(), "");
	assert_int_equal(create(agent_fixture_path("missing/name")), -ENOENT);
}

/* A relative pattern is meant where the process is when it is prepared; a
 * percent sign of that directory is no conversion. */
TEST(relative)
{
	struct sp_outfile file;
	char before[4096];

	assert_non_null(getcwd(before, sizeof(before)));
	assert_int_equal(mkdir(agent_fixture_path("100%p"), 0700), 0);
	assert_int_equal(chdir(agent_fixture_path("100%p")), 0);
	assert_true(sp_outfile_prepare("r.%p", "/bin/true", "h", 0));
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(sp_outfile_create(42, 0, &limit, CHUNK, &file), 0);
	unmap(&file);
	assert_string_equal(sp_outfile_name(),
			    agent_fixture_path("100%p/r.42"));
	assert_int_equal(access(agent_fixture_path("100%p/r.42"), R_OK), 0);
	assert_int_equal(chdir(before), 0);
}

/* What is there is never touched: the next sequence number is taken. */
TEST(exclusive)
{
	struct stat st;
	FILE *f = fopen(agent_fixture_path("x.sprof"), "we");

	assert_non_null(f);
	fputs("precious", f);
	fclose(f);
	assert_int_equal(create(agent_fixture_path("x.sprof")), 0);
	assert_string_equal(sp_outfile_name(), agent_fixture_path("x.1.sprof"));
	assert_int_equal(create(agent_fixture_path("x.sprof")), 0);
	assert_string_equal(sp_outfile_name(), agent_fixture_path("x.2.sprof"));
	assert_int_equal(stat(agent_fixture_path("x.sprof"), &st), 0);
	assert_int_equal(st.st_size, 8);
	/* With its own %n, and without the suffix. */
	assert_int_equal(create(agent_fixture_path("y.%n")), 0);
	assert_int_equal(create(agent_fixture_path("y.%n")), 0);
	assert_string_equal(sp_outfile_name(), agent_fixture_path("y.1"));
	assert_int_equal(create(agent_fixture_path("z")), 0);
	assert_int_equal(create(agent_fixture_path("z")), 0);
	assert_string_equal(sp_outfile_name(), agent_fixture_path("z.1"));
}

/* Links are not followed, wherever they lead. */
TEST(symlink)
{
	struct stat st;
	char victim[1024];
	FILE *f;

	snprintf(victim, sizeof(victim), "%s", agent_fixture_path("victim"));
	f = fopen(victim, "we");
	assert_non_null(f);
	fclose(f);
	assert_int_equal(symlink(victim, agent_fixture_path("l.sprof")), 0);
	assert_int_equal(symlink("nowhere", agent_fixture_path("l.1.sprof")),
			 0);
	assert_int_equal(create(agent_fixture_path("l.sprof")), 0);
	assert_string_equal(sp_outfile_name(), agent_fixture_path("l.2.sprof"));
	assert_int_equal(stat(victim, &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(access(agent_fixture_path("nowhere"), F_OK), -1);
}

/* A pipe nobody reads must not stop the program, nor a device be written. */
TEST(special_files)
{
	assert_int_equal(mkfifo(agent_fixture_path("f.sprof"), 0600), 0);
	alarm(HUNG_S);
	assert_int_equal(create(agent_fixture_path("f.sprof")), 0);
	alarm(0);
	assert_string_equal(sp_outfile_name(), agent_fixture_path("f.1.sprof"));
	assert_int_not_equal(create("/proc/self/mem/x"), 0);
	assert_string_equal(sp_outfile_name(), "");
}

/* The limit of file sizes is respected without a signal. */
TEST(rlimit)
{
	struct rlimit old, small;
	struct sp_outfile file;
	struct stat st;

	signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = 2 * CHUNK + 100;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_true(sp_outfile_prepare(agent_fixture_path("small"), "/bin/x",
				       "h", 0));
	assert_int_equal(sp_outfile_create(1, 0, &limit, LIMIT, &file), 0);
	assert_int_equal(file.limit, 2 * CHUNK);
	assert_int_equal(file.mapped, 2 * CHUNK);
	assert_int_equal(stat(sp_outfile_name(), &st), 0);
	assert_int_equal(st.st_size, 2 * CHUNK);
	unmap(&file);

	/* Too small for a header and one chunk: no file at all. */
	small.rlim_cur = 2 * CHUNK - 1;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(create(agent_fixture_path("none")), -EFBIG);
	assert_int_equal(access(agent_fixture_path("none"), F_OK), -1);
	assert_string_equal(sp_outfile_name(), "");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
}

static unsigned int open_descriptors(void)
{
	unsigned int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Two mappings of one file, no descriptor; holes are filled on demand. */
TEST(mapping)
{
	unsigned int descriptors = open_descriptors();
	struct sp_outfile file;
	uint8_t *more, byte;
	struct stat st;
	FILE *f;

	assert_true(
		sp_outfile_prepare(agent_fixture_path("m"), "/bin/x", "h", 0));
	assert_int_equal(sp_outfile_create(1, 0, &limit, 2 * CHUNK, &file), 0);
	assert_int_equal(open_descriptors(), descriptors);
	assert_int_equal(file.mapped, 2 * CHUNK);
	assert_int_equal(file.limit, LIMIT);
	more = sp_outfile_map_more(file.base + CHUNK, 3 * CHUNK);
	assert_non_null(more);
	assert_true(sp_outfile_populate(more + 2 * CHUNK, 16384));
	more[2 * CHUNK + 5] = 77;
	file.base[CHUNK + 1] = 33;
	assert_int_equal(more[1], 33);
	assert_int_equal(stat(sp_outfile_name(), &st), 0);
	/* 16 KiB were asked for, and one page was touched. */
	assert_true(st.st_blocks * 512 >= 16384 + 4096);
	assert_true(st.st_blocks * 512 < 3 * CHUNK);
	f = fopen(sp_outfile_name(), "rbe");
	assert_non_null(f);
	assert_int_equal(fseek(f, 3 * CHUNK + 5, SEEK_SET), 0);
	assert_int_equal(fread(&byte, 1, 1, f), 1);
	fclose(f);
	assert_int_equal(byte, 77);
	/* Not beyond the file: an error, no signal. */
	assert_false(sp_outfile_populate(
		sp_outfile_map_more(file.base, LIMIT + CHUNK) + LIMIT, CHUNK));
	munmap(more, 3 * CHUNK);
	unmap(&file);
}

TEST(too_long)
{
	char pattern[SP_OUTFILE_PATH_MAX + 8] = "";
	struct sp_outfile file;
	size_t start, n;

	strcpy(pattern, agent_fixture_path(""));
	start = strlen(pattern);
	for (n = start; n + 3 <= sizeof(pattern); n += 2)
		strcpy(pattern + n, "./");
	assert_false(sp_outfile_prepare(pattern, "/bin/x", "h", 0));
	/* It fits as a pattern, but not what becomes of it.  Cut, it would be
	 * the name of a file that can be made. */
	n = start + (SP_OUTFILE_PATH_MAX - 5 - start) / 2 * 2;
	strcpy(pattern + n, "a%t");
	assert_true(sp_outfile_prepare(pattern, "/bin/x", "h", 1700000000));
	assert_int_equal(sp_outfile_create(1, 0, &limit, CHUNK, &file),
			 -ENAMETOOLONG);
	assert_string_equal(sp_outfile_name(), "");
	/* A program's or host's name of any length is cut. */
	assert_true(sp_outfile_prepare(agent_fixture_path("%e%h"), pattern,
				       pattern, 0));
	assert_int_equal(sp_outfile_create(1, 0, &limit, CHUNK, &file), 0);
	unmap(&file);
	assert_true(strlen(strrchr(sp_outfile_name(), '/')) < 130);
}

/* A profile of that process as far as its header says. */
static void write_profile(const char *name, uint64_t pid, uint64_t ticks)
{
	struct sp_file_header h = {.pid = pid, .process_start_ticks = ticks};
	FILE *f = fopen(agent_fixture_path(name), "wxe");

	assert_non_null(f);
	memcpy(h.magic, SP_FORMAT_MAGIC, SP_FORMAT_MAGIC_BYTES);
	assert_int_equal(fwrite(&h, sizeof(h), 1, f), 1);
	assert_int_equal(fclose(f), 0);
}

static bool is_empty(const char *name)
{
	struct stat st;

	assert_int_equal(stat(agent_fixture_path(name), &st), 0);
	return st.st_blocks == 0;
}

/* A process that executes one program after the other: the last has the name.
 * That of another process keeps it. */
TEST(executed)
{
	static const struct {
		const char *name;
		uint64_t pid, ticks, own_ticks;
		bool gives_way;
	} cases[] = {
		{"e1.sprof", 42, 7, 7, true},  {"e2.sprof", 42, 7, 8, false},
		{"e3.sprof", 43, 7, 7, false}, {"e4.sprof", 42, 0, 0, false},
		{"e5", 42, 7, 7, true},
	};
	struct sp_outfile file;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		write_profile(cases[i].name, cases[i].pid, cases[i].ticks);
		assert_true(sp_outfile_prepare(
			agent_fixture_path(cases[i].name), "/bin/x", "h", 0));
		assert_int_equal(sp_outfile_create(42, cases[i].own_ticks,
						   &limit, CHUNK, &file),
				 0);
		unmap(&file);
		assert_int_equal(is_empty(cases[i].name), cases[i].gives_way);
	}
	assert_false(is_empty("e1.1.sprof"));
	assert_true(is_empty("e2.1.sprof"));
	assert_false(is_empty("e5.1"));
	/* The next one, and nothing that is there is lost. */
	assert_int_equal(unlink(agent_fixture_path("e5")), 0);
	write_profile("e5", 42, 7);
	assert_int_equal(sp_outfile_create(42, 7, &limit, CHUNK, &file), 0);
	unmap(&file);
	assert_true(is_empty("e5"));
	assert_false(is_empty("e5.1"));
	assert_false(is_empty("e5.2"));
}

static off_t size_of(const char *name)
{
	struct stat st;

	assert_int_equal(stat(agent_fixture_path(name), &st), 0);
	return st.st_size;
}

/* The file that was made, and no other that has its name by now. */
TEST(shorten)
{
	assert_int_equal(create(agent_fixture_path("s")), 0);
	sp_outfile_shorten(2 * LIMIT);
	assert_int_equal(size_of("s"), LIMIT);
	sp_outfile_shorten(CHUNK);
	assert_int_equal(size_of("s"), CHUNK);
	assert_int_equal(
		rename(agent_fixture_path("s"), agent_fixture_path("moved")),
		0);
	sp_outfile_shorten(1);
	write_profile("s", 42, 7);
	sp_outfile_shorten(1);
	assert_int_equal(size_of("moved"), CHUNK);
	assert_int_equal(size_of("s"), sizeof(struct sp_file_header));
	assert_int_equal(unlink(agent_fixture_path("s")), 0);
	assert_int_equal(
		symlink(agent_fixture_path("moved"), agent_fixture_path("s")),
		0);
	sp_outfile_shorten(1);
	assert_int_equal(size_of("moved"), CHUNK);
}

TEST_MAIN(agent_fixture_begin, agent_fixture_end)
