/* SPDX-License-Identifier: MIT */
/* Prints the effective user id. */
#include "truth.h"

#include "allocate.h"

int main(void)
{
	struct truth id = {geteuid(), 0};

	allocate(100, 1000);
	truth_print("euid", &id);
	return 0;
}
