/* SPDX-License-Identifier: MIT */
/* test_modules.c without _dl_find_object, as before glibc 2.35 and with musl:
 * linked with --wrap=sp_linkmap_global. */
#include <link.h>
#include <string.h>

void *__real_sp_linkmap_global(const char *name,
			       const struct link_map **ret_provider);
void *__wrap_sp_linkmap_global(const char *name,
			       const struct link_map **ret_provider);
void *__wrap_sp_linkmap_global(const char *name,
			       const struct link_map **ret_provider)
{
	if (strcmp(name, "_dl_find_object") == 0)
		return NULL;
	return __real_sp_linkmap_global(name, ret_provider);
}

#include "test_modules.c"
