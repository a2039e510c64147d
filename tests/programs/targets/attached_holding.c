/* SPDX-License-Identifier: MIT */
/* A library whose constructor waits, as attached_places.c lets it. */
#include <unistd.h>

#define HELD  99
#define BEGUN 100

static void __attribute__((constructor)) wait_within_load(void)
{
	char c = 0;

	if (write(BEGUN, &c, 1) != 1 || read(HELD, &c, 1) != 1)
		_exit(71);
}
