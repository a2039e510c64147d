/* SPDX-License-Identifier: MIT */
#pragma once

/* The few functions that the library shows to the program (exports.map). */
#define SP_EXPORT __attribute__((visibility("default")))
/* Out of the way of the hot path; its caller is the program's call site when
 * the hot path jumps here. */
#define SP_COLD __attribute__((noinline, cold))
