/* SPDX-License-Identifier: MIT */
/* How the process ended, and what the file lacks of it. */
#include <assert.h>
#include <string.h>

#include "base/parse.h"
#include "read/loader.h"

static void set_end(struct sp_profile *p, const struct sp_reader *r)
{
	p->end_kind = r->status.end_kind;
	if (p->end_kind == SP_END_CLEAN)
		p->end = sp_profile_info(p, "detached_ns")
				 ? SP_PROFILE_END_DETACHED
				 : SP_PROFILE_END_CLEAN;
	else if (r->is_running)
		p->end = SP_PROFILE_END_RUNNING;
	else
		p->end = p->end_kind == SP_END_EXEC ? SP_PROFILE_END_EXEC
						    : SP_PROFILE_END_KILLED;
}

static void take_fact(const struct sp_profile *p, const char *key,
		      uint64_t *ret)
{
	const char *text = sp_profile_info(p, key);

	if (text)
		sp_parse_u64(text, ret);
}

bool sp_loader_is_known_fact(struct sp_loader *l, const struct sp_info *info)
{
	static const char *const growing[] = {"allocator.linked", "unseen",
					      "diagnosis"};
	static_assert(sizeof(growing) / sizeof(*growing) ==
			      sizeof(l->grown) / sizeof(*l->grown),
		      "loader.h");

	for (size_t i = 0; i < sizeof(growing) / sizeof(*growing); i++) {
		struct sp_info *known;

		if (strcmp(info->key, growing[i]) != 0)
			continue;
		if (!l->grown[i]) {
			l->grown[i] = l->p->n_infos + 1;
			return false;
		}
		known = &l->p->infos[l->grown[i] - 1];
		if (strlen(info->value) > strlen(known->value))
			known->value = info->value;
		return true;
	}
	return false;
}

/* The process could store nothing any more, or it may be so: until when was all
 * recorded? */
static uint64_t low_ns(const struct sp_loader *l)
{
	const struct sp_status *s = &l->reader->status;
	const uint64_t ns =
		s->losses[SP_LOSS_FILE_FULL] ? s->time_ns : l->last_event_ns;

	if (!s->losses[SP_LOSS_PAGE] || s->end_kind == SP_END_CLEAN)
		return 0;
	return ns ? ns : 1;
}

/* What model/whole.h asks for. */
static void set_whole(const struct sp_loader *l)
{
	const struct sp_reader *r = l->reader;
	struct sp_profile *p = l->p;

	p->damaged_records = r->damage.records;
	p->ignored_bytes = r->damage.ignored_bytes;
	p->is_cut = r->is_cut;
	p->known_ns = r->is_cut ? l->last_event_ns : 0;
	memcpy(p->damage, r->damage.text, sizeof(p->damage));
	p->unfinished_records = r->unfinished;
	p->full_ns = low_ns(l);
	take_fact(p, "full_ns", &p->full_ns);
}

uint64_t sp_loader_duration_ns(const struct sp_loader *l)
{
	const uint64_t published_ns = l->reader->status.time_ns;

	return published_ns > l->last_time_ns ? published_ns : l->last_time_ns;
}

void sp_loader_set_end(struct sp_loader *l)
{
	struct sp_profile *p = l->p;

	set_end(p, l->reader);
	set_whole(l);
	p->has_unseen = sp_profile_info(p, "unseen") ||
			sp_profile_info(p, "allocator.missed") || p->brought;
	take_fact(p, "time_error_ns", &p->time_error_ns);
}
