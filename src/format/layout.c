/* SPDX-License-Identifier: MIT */
#include "format/layout.h"

#include <stddef.h>

static const char *const loss_names[] = {
#define SP_LOSS(id, name, help) name,
#include "format/losses.def"
#undef SP_LOSS
};

static const char *const loss_helps[] = {
#define SP_LOSS(id, name, help) help,
#include "format/losses.def"
#undef SP_LOSS
};

static const char *const entry_names[] = {
#define SP_ENTRY(id, name) name,
#include "format/entries.def"
#undef SP_ENTRY
};

const char *sp_loss_name(unsigned int loss)
{
	return loss < SP_LOSS_COUNT ? loss_names[loss] : NULL;
}

const char *sp_loss_help(unsigned int loss)
{
	return loss < SP_LOSS_COUNT ? loss_helps[loss] : NULL;
}

const char *sp_entry_name(unsigned int entry)
{
	return entry < SP_ENTRY_COUNT ? entry_names[entry] : "?";
}
