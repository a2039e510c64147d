/* SPDX-License-Identifier: MIT */
#pragma once

/* A function that is bound when it is first called, and calls the hook then. */
extern void (*framewalk_lazy_hook)(void);
int framewalk_lazy(void);
