/* SPDX-License-Identifier: MIT */
/*
 * An allocator that is linked into a program without symbols is not seen.  But
 * it maps memory, by calls of that file; and its messages are in the file.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/brought.h"
#include "base/saturate.h"
#include "read/loader.h"
#include "symbols/elffile.h"

/* What maps less is not looked at. */
#define MAPPED_MIN (1ull << 20)

struct sums {
	const struct sp_loader *loader;
	uint64_t *bytes; /* by the position of the module */
};

static void add_made(void *arg, const struct sp_span *made)
{
	const struct sums *sums = arg;
	const struct sp_loader *l = sums->loader;
	const struct sp_stack *s = &l->p->stacks[made->stack];
	const uint32_t i = sp_idmap_find(&l->modules, s->innermost);

	if (i != UINT32_MAX)
		sp_sat_add(&sums->bytes[i], made->end - made->start);
}

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* "malloc, je_malloc in libx.so": those without a file are of the executable.
 */
static bool is_seen(const struct sp_profile *p, const struct sp_module *m)
{
	const char *linked = sp_profile_info(p, "allocator.linked");
	const char *below = sp_profile_info(p, "allocator");
	const char *name = name_of(m->path);
	char in[128];

	if (below && strcmp(below, m->path) == 0)
		return true;
	snprintf(in, sizeof(in), " in %s", name);
	while (linked && *linked) {
		const size_t n = strcspn(linked, ",");
		const char *file = memmem(linked, n, " in ", 4);

		if (file ? strncmp(file, in, strlen(in)) == 0 : m->is_main)
			return true;
		linked += n + strspn(linked + n, ", ");
	}
	return false;
}

static int look_at_module(struct sp_profile *p, const struct sp_module *m)
{
	const struct sp_build_id id = {m->build_id, m->build_id_len};
	const int fd = sp_elffile_open(m->path, &id, NULL);
	const char *what = fd < 0 ? NULL : sp_brought_find(fd);
	char *text = NULL;

	if (fd >= 0)
		close(fd);
	if (!what)
		return 0;
	if (asprintf(&text, "%s in %s", what, name_of(m->path)) < 0)
		return -ENOMEM;
	p->brought = sp_blocks_text(&p->storage, text, strlen(text));
	free(text);
	return p->brought ? 0 : -ENOMEM;
}

/* What it had mapped before an attach is not known. */
static bool may_be_allocator(const struct sp_profile *p, size_t i,
			     uint64_t mapped)
{
	return mapped >= MAPPED_MIN ||
	       (p->modules[i].is_main && sp_profile_info(p, "attached.age_ms"));
}

int sp_loader_find_brought(struct sp_loader *l)
{
	struct sp_profile *p = l->p;
	struct sums sums = {l, NULL};
	int r = 0;

	/* The library has said why. */
	if (!p->n_modules || sp_profile_info(p, "unseen"))
		return 0;
	sums.bytes = calloc(p->n_modules, sizeof(*sums.bytes));
	if (!sums.bytes)
		return -ENOMEM;
	sp_mappings_each_made(&l->mappings, add_made, &sums);
	for (size_t i = 0; i < p->n_modules && r == 0 && !p->brought; i++)
		if (may_be_allocator(p, i, sums.bytes[i]) &&
		    !is_seen(p, &p->modules[i]))
			r = look_at_module(p, &p->modules[i]);
	free(sums.bytes);
	return r;
}
