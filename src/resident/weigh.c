/* SPDX-License-Identifier: MIT */
#include "resident/weigh.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "control/target.h"
#include "resident/maps.h"
#include "resident/objects.h"
#include "resident/pages.h"

struct search {
	uint64_t file_id;
	uint64_t pid; /* 0: not found */
};

static void compare_file(void *arg, const struct sp_target *target)
{
	struct search *s = arg;

	if (target->header.file_id == s->file_id)
		s->pid = target->pid;
}

/* The process that has it mapped. */
static int find_writer(const char *path, uint64_t *ret_pid,
		       struct sp_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct sp_file_header header;
	struct search s = {.pid = 0};
	int r = 0;

	if (fd >= 0 && sp_target_read_header(fd, &header)) {
		s.file_id = header.file_id;
		r = sp_target_list(compare_file, &s, err);
	}
	if (fd >= 0)
		close(fd);
	if (r < 0)
		return r;
	*ret_pid = s.pid;
	return s.pid ? 0
		     : sp_error_set(err, -ESRCH, path,
				    "--view resident looks at the pages of a "
				    "process that runs, and this one has "
				    "ended, or is not ours to look at; "
				    "`sampleprof run --rss` says at its end "
				    "what is resident");
}

/* Zero all over in huge pages is as if it were not there. */
static int find_zeros(const struct sp_rss_maps *maps,
		      struct sp_rss_pages *pages)
{
	for (size_t i = 0; i < maps->n; i++)
		if (maps->list[i].huge &&
		    sp_rss_pages_find_zero(pages, &maps->list[i]) < 0)
			return -ENOMEM;
	return 0;
}

static int weigh(const char *path, struct sp_profile *profile,
		 const struct sp_rss_maps *maps, struct sp_error *err)
{
	struct sp_rss_pages *pages = sp_rss_pages_new(maps);
	int r;

	if (!pages || find_zeros(maps, pages) < 0)
		r = sp_error_set(err, -ENOMEM, NULL, "not enough memory");
	else if (!sp_rss_pages_can_ask(pages))
		r = sp_error_set(err, -EACCES, NULL,
				 "the pages of that process are not ours to "
				 "ask for: be its user, or root");
	else
		r = sp_rss_objects_weigh(path, profile, pages, err);
	sp_rss_pages_free(pages);
	return r;
}

int sp_rss_weigh(const char *path, struct sp_profile *profile,
		 struct sp_error *err)
{
	struct sp_rss_maps maps = {.n = 0};
	uint64_t pid;
	int r = find_writer(path, &pid, err);

	if (r < 0)
		return r;
	r = sp_rss_maps_read(pid, &maps, err);
	if (r >= 0)
		r = weigh(path, profile, &maps, err);
	sp_rss_maps_free(&maps);
	return r;
}
