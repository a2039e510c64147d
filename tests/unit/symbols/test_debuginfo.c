/* SPDX-License-Identifier: MIT */
/*
 * Symbols and lines of one module agree with addr2line; every truncation and
 * random damage is survived.
 */

#include <fcntl.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "symbols/debuginfo.h"
#include "support/test.h"

#define WHOLE SP_SYMBOL_FIXTURES "/libfixture_c.so"

/* The fixtures' code ends before this address. It begins at a page of its own
 * on x86-64, and right behind the file's headers on aarch64. */
#define LAST_ADDRESS 0x1400

static const struct sp_symbolizer_options options = {
	.debug_path = "/nonexistent",
};
static const struct sp_build_id any_build_id = {0};

TEST(discarded_code_is_nowhere)
{
	struct sp_location locations[SP_LOCATION_MAX];
	struct sp_debuginfo *info;
	struct sp_error err;

	assert_int_equal(
		sp_debuginfo_open(WHOLE, &any_build_id, &options, &info, &err),
		0);
	assert_int_equal(sp_debuginfo_lookup(info, 8, locations), 1);
	assert_null(locations[0].function);
	assert_null(locations[0].file);
	assert_int_equal(sp_debuginfo_lookup(info, UINT64_MAX, locations), 1);
	assert_null(locations[0].function);
	sp_debuginfo_close(info);
}

/* Ask for many addresses of an ELF file, whatever state it is in. */
static void exercise(const char *path)
{
	struct sp_location locations[SP_LOCATION_MAX];
	struct sp_debuginfo *info;
	struct sp_error err;
	uint64_t address;
	size_t n;

	if (sp_debuginfo_open(path, &any_build_id, &options, &info, &err) < 0) {
		assert_true(err.message[0]);
		return;
	}
	for (address = 0; address < LAST_ADDRESS; address += 32) {
		n = sp_debuginfo_lookup(info, address, locations);
		assert_in_range(n, 1, SP_LOCATION_MAX);
	}
	sp_debuginfo_close(info);
}

static void copy_file(const char *from, int to)
{
	int fd = open(from, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	assert_true(fd >= 0);
	do {
		n = sendfile(to, fd, NULL, 1 << 20);
		assert_true(n >= 0);
	} while (n > 0);
	close(fd);
}

TEST(every_truncation_is_survived)
{
	char path[] = "/tmp/test_debuginfo.XXXXXX";
	int fd = mkstemp(path);
	off_t size;

	assert_true(fd >= 0);
	copy_file(WHOLE, fd);
	size = lseek(fd, 0, SEEK_END);
	assert_true(size > 0);
	while (size-- > 0) {
		assert_int_equal(ftruncate(fd, size), 0);
		exercise(path);
	}
	close(fd);
	assert_int_equal(unlink(path), 0);
}

TEST(random_damage_is_survived)
{
	char path[] = "/tmp/test_debuginfo.XXXXXX";
	int fd = mkstemp(path);
	const unsigned int rounds = test_rounds(60, 1000);
	unsigned int round, i;
	uint8_t byte;
	off_t size;

	assert_true(fd >= 0);
	srandom(1);
	for (round = 0; round < rounds; round++) {
		assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
		copy_file(WHOLE, fd);
		size = lseek(fd, 0, SEEK_CUR);
		for (i = 0; i < 8; i++) {
			byte = (uint8_t)random();
			assert_int_equal(pwrite(fd, &byte, 1, random() % size),
					 1);
		}
		exercise(path);
	}
	close(fd);
	assert_int_equal(unlink(path), 0);
}

#ifdef SP_ADDR2LINE
/* "function\nfile:line\n", where anything may follow the line. */
static void parse_reference(FILE *pipe, char *function, char *file,
			    unsigned *line)
{
	char place[1024];
	char *colon;

	assert_non_null(fgets(function, 256, pipe));
	assert_non_null(fgets(place, sizeof(place), pipe));
	function[strcspn(function, "\n")] = '\0';
	colon = strrchr(place, ':');
	assert_non_null(colon);
	*line = (unsigned)strtoul(colon + 1, NULL, 10);
	*colon = '\0';
	strcpy(file, place);
}

/* Whether addr2line, asked for one address, says the same. */
static void check_reference(const struct sp_location *locations, size_t n,
			    uint64_t address)
{
	char command[256], function[256], file[1024];
	unsigned line;
	FILE *pipe;
	size_t i;

	snprintf(command, sizeof(command), "%s -f -i -e %s 0x%llx",
		 SP_ADDR2LINE, WHOLE, (unsigned long long)address);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	for (i = 0; i < n; i++) {
		parse_reference(pipe, function, file, &line);
		assert_string_equal(locations[i].function, function);
		assert_string_equal(locations[i].file, file);
		assert_int_equal(locations[i].line, line);
	}
	assert_int_equal(fgetc(pipe), EOF);
	assert_int_equal(pclose(pipe), 0);
}

TEST(agrees_with_addr2line)
{
	struct sp_location locations[SP_LOCATION_MAX];
	struct sp_debuginfo *info;
	int compared = 0, inlined = 0;
	struct sp_error err;
	uint64_t address;
	size_t n;

	assert_int_equal(
		sp_debuginfo_open(WHOLE, &any_build_id, &options, &info, &err),
		0);
	for (address = 0; address < LAST_ADDRESS; address += 3) {
		n = sp_debuginfo_lookup(info, address, locations);
		/* The C library's start-up code has no lines. */
		if (!locations[0].file)
			continue;
		check_reference(locations, n, address);
		compared++;
		inlined += n > 1;
	}
	assert_true(compared > 40);
	assert_true(inlined > 4);
	sp_debuginfo_close(info);
}
#endif

TEST_MAIN(NULL, NULL)
