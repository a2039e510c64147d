/* SPDX-License-Identifier: MIT */
/* Names of code made at run time: perf maps and jitdumps as runtimes write
 * them, compared with a search from the last entry; damage; whose files are
 * used. */
#include <errno.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "symbols/jitmap.h"
#include "support/test.h"

static void add_text(struct sp_jitmap *map, const char *text)
{
	assert_int_equal(sp_jitmap_add_map(map, text, strlen(text)), 0);
}

static void check_symbol(const struct sp_jitmap *map, uint64_t address,
			 const char *function, const char *file, uint32_t line,
			 bool is_reused)
{
	struct sp_jit_symbol s;

	assert_true(sp_jitmap_find(map, address, &s));
	assert_string_equal(s.function, function);
	if (file)
		assert_string_equal(s.file, file);
	else
		assert_null(s.file);
	assert_int_equal(s.line, line);
	assert_int_equal(s.is_reused, is_reused);
}

TEST(names)
{
	FREED_BY(sp_jitmap_done) struct sp_jitmap map = {0};
	struct sp_jit_symbol s;

	add_text(&map, "1000 10 JS:*parse /srv/my app/a.js:10:3\n"
		       "1010 10 LazyCompile:~ node:internal/x:7:1\n"
		       "1020 10 JS:^get size [eval]:1:13\n"
		       "1030 10 RegExp:a b\n"
		       "1040 10 py::Foo.bar:/srv/a.py\n"
		       "0x1050 0x10 com.acme.Main::run\n"
		       "1060 10 JS:*\n"
		       "1070 10 Script:~ f.js\n"
		       "1080 10 py::alone\n"
		       "1090 10 \n");
	assert_int_equal(sp_jitmap_seal(&map), 0);
	check_symbol(&map, 0x1000, "parse", "/srv/my app/a.js", 10, false);
	check_symbol(&map, 0x1010, "(anonymous)", "node:internal/x", 7, false);
	check_symbol(&map, 0x102f, "get size", "[eval]", 1, false);
	check_symbol(&map, 0x1030, "RegExp:a b", NULL, 0, false);
	check_symbol(&map, 0x1040, "py::Foo.bar", "/srv/a.py", 0, false);
	check_symbol(&map, 0x1050, "com.acme.Main::run", NULL, 0, false);
	check_symbol(&map, 0x1060, "(anonymous)", NULL, 0, false);
	check_symbol(&map, 0x1070, "(anonymous)", "f.js", 0, false);
	check_symbol(&map, 0x1080, "py::alone", NULL, 0, false);
	check_symbol(&map, 0x1090, "(anonymous)", NULL, 0, false);
	assert_false(sp_jitmap_find(&map, 0xfff, &s));
	assert_false(sp_jitmap_find(&map, 0x10a0, &s));
}

TEST(bad_lines_are_left_out)
{
	FREED_BY(sp_jitmap_done) struct sp_jitmap map = {0};
	struct sp_jit_symbol s;

	add_text(&map, "\n"
		       "not a line\n"
		       "1000\n"
		       "1000 \n"
		       "1000 10\n"
		       "-1 10 minus\n"
		       "11111111111111111 10 too_long\n"
		       "ffffffffffffffff 10 past_the_end\n"
		       "2000 0 empty\n"
		       "3000 10 good\n"
		       "4000 10 being_written");
	assert_int_equal(sp_jitmap_seal(&map), 0);
	assert_int_equal(map.n_entries, 1);
	check_symbol(&map, 0x3000, "good", NULL, 0, false);
	assert_false(sp_jitmap_find(&map, 0x4000, &s));
}

TEST(last_one_speaks)
{
	FREED_BY(sp_jitmap_done) struct sp_jitmap map = {0};

	add_text(&map, "1000 100 old\n"
		       "1040 10 new\n"
		       "2000 10 JS:~same a.js:1:1\n"
		       "2000 10 JS:*same a.js:1:1\n");
	assert_int_equal(sp_jitmap_seal(&map), 0);
	check_symbol(&map, 0x103f, "old", NULL, 0, false);
	check_symbol(&map, 0x1040, "new", NULL, 0, true);
	check_symbol(&map, 0x1050, "old", NULL, 0, false);
	check_symbol(&map, 0x2000, "same", "a.js", 1, false);
}

