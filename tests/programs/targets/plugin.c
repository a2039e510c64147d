/* SPDX-License-Identifier: MIT */
/* A library that is loaded and unloaded; PLUGIN_FUNCTION is the name of what
 * allocates. */
#include "truth.h"

#include "allocate.h"

void PLUGIN_FUNCTION(int times);
void plugin_run(int times);

NOINLINE void PLUGIN_FUNCTION(int times)
{
	allocate(31, times);
	STAY();
}

void plugin_run(int times)
{
	PLUGIN_FUNCTION(times);
	STAY();
}
