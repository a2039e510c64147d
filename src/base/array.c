/* SPDX-License-Identifier: MIT */
#include "base/array.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

int sp_array_reserve(void **array, size_t *room, size_t used, size_t size)
{
	size_t bigger = *room ? *room * 2 : 16;
	void *p;

	if (used < *room)
		return 0;
	if (bigger > SIZE_MAX / size)
		return -ENOMEM;
	p = realloc(*array, bigger * size);
	if (!p)
		return -ENOMEM;
	*array = p;
	*room = bigger;
	return 0;
}