/* The same by going through all entries from the last one on. */
static const char *name_plainly(const struct sp_jitmap *map, uint64_t address)
{
	for (size_t i = map->n_entries; i; i--) {
		const struct sp_jit_entry *e = &map->entries[i - 1];

		if (e->start <= address && address < e->end)
			return e->name;
	}
	return NULL;
}

TEST(as_plainly)
{
	struct sp_rng rng;

	sp_rng_init(&rng, 7, 0);
	for (int round = 0; round < 300; round++) {
		FREED_BY(sp_jitmap_done) struct sp_jitmap map = {0};
		const unsigned int n = (unsigned int)(sp_rng_next(&rng) % 60);

		for (unsigned int i = 0; i < n; i++) {
			char line[80];

			snprintf(line, sizeof(line), "%x %x f%u\n",
				 (unsigned int)(sp_rng_next(&rng) % 200),
				 (unsigned int)(sp_rng_next(&rng) % 40), i);
			add_text(&map, line);
		}
		assert_int_equal(sp_jitmap_seal(&map), 0);
		for (uint64_t address = 0; address < 250; address++) {
			const char *name = name_plainly(&map, address);
			struct sp_jit_symbol s;

			assert_int_equal(sp_jitmap_find(&map, address, &s),
					 name != NULL);
			if (name)
				assert_string_equal(s.function, name);
		}
	}
}

/* ---- jitdump ---- */

struct dump {
	uint8_t bytes[4096];
	size_t n;
};

static void put(struct dump *d, const void *data, size_t n)
{
	memcpy(d->bytes + d->n, data, n);
	d->n += n;
}

static void put_numbers(struct dump *d, size_t bytes, const uint64_t *values,
			size_t n)
{
	for (size_t i = 0; i < n; i++)
		put(d, &values[i], bytes);
}

static void begin_dump(struct dump *d)
{
	d->n = 0;
	put_numbers(d, 4, (uint64_t[]){0x4A695444, 1, 40, 62, 0, 77}, 6);
	put_numbers(d, 8, (uint64_t[]){0, 0}, 2);
}

static void put_load(struct dump *d, uint64_t start, const char *name)
{
	const size_t bytes = strlen(name) + 1;

	put_numbers(d, 4, (uint64_t[]){0, 16 + 40 + bytes + 16}, 2);
	put_numbers(d, 8, (uint64_t[]){1}, 1);
	put_numbers(d, 4, (uint64_t[]){77, 77}, 2);
	put_numbers(d, 8, (uint64_t[]){start, start, 16, 1}, 4);
	put(d, name, bytes);
	put(d, (char[16]){0}, 16);
}

static void put_move(struct dump *d, uint64_t from, uint64_t to)
{
	put_numbers(d, 4, (uint64_t[]){1, 16 + 48}, 2);
	put_numbers(d, 8, (uint64_t[]){1}, 1);
	put_numbers(d, 4, (uint64_t[]){77, 77}, 2);
	put_numbers(d, 8, (uint64_t[]){to, from, to, 16, 1}, 5);
}

TEST(dump)
{
	FREED_BY(sp_jitmap_done) struct sp_jitmap map = {0};
	struct sp_jit_symbol s;
	struct dump d;

	begin_dump(&d);
	put_load(&d, 0x1000, "py::f:/a.py");
	put_load(&d, 0x2000, "g");
	put_numbers(&d, 4, (uint64_t[]){2, 24}, 2); /* debug info */
	put_numbers(&d, 8, (uint64_t[]){1, 5}, 2);
	put_move(&d, 0x1000, 0x2008);
	put_move(&d, 0x9999, 0x3000);
	assert_int_equal(sp_jitmap_add_dump(&map, d.bytes, d.n), 0);
	assert_int_equal(sp_jitmap_seal(&map), 0);
	check_symbol(&map, 0x100f, "py::f", "/a.py", 0, false);
	check_symbol(&map, 0x2007, "g", NULL, 0, false);
	check_symbol(&map, 0x2008, "py::f", "/a.py", 0, true);
	check_symbol(&map, 0x2017, "py::f", "/a.py", 0, false);
	assert_false(sp_jitmap_find(&map, 0x3000, &s));
}

