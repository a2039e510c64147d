/* SPDX-License-Identifier: MIT */
#ifndef SP_PROFILE_TOTALS_H
#define SP_PROFILE_TOTALS_H

#include "profile/profile.h"
#include "profile/reader.h"

/* The exact totals by size class of a file that was read to its end, and how
 * much they may lack (class_slack_bytes). */
void sp_totals_take_classes(struct sp_profile *profile,
			    const struct sp_reader *reader);

#endif
