/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "export/format.h"

/*
 * pprof's profile.proto, compressed.  Sample types are Go's, in Go's order:
 * alloc_objects, alloc_space, inuse_objects, inuse_space; the last two are left
 * out if the profile has no frees.  The default type is the bytes of the view.
 * There is a sample for each call stack and object size; the size is the
 * numeric label "bytes".
 *
 * Values are weighted estimates, which add up over samples and profiles,
 * rounded by sp_export_round(); never negative, nor is any sum of them.  With
 * `pprof_error` two types follow: the variance of the bytes of the default
 * type, in KiB^2, and the number of samples behind it.  To keep to
 * `max_samples`, first the sizes of a stack are merged, then the stacks with
 * fewest bytes into "[other]".
 *
 * Names are sp_text_print()'s.  A module of which no function is known has none
 * in the file, so that a reader which has the module can look them up.
 *
 * 0 or -ENOMEM and *err, with nothing written.
 */
int sp_export_pprof_write(FILE *out, const struct sp_aggregate *aggregate,
			  const struct sp_export_options *options,
			  struct sp_error *err);
