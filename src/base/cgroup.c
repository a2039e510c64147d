/* SPDX-License-Identifier: MIT */
#include "base/cgroup.h"

#include <string.h>

/* Is it one of those between commas? */
static bool has_word(const char *list, size_t n, const char *word)
{
	const size_t length = strlen(word);

	for (size_t i = 0; i + length <= n; i++)
		if ((!i || list[i - 1] == ',') &&
		    memcmp(list + i, word, length) == 0 &&
		    (i + length == n || list[i + length] == ','))
			return true;
	return false;
}

size_t sp_cgroup_memory(const char *text, const char **ret_group,
			bool *ret_is_v1)
{
	size_t found = 0;

	*ret_is_v1 = false;
	while (*text) {
		const char *first = strchr(text, ':');
		const char *second = first ? strchr(first + 1, ':') : NULL;
		const char *end = strchr(text, '\n');
		size_t n;

		if (!end)
			end = text + strlen(text);
		if (!second || second > end)
			return found;
		n = (size_t)(second - first) - 1;
		if (!n || has_word(first + 1, n, "memory")) {
			*ret_group = second + 1;
			*ret_is_v1 = n;
			found = (size_t)(end - second) - 1;
		}
		if (n && *ret_is_v1)
			break;
		text = *end ? end + 1 : end;
	}
	/* Above the root of a namespace: /../x. */
	if (found >= 3 && memcmp(*ret_group, "/..", 3) == 0)
		return 0;
	return found;
}
