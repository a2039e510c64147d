/* SPDX-License-Identifier: MIT */
/* A main() for a fuzz target without a fuzzer: each file that it is given, and
 * each file of each directory, is one input.  None takes much memory. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "format/fuzz/target.h"
#include "support/memory_limit.h"

static unsigned int replayed;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void replay_file(const char *path)
{
	FILE *f = fopen(path, "rbe");
	uint8_t *data = NULL;
	size_t n = 0, got;

	if (!f)
		die(path);
	do {
		data = realloc(data, n + 65536);
		if (!data)
			die(path);
		got = fread(data + n, 1, 65536, f);
		n += got;
	} while (got);
	fclose(f);
	/* Exactly as long as the input, so that a sanitizer sees its end. */
	data = realloc(data, n ? n : 1);
	LLVMFuzzerTestOneInput(data, n);
	free(data);
	replayed++;
}

static void replay(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	char file[4096];

	if (!dir) {
		if (errno != ENOTDIR)
			die(path);
		replay_file(path);
		return;
	}
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
		replay_file(file);
	}
	closedir(dir);
}

int main(int argc, char **argv)
{
	memory_limit(64 << 20);
	for (int i = 1; i < argc; i++)
		replay(argv[i]);
	printf("%u inputs\n", replayed);
	return replayed ? 0 : 1;
}
