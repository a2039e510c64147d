/* SPDX-License-Identifier: MIT */
#ifndef SUPPORT_FRAMEWALK_LAZY_H
#define SUPPORT_FRAMEWALK_LAZY_H

/* A function that is bound when it is first called, and calls the hook then. */
extern void (*framewalk_lazy_hook)(void);
int framewalk_lazy(void);

#endif
