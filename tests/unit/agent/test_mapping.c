/* SPDX-License-Identifier: MIT */
/* Memory that takes the place of a file that has ended: a thread that is
 * late stores there, and the file stays as it is. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/file/mapping.h"
#include "agent/file/outfile.h"
#include "format/layout.h"
#include "support/agent_fixture.h"
#include "support/test.h"

#define CHUNK   ((uint64_t)SP_FORMAT_CHUNK_BYTES)
#define CHUNKS  40u /* two whole windows, and a part of one */
#define WINDOW  16u
#define ROUNDS  20
#define OF_FILE 1
#define LATE    2

/* A file with a byte in each chunk; where the chunks are. */
static void begin(uint8_t *chunks[CHUNKS])
{
	const struct sp_outfile_limit limit = {.bytes = CHUNKS * CHUNK};
	struct sp_outfile file;

	assert_true(sp_outfile_prepare(agent_fixture_path("file"), "/bin/x",
				       "host", 1700000000));
	assert_int_equal(
		sp_outfile_create(42, 0, &limit, SP_MAPPING_FIRST_BYTES, &file),
		0);
	assert_int_equal(file.mapped, WINDOW * CHUNK);
	sp_mapping_begin(&file);
	for (unsigned int i = 0; i < CHUNKS; i++) {
		chunks[i] = sp_mapping_chunk(i);
		assert_non_null(chunks[i]);
		chunks[i][0] = OF_FILE;
		chunks[i][CHUNK - 1] = OF_FILE;
	}
}

static void expect_file(void)
{
	int fd = open(sp_outfile_name(), O_RDONLY);
	uint8_t bytes[SP_FORMAT_CHUNK_BYTES];

	assert_true(fd >= 0);
	for (unsigned int i = 0; i < CHUNKS; i++) {
		assert_int_equal(read(fd, bytes, sizeof(bytes)), CHUNK);
		assert_int_equal(bytes[0], OF_FILE);
		assert_int_equal(bytes[1], 0);
		assert_int_equal(bytes[CHUNK - 1], OF_FILE);
	}
	close(fd);
}

static unsigned int count_mappings_of_file(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[4096];
	unsigned int n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, sp_outfile_name()) != NULL;
	fclose(f);
	return n;
}

static uint64_t mapped_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long pages;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* A file of 80 MiB: windows of 1, 2 and 4 MiB. */
#define LARGE (80u * 16u)

TEST(windows_grow)
{
	const struct sp_outfile_limit limit = {.bytes = LARGE * CHUNK};
	const uint64_t before = mapped_bytes();
	struct sp_outfile file;
	uint32_t number;
	int fd;

	assert_true(sp_outfile_prepare(agent_fixture_path("large"), "/bin/x",
				       "host", 1700000000));
	assert_int_equal(
		sp_outfile_create(42, 0, &limit, SP_MAPPING_FIRST_BYTES, &file),
		0);
	sp_mapping_begin(&file);
	for (uint32_t i = 0; i < LARGE; i++) {
		uint8_t *chunk = sp_mapping_chunk(i);

		assert_non_null(chunk);
		memcpy(chunk, &i, sizeof(i));
		/* Each window begins with a chunk that is there already. */
		assert_true(mapped_bytes() - before <=
			    (i + 1 + i / 8) * CHUNK + (2u << 20));
	}
	assert_int_equal(count_mappings_of_file(), 16 + 16 + 8);
	/* Chunks of windows that are mapped, in any order. */
	for (uint32_t i = LARGE; i-- > 0;) {
		memcpy(&number, sp_mapping_chunk(i), sizeof(number));
		assert_int_equal(number, i);
	}
	sp_mapping_unmap();
	sp_mapping_reset();
	fd = open(sp_outfile_name(), O_RDONLY);
	assert_true(fd >= 0);
	for (uint32_t i = 0; i < LARGE; i++) {
		assert_int_equal(
			pread(fd, &number, sizeof(number), (off_t)(i * CHUNK)),
			sizeof(number));
		assert_int_equal(number, i);
	}
	close(fd);
	assert_int_equal(unlink(sp_outfile_name()), 0);
}

TEST(late_stores)
{
	uint8_t *chunks[CHUNKS];

	begin(chunks);
	assert_true(count_mappings_of_file() >= 3);
	sp_mapping_unmap();
	sp_mapping_reset();
	assert_int_equal(count_mappings_of_file(), 0);
	assert_null(sp_mapping_base());
	for (unsigned int i = 0; i < CHUNKS; i++) {
		/* Nothing of the file is to be seen, either. */
		assert_int_equal(chunks[i][0], 0);
		chunks[i][0] = chunks[i][1] = chunks[i][CHUNK - 1] = LATE;
		assert_int_equal(chunks[i][1], LATE);
	}
	expect_file();
	assert_int_equal(unlink(sp_outfile_name()), 0);
}

/* However often: what is left of them all is the last one. */
TEST(many_files)
{
	uint8_t *chunks[CHUNKS];
	uint64_t before = 0;

	for (int i = 0; i < ROUNDS; i++) {
		begin(chunks);
		sp_mapping_unmap();
		sp_mapping_reset();
		chunks[CHUNKS - 1][1] = LATE;
		expect_file();
		assert_int_equal(unlink(sp_outfile_name()), 0);
		if (i == 1)
			before = mapped_bytes();
	}
	assert_true(mapped_bytes() < before + CHUNKS * CHUNK);
}

TEST(nothing_mapped)
{
	sp_mapping_unmap();
	sp_mapping_reset();
	sp_mapping_unmap();
	assert_null(sp_mapping_base());
}

TEST_MAIN(agent_fixture_begin, agent_fixture_end)
