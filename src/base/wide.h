/* SPDX-License-Identifier: MIT */
#pragma once

/* Holds the product of any two 64-bit numbers.  ISO C has no such type. */
__extension__ typedef unsigned __int128 sp_u128;
