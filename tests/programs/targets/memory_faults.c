/* SPDX-License-Identifier: MIT */
/* The faults that a memory checker is there to find: "leak" or "uninitialised".
 */
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	int *p = malloc(sizeof(*p));
	const char *fault = argc > 1 ? argv[1] : "";
	int code = 0;

	if (strcmp(fault, "uninitialised") == 0)
		code = *(volatile int *)p == 42 ? 7 : 0;
	if (strcmp(fault, "leak") != 0)
		free(p);
	return code;
}
