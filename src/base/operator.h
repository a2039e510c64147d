/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/* Bytes of "operator<<" or the like of C++, which is no bracket, where the text
 * begins so; 0 else, and of "operator bool" and "operator new". */
size_t sp_operator_bytes(const char *text);
