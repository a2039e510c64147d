/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

#include "pack/open_samples.h"
#include "read/pairing.h"

/*
 * Samples of a stream that are open, whether their frees come by id or by
 * address: `paired` is NULL in the first case, and counts alone in the other.
 */

/* The next one from position *i on, which moves behind it; NULL: there is
 * none. */
const struct sp_open_sample *sp_still_open_next(
	const struct sp_open_samples *open, const struct sp_pairing *paired,
	size_t *i);

/* All of them in the order of birth, *ret_n, for the caller to free.  NULL
 * without memory. */
const struct sp_open_sample **sp_still_open_list(
	const struct sp_open_samples *open, const struct sp_pairing *paired,
	size_t *ret_n);
