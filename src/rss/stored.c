/* SPDX-License-Identifier: MIT */
#include "rss/stored.h"

#include <errno.h>
#include <string.h>

#include <jansson.h>

#include "export/html_ledgers.h"
#include "read/load.h"
#include "text/text.h"
#include "text/lack.h"

static uint64_t read_count(const json_t *json, const char *key)
{
	const double n = json_number_value(json_object_get(json, key));

	return n > 0 && n < 0x1p63 ? (uint64_t)n : 0;
}

static bool read_flag(const json_t *json, const char *key)
{
	return json_is_true(json_object_get(json, key));
}

static struct sp_interval read_interval(const json_t *json)
{
	return (struct sp_interval){(double)read_count(json, "value"),
				    (double)read_count(json, "lo"),
				    (double)read_count(json, "hi")};
}

static void read_rows(const struct sp_ledger *stored, struct sp_rss_ledger *ret)
{
	for (size_t i = 0; i < stored->n_rows; i++) {
		const struct sp_ledger_row *row = &stored->rows[i];

		for (enum sp_rss_row_name k = 0; k < SP_RSS_ROWS; k++)
			if (strcmp(row->name, sp_rss_row_name(k)) == 0)
				ret->rows[k] = (struct sp_rss_row){
					row->bytes, row->swap_bytes, true};
	}
}

static void read_allocator(const json_t *json, struct sp_rss_ledger *ret)
{
	const char *name = json_string_value(json_object_get(json, "name"));

	ret->was_asked = json_is_object(json);
	for (uint64_t i = 1; name && sp_rss_allocator_name(i); i++)
		if (strcmp(name, sp_rss_allocator_name(i)) == 0)
			ret->memory.allocator = i;
	ret->memory.alive_bytes = read_count(json, "alive_bytes");
	ret->memory.free_bytes = read_count(json, "free_bytes");
	ret->memory.system_bytes = read_count(json, "system_bytes");
	ret->memory.large_bytes = read_count(json, "large_bytes");
}

static void read_before(const json_t *json, struct sp_rss_ledger *ret)
{
	const char *name = json_string_value(json_object_get(json, "before"));

	for (enum sp_unseen i = SP_UNSEEN_FORK; name && i <= SP_UNSEEN_OFF; i++)
		if (strcmp(name, sp_lack_unseen_name(i)) == 0)
			ret->before = i;
}

static void read_json(const json_t *json, struct sp_rss_ledger *ret)
{
	const json_t *untouched =
		json_object_get(json, "alive_untouched_bytes");
	const char *name = json_string_value(json_object_get(json, "name"));

	snprintf(ret->name, sizeof(ret->name), "%s", name ? name : "");
	ret->pid = read_count(json, "pid");
	ret->vm_rss = read_count(json, "vm_rss_bytes");
	ret->swap = read_count(json, "swap_bytes");
	ret->hugetlb = read_count(json, "hugetlb_bytes");
	ret->threads = read_count(json, "threads");
	ret->stacks = read_count(json, "thread_stacks");
	ret->has_profile = read_flag(json, "has_profile");
	ret->is_unreadable = !read_flag(json, "is_readable");
	ret->is_32_bit = read_flag(json, "is_32_bit");
	ret->has_other_malloc = read_flag(json, "has_other_malloc");
	ret->unsampled_bytes = read_count(json, "unsampled_bytes");
	ret->before_bytes = read_count(json, "before_bytes");
	read_before(json, ret);
	ret->has_objects = json_is_object(untouched);
	ret->untouched = read_interval(untouched);
	read_allocator(json_object_get(json, "allocator"), ret);
}

int sp_rss_ledger_read(const struct sp_ledger *stored,
		       struct sp_rss_ledger *ret)
{
	json_t *json = json_loads(stored->text, 0, NULL);

	if (!json)
		return -EBADMSG;
	*ret = (struct sp_rss_ledger){
		.why = stored->why,
		.time_ns = stored->time_ns,
		.rss = stored->rss_bytes,
		.confidence = stored->confidence > 0 && stored->confidence < 1
				      ? stored->confidence
				      : 0.95};
	snprintf(ret->mark, sizeof(ret->mark), "%.*s",
		 (int)sizeof(ret->mark) - 1, stored->mark);
	read_rows(stored, ret);
	read_json(json, ret);
	json_decref(json);
	return 0;
}

/* ---- of a finished profile ---- */

static void print_others(FILE *out, const struct sp_ledgers *all,
			 const struct sp_ledger *shown)
{
	for (size_t i = 0; i < all->n; i++) {
		const struct sp_ledger *l = &all->list[i];

		if (l == shown)
			continue;
		fprintf(out, "also: --when ");
		sp_text_print_shell(out, sp_ledger_name(l));
		fprintf(out, ", RSS %s at %s\n",
			sp_text_bytes((double)l->rss_bytes).text,
			sp_text_moment(l->time_ns).text);
	}
}

static int fail_to_find(const struct sp_ledgers *all, const char *which,
			const char *path, struct sp_error *err)
{
	if (!all->n)
		return sp_error_set(
			err, -ENOENT, path,
			"there is no ledger of resident memory in it: "
			"`sampleprof run --rss` puts one there at the end "
			"(--rss-at-peak: also near the peak), and `sampleprof "
			"ctl "
			"PID snapshot NAME --rss` at any time; `sampleprof rss "
			"PID` is for a process that runs");
	return sp_error_set(err, -ENOENT, path,
			    "there is no ledger called so: %.80s (there is "
			    "%.80s%s)",
			    which, sp_ledger_name(&all->list[0]),
			    all->n > 1 ? ", and others" : "");
}

static int print_one(FILE *out, const struct sp_ledgers *all,
		     const struct sp_rss_options *options, struct sp_error *err)
{
	const struct sp_ledger *stored = sp_ledgers_find(all, options->when);
	struct sp_rss_ledger ledger;
	int r;

	if (!stored)
		return fail_to_find(all, options->when, options->path, err);
	r = sp_rss_ledger_read(stored, &ledger);
	if (r < 0)
		return sp_error_set(err, r, options->path,
				    "its ledger cannot be read");
	if (options->html || options->json) {
		if (options->html)
			sp_html_ledgers_page(out, ledger.name, ledger.pid, all);
		else
			sp_rss_print_json(out, &ledger, NULL, 0);
		return 0;
	}
	sp_rss_print(out, &ledger);
	print_others(out, all, stored);
	return 0;
}

int sp_rss_print_stored(FILE *out, const struct sp_rss_options *options,
			struct sp_error *err)
{
	struct sp_profile *profile;
	struct sp_ledgers all;
	int r = sp_profile_load(options->path, NULL, NULL, &profile, err);

	if (r < 0)
		return r;
	r = sp_ledgers_read(profile, &all);
	r = r < 0 ? sp_error_memory(err, NULL)
		  : print_one(out, &all, options, err);
	sp_ledgers_free(&all);
	sp_profile_free(profile);
	return r;
}
