/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/*
 * Room for one more element of `size` bytes in an array that doubles: *array
 * has `used` elements and room for *room.  0, or -ENOMEM with nothing changed.
 */
int sp_array_reserve(void **array, size_t *room, size_t used, size_t size);
