/* SPDX-License-Identifier: MIT */
/* test_modules.c in a program whose segments lie apart. */
#define HAS_HOLES 1
#include "test_modules.c"
