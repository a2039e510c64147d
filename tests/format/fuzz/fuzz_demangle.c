/* SPDX-License-Identifier: MIT */
/* A linker name: no crash, no endless work, nothing longer than promised. */
#include <stdlib.h>
#include <string.h>

#include "format/fuzz/target.h"
#include "symbols/demangle.h"
#include "symbols/plainname.h"
#include "symbols/seethrough.h"

/* A name as it is spelled is never longer, and has one role. */
static void look_at_name(const char *name, const struct sp_see_through *rules)
{
	for (int keeps_traits = 0; keeps_traits < 2; keeps_traits++) {
		char *plain = sp_plain_name(name, keeps_traits);

		FUZZ_ASSERT(plain);
		FUZZ_ASSERT(strlen(plain) <= strlen(name));
		free(plain);
	}
	sp_see_through_role(rules, "", name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct sp_see_through_options all;
	static struct sp_see_through *rules;
	char *name = malloc(size + 1);
	char *plain;

	FUZZ_ASSERT(name);
	memcpy(name, data, size);
	name[size] = '\0';
	plain = sp_demangle(name);
	FUZZ_ASSERT(!plain || strlen(plain) <= SP_DEMANGLED_MAX);
	FUZZ_ASSERT(!plain || strlen(name) <= SP_MANGLED_MAX);
	if (!rules)
		FUZZ_ASSERT(sp_see_through_new(&all, &rules, NULL) == 0);
	look_at_name(name, rules);
	if (plain)
		look_at_name(plain, rules);
	free(plain);
	free(name);
	return 0;
}
