/* SPDX-License-Identifier: MIT */
/* The tests of a room in one program, of which one is run. */
#include <stdio.h>
#include <string.h>

/* SP_PARTS has a line PART(name) for each test. */
#define PART(name) int unit_##name(void);
#include SP_PARTS
#undef PART

static const struct {
	const char *name;
	int (*run)(void);
} parts[] = {
#define PART(name) {#name, unit_##name},
#include SP_PARTS
#undef PART
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (argc == 2 && strcmp(argv[1], parts[i].name) == 0)
			return parts[i].run();
	}
	fprintf(stderr, "usage: %s NAME, one of\n", argv[0]);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		fprintf(stderr, "    %s\n", parts[i].name);
	return 2;
}
