/* SPDX-License-Identifier: MIT */
/*
 * Last include of every file of the agent: what must never be called inside
 * the host does not compile.  (interpose.c defines the malloc family and is the
 * one exception.)
 */
#pragma once

#pragma GCC poison calloc realloc strdup
#pragma GCC poison printf fprintf sprintf snprintf vsnprintf puts fputs
#pragma GCC poison fopen fclose perror strerror
#pragma GCC poison getenv secure_getenv setenv
#pragma GCC poison abort exit
#pragma GCC poison pthread_create pthread_mutex_trylock
#pragma GCC poison dlsym dladdr backtrace
