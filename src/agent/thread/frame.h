/* SPDX-License-Identifier: MIT */
#pragma once

/* What a function leaves at its frame pointer: its caller's, and where it
 * returns to. */
struct sp_call_frame {
	const struct sp_call_frame *up;
	void *pc;
};

/* The frame of the function that this stands in: `up` is the frame pointer as
 * its caller left it, be it one or a register in other use. */
#define SP_FRAME_HERE ((const struct sp_call_frame *)__builtin_frame_address(0))
