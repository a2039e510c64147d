/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

/*
 * The coverage of the three-cumulant interval of the bytes of n equal objects
 * that are left to chance, without random numbers: the number of samples is
 * binomial, and every one of them is asked for its interval.  Correct to 1e-9.
 */
double exact_coverage(uint64_t size_bytes, uint64_t n, double confidence);
