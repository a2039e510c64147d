/* SPDX-License-Identifier: MIT */
/* sp_neighbours_of() */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/debuginfo.h"
#include "symbols/demangle.h"
#include "symbols/images.h"
#include "symbols/plainname.h"
#include "symbols/symbolizer.h"

#define NEAR_BYTES 4096u

/* As people read it, without a version; to be freed, or NULL. */
static char *name_of(const struct sp_debuginfo *info,
		     const struct sp_range *range)
{
	GElf_Sym symbol;
	uint64_t value;
	const char *raw =
		sp_debuginfo_symbol(info, range->value, &symbol, &value);
	char *full = raw ? sp_demangle(raw) : NULL, *plain;

	if (!full)
		return raw ? strndup(raw, strcspn(raw, "@")) : NULL;
	plain = sp_plain_name(full, false);
	if (plain)
		plain[sp_demangle_short(plain)] = '\0';
	free(full);
	return plain;
}

static char *join(char *before, char *behind)
{
	char *text = NULL;
	int r = 0;

	if (before && behind)
		r = asprintf(&text, "between %s and %s", before, behind);
	else if (before)
		r = asprintf(&text, "behind %s", before);
	else if (behind)
		r = asprintf(&text, "before %s", behind);
	free(before);
	free(behind);
	return r < 0 ? NULL : text;
}

char *sp_neighbours_of(const struct sp_symbolizer *symbolizer,
		       const struct sp_module *module, struct sp_frame frame)
{
	struct sp_images *images = sp_symbolizer_options_of(symbolizer)->images;
	const struct sp_image *image =
		images ? sp_images_get(images, module) : NULL;
	uint64_t at = frame.offset + module->start_pc - module->bias - 1;
	const struct sp_range *before, *behind;

	if (!image || !image->info)
		return NULL;
	sp_debuginfo_function_start(image->info, at, &at);
	sp_rangemap_around(sp_debuginfo_symbols(image->info), at, &before,
			   &behind);
	/* A label may reach over it. */
	if (before &&
	    at - (before->end > at ? before->start : before->end) >= NEAR_BYTES)
		before = NULL;
	if (behind && behind->start - at >= NEAR_BYTES)
		behind = NULL;
	return join(before ? name_of(image->info, before) : NULL,
		    behind ? name_of(image->info, behind) : NULL);
}
