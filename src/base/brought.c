/* SPDX-License-Identifier: MIT */
#include "base/brought.h"

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEADERS_MAX 64u
#define PART_BYTES  (1u << 20)
#define LONGEST     16u

/* No text of this source contains what is looked for. */
static const struct {
	const char *before, *after, *name;
} messages[] = {
	{"<je", ">: ", "jemalloc"},
	{"mi", ": ", "mimalloc"},
	{"tc", ": ", "tcmalloc"},
};

static bool is_constant(const Elf64_Phdr *p, uint32_t without)
{
	return p->p_type == PT_LOAD && p->p_flags & PF_R &&
	       !(p->p_flags & (PF_W | without));
}

/* `at` is where "malloc" stands, with LONGEST readable bytes around it. */
static const char *name_at(const char *at)
{
	for (size_t i = 0; i < sizeof(messages) / sizeof(*messages); i++) {
		const char *before = messages[i].before;
		const char *after = messages[i].after;
		const size_t n = strlen(before);

		if (memcmp(at - n, before, n) == 0 &&
		    memcmp(at + strlen("malloc"), after, strlen(after)) == 0)
			return messages[i].name;
	}
	return NULL;
}

/* `text` has LONGEST readable bytes before and behind it. */
static const char *find_in(const char *text, size_t n)
{
	const char *const end = text + n, *at = text;
	const char *name = NULL;

	while (!name && (at = memmem(at, (size_t)(end - at), "malloc", 6))) {
		name = name_at(at);
		at += 6;
	}
	return name;
}

static const char *find_in_segment(int fd, const Elf64_Phdr *p, char *buffer,
				   size_t *left)
{
	const char *name = NULL;
	uint64_t at = 0;

	/* The end of a part is looked at once more, with what follows. */
	while (!name && at < p->p_filesz && *left) {
		const uint64_t rest = p->p_filesz - at;
		const ssize_t n =
			pread(fd, buffer + LONGEST,
			      rest < PART_BYTES ? (size_t)rest : PART_BYTES,
			      (off_t)(p->p_offset + at));

		if (n <= 0)
			return NULL;
		memset(buffer + LONGEST + n, 0, LONGEST);
		name = find_in(buffer + LONGEST, (size_t)n);
		*left = *left > (size_t)n ? *left - (size_t)n : 0;
		at += (uint64_t)n > 2 * LONGEST && (uint64_t)n < rest
			      ? (uint64_t)n - 2 * LONGEST
			      : (uint64_t)n;
	}
	return name;
}

const char *sp_brought_find(int fd)
{
	Elf64_Phdr headers[HEADERS_MAX];
	size_t left = SP_BROUGHT_BYTES;
	const char *name = NULL;
	uint32_t without = 0;
	Elf64_Ehdr header;
	char *buffer;
	ssize_t n;

	if (pread(fd, &header, sizeof(header), 0) != sizeof(header) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_phentsize != sizeof(*headers) ||
	    header.e_phnum > HEADERS_MAX)
		return NULL;
	n = header.e_phnum * (ssize_t)sizeof(*headers);
	if (pread(fd, headers, (size_t)n, (off_t)header.e_phoff) != n)
		return NULL;
	/* Constants stand beside the code only where there is no other place.
	 */
	for (unsigned int i = 0; i < header.e_phnum; i++)
		if (is_constant(&headers[i], PF_X) &&
		    headers[i].p_filesz > PART_BYTES / 16)
			without = PF_X;
	buffer = calloc(1, PART_BYTES + 2 * LONGEST);
	for (unsigned int i = 0; buffer && !name && i < header.e_phnum; i++)
		if (is_constant(&headers[i], without))
			name = find_in_segment(fd, &headers[i], buffer, &left);
	free(buffer);
	return name;
}
