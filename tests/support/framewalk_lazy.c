/* SPDX-License-Identifier: MIT */
#include "support/framewalk_lazy.h"

void (*framewalk_lazy_hook)(void);

static int answer(void)
{
	return 42;
}

static int (*resolve(void))(void)
{
	if (framewalk_lazy_hook)
		framewalk_lazy_hook();
	return answer;
}

int framewalk_lazy(void) __attribute__((ifunc("resolve")));
