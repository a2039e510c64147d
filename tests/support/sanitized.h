/* SPDX-License-Identifier: MIT */
#pragma once

/* Built with a sanitizer that keeps memory of its own and stops the program
 * when there is none: SP_SANITIZED is 1, else 0.  gcc and clang say it
 * differently. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SP_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SP_SANITIZED 1
#endif
#endif
#ifndef SP_SANITIZED
#define SP_SANITIZED 0
#endif