/* What was read until the file is cut stays; no byte behind it is looked at. */
TEST(cut_dump)
{
	struct dump d;

	begin_dump(&d);
	put_load(&d, 0x1000, "f");
	put_load(&d, 0x2000, "g");
	put_move(&d, 0x1000, 0x3000);
	for (size_t n = 0; n <= d.n; n++) {
		FREED uint8_t *copy = malloc(n + !n);
		FREED_BY(sp_jitmap_done) struct sp_jitmap map = {0};

		assert_non_null(copy);
		memcpy(copy, d.bytes, n);
		assert_int_equal(sp_jitmap_add_dump(&map, copy, n),
				 n < 40 ? -EBADMSG : 0);
		assert_int_equal(map.n_entries,
				 (n >= 40 + 74) + (n >= 40 + 2 * 74) +
					 (n >= 40 + 2 * 74 + 64));
	}
	d.bytes[0] ^= 1;
	assert_int_equal(
		sp_jitmap_add_dump(&(struct sp_jitmap){0}, d.bytes, d.n),
		-EBADMSG);
}

/* ---- whose files ---- */

struct rig {
	struct sp_profile profile;
	char map[64], own[64];
};

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void set_up(struct rig *r)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	*r = (struct rig){0};
	snprintf(r->own, sizeof(r->own), "/tmp/test_jitmap-%d", getpid());
	snprintf(r->map, sizeof(r->map), "/tmp/perf-%d.map", getpid());
	write_file(r->own, "");
	write_file(r->map, "1000 10 f\n");
	r->profile.owner = geteuid();
	r->profile.pid = (uint64_t)getpid();
	r->profile.start_unix_ns = (uint64_t)now.tv_sec * 1000000000;
	r->profile.duration_ns = 1000000000;
	r->profile.host = "";
}

static void check_opened(const struct rig *r, size_t n, const char *problem)
{
	FREED_BY(sp_jitmap_done) struct sp_jitmap map = {0};

	assert_int_equal(sp_jitmap_open(&map, &r->profile), 0);
	assert_int_equal(map.n_entries, n);
	if (problem)
		assert_non_null(strstr(map.problem, problem));
	else
		assert_string_equal(map.problem, "");
}

TEST(whose_file)
{
	const uint64_t hour_ns = 3600000000000;
	struct rig r;

	set_up(&r);
	check_opened(&r, 1, NULL);
	r.profile.host = "another.host.example";
	check_opened(&r, 0, NULL);
	r.profile.host = "";
	r.profile.start_unix_ns += hour_ns;
	check_opened(&r, 0, "is older than the process");
	r.profile.start_unix_ns -= 2 * hour_ns;
	check_opened(&r, 0, "was written after the process had ended");
	r.profile.end = SP_PROFILE_END_RUNNING;
	check_opened(&r, 1, NULL);
	if (geteuid() == 0) {
		assert_int_equal(chown(r.map, 4711, 4711), 0);
		check_opened(&r, 0, "belongs to another user");
		r.profile.owner = 4711;
		check_opened(&r, 1, NULL);
	}
	unlink(r.map);
	check_opened(&r, 0, NULL);
	assert_int_equal(mkdir(r.map, 0700), 0);
	check_opened(&r, 0, "is not a regular file");
	rmdir(r.map);
	assert_int_equal(symlink(r.own, r.map), 0);
	check_opened(&r, 0, NULL);
	unlink(r.map);
	unlink(r.own);
}

TEST_MAIN(NULL, NULL)
