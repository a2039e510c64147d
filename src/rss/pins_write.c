/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>

#include "report/callers.h"
#include "report/function_json.h"
#include "rss/pins.h"
#include "text/json.h"
#include "text/lines.h"
#include "text/style.h"
#include "text/text.h"

static const char *const names[] = {
	[SP_RSS_PINS_KNOWN] = "known",
	[SP_RSS_PINS_NO_PROFILE] = "no_profile",
	[SP_RSS_PINS_UNSEEN] = "unseen_malloc",
	[SP_RSS_PINS_NO_FREES] = "no_frees",
	[SP_RSS_PINS_SEVERAL] = "several_files",
	[SP_RSS_PINS_NO_ADDRESS] = "no_addresses",
	[SP_RSS_PINS_UNREADABLE] = "unreadable",
	[SP_RSS_PINS_CANNOT_ASK] = "cannot_ask",
	[SP_RSS_PINS_NO_ANSWER] = "no_answer",
};

static const char *const rules[] = {
	[SP_RSS_PINS_BY_HEADERS] = "headers",
	[SP_RSS_PINS_BY_ASKING] = "asked",
};

const char *sp_rss_pins_why_not(const struct sp_rss_pins *pins)
{
	static const char *const why[] = {
		[SP_RSS_PINS_NO_PROFILE] =
			"pinned memory needs a profile: start the program with "
			"`sampleprof run`, or `sampleprof attach` to it",
		[SP_RSS_PINS_UNSEEN] =
			"pinned memory is not known: sampleprof "
			"does not see the malloc of this program",
		[SP_RSS_PINS_NO_FREES] = "pinned memory needs live objects: "
					 "record with SAMPLEPROF_FREES=on",
		[SP_RSS_PINS_SEVERAL] =
			"pinned memory is that of one process: give one file",
		[SP_RSS_PINS_NO_ADDRESS] =
			"pinned memory needs the addresses of objects, which "
			"this file does not have: record again with this "
			"version",
		[SP_RSS_PINS_UNREADABLE] =
			"pinned memory is found in the memory of the process, "
			"which this user may not read: run as root",
		[SP_RSS_PINS_CANNOT_ASK] =
			"pinned memory is not known: this allocator cannot be "
			"asked for it (glibc's can, and jemalloc since 5.3, "
			"with a period of more than 1)",
		[SP_RSS_PINS_NO_ANSWER] =
			"jemalloc knows its free memory, but the process did "
			"not answer: a thread answers when it allocates; wait "
			"longer with --timeout",
	};

	return pins->state == SP_RSS_PINS_KNOWN ? NULL : why[pins->state];
}

/* ---- for people ---- */

static void print_amount(FILE *out, struct sp_interval i)
{
	fputs(sp_text_bytes(i.value).text, out);
	if (i.lo < i.hi)
		fprintf(out, " %s", sp_text_interval(i).text);
}

static void print_unknown(FILE *out, const struct sp_rss_pins *p)
{
	fputs("pinned   not known yet", out);
	sp_style_begin(out, SP_STYLE_PLAIN);
	if (isfinite(p->pinned.hi))
		fprintf(out, ": %s at most, which is free in holes",
			sp_text_bytes(p->pinned.hi).text);
	fputs("\n\n", out);
}

static void print_head(FILE *out, const struct sp_rss_pins *p)
{
	sp_style_begin(out, SP_STYLE_HEAD);
	if (!p->can_tell) {
		print_unknown(out, p);
		return;
	}
	fputs("pinned   ", out);
	print_amount(out, p->pinned);
	sp_style_begin(out, SP_STYLE_PLAIN);
	fprintf(out, " free in %s that have a live object\n",
		p->rule == SP_RSS_PINS_BY_ASKING ? "slabs" : "pages");
	if (p->has_trim) {
		fputs("a trim   ", out);
		print_amount(out, p->trim);
		fputs(" in whole pages: malloc_trim(0)\n", out);
	}
	if (p->top_bytes)
		fprintf(out,
			"the top  %s behind the last object: it gives this "
			"back, too\n",
			sp_text_bytes((double)p->top_bytes).text);
	putc('\n', out);
}

/* Below the row of a site. */
#define INDENT 14

static void print_left(FILE *out, const struct sp_rss_pin_site *s)
{
	if (!s->n_left)
		return;
	fprintf(out, "%*sleft by ", INDENT, "");
	for (size_t i = 0; i < s->n_left; i++) {
		fprintf(out, "%s", i ? ", " : "");
		sp_lines_print_name(out, s->left[i].function->name);
		fprintf(out, " %s", sp_text_percent(s->left[i].share, 1).text);
	}
	putc('\n', out);
}

static void print_site(FILE *out, const struct sp_rss_pins *p,
		       const struct sp_rss_pin_site *s)
{
	fprintf(out, "  %30s",
		sp_text_estimate_cell(s->pinned, s->samples).text);
	if (p->has_trim)
		fprintf(out, " %10s", sp_text_bytes(s->trim.value).text);
	fputs("  ", out);
	sp_lines_print_name(out, s->function->name);
	if (p->aggregate->granularity == SP_BY_LINE && s->function->line)
		fprintf(out, ":%" PRIu32, s->function->line);
	if (s->needs_period_bytes)
		fprintf(out, "  (period %s)",
			sp_text_size(s->needs_period_bytes).text);
	putc('\n', out);
	if (s->stack)
		sp_callers_print(out, p->aggregate, s->stack, INDENT,
				 s->stack_share);
	print_left(out, s);
}

static void print_sites(FILE *out, const struct sp_rss_pins *p, uint64_t top)
{
	const size_t shown = top && top < p->n_sites ? (size_t)top : p->n_sites;
	bool needs = false, has_few = false;

	if (!p->n_sites || !p->can_tell)
		return;
	fprintf(out, "  %30s", p->is_exact ? "pinned" : "pinned, with 95 %");
	if (p->has_trim)
		fprintf(out, " %10s", "a trim");
	fprintf(out, "  %s\n", sp_granularity_name(p->aggregate->granularity));
	for (size_t i = 0; i < shown; i++) {
		print_site(out, p, &p->sites[i]);
		needs |= p->sites[i].needs_period_bytes != 0;
		has_few |= !p->is_exact &&
			   (p->sites[i].samples < SP_TEXT_FEW_SAMPLES ||
			    !(p->sites[i].pinned.lo > 0));
	}
	if (shown < p->n_sites)
		fprintf(out, "  and %zu more: --top 0 has all\n",
			p->n_sites - shown);
	putc('\n', out);
	sp_text_print_legend(out, has_few, false, p->confidence);
	if (needs)
		fprintf(out,
			"  (period N): with that, it would be known to within "
			"%.0f %%\n",
			SP_RSS_PINS_ERROR * 100);
}

/* What was looked at, and what was not. */
static void print_counts(FILE *out, const struct sp_rss_pins *p)
{
	sp_style_begin_note(out);
	fprintf(out, "%s live object%s looked at%s; %s lie beside free memory",
		sp_text_count(p->looked).text,
		p->looked == 1 ? " was" : "s were",
		p->is_exact ? ", which are all" : "",
		sp_text_count(p->samples).text);
	if (p->large)
		fprintf(out, "; %s are mapped by themselves",
			sp_text_count(p->large).text);
	if (p->gone)
		fprintf(out, "; %s were freed meanwhile",
			sp_text_count(p->gone).text);
	if (p->torn)
		fprintf(out, "; %s are left out, whose headers did not agree",
			sp_text_count(p->torn).text);
	if (p->odd)
		fprintf(out,
			"; %s are left out, new since the allocator was asked",
			sp_text_count(p->odd).text);
	if (p->unknown)
		fprintf(out, "; the addresses of %s are not known",
			sp_text_count(p->unknown).text);
	fputs("\n", out);
}

static void print_notes(FILE *out, const struct sp_rss_pins *p)
{
	if (!p->can_tell) {
		sp_style_begin_note(out);
		fputs("these are too few samples", out);
		if (p->needs_period_bytes)
			fprintf(out,
				": with a period of %s the error would be %.0f "
				"%%",
				sp_text_size(p->needs_period_bytes).text,
				SP_RSS_PINS_ERROR * 100);
		else
			fputs(": none of them lies beside a hole; `sampleprof "
			      "advise FILE` names a shorter period",
			      out);
		putc('\n', out);
	}
	if (p->fast_objects || p->cached_objects_max) {
		sp_style_begin_note(out);
		fputs("freed objects in malloc's caches look alive, and the "
		      "figures lack what they pin: ",
		      out);
		if (p->fast_objects)
			fprintf(out, "%s object%s of %s in all, and ",
				sp_text_count(p->fast_objects).text,
				sp_text_plural(p->fast_objects),
				sp_text_bytes((double)p->fast_bytes).text);
		fprintf(out, "at most %s in caches of threads\n",
			sp_text_count(p->cached_objects_max).text);
	}
	if (p->cached_bytes) {
		sp_style_begin_note(out);
		fprintf(out,
			"%s of freed objects in the caches of threads "
			"look alive, and the figures lack what they pin\n",
			sp_text_bytes((double)p->cached_bytes).text);
	}
	if (sp_profile_off_bytes(p->profile))
		sp_style_print_note(
			out, "objects that were allocated while sampling was "
			     "off pin memory, too, and are not here");
	else if (sp_profile_info(p->profile, "attached.before_bytes"))
		sp_style_print_note(out, "objects from before the attach pin "
					 "memory, too, and are not here");
}

void sp_rss_pins_print(FILE *out, const struct sp_rss_pins *p, uint64_t top)
{
	const char *why = sp_rss_pins_why_not(p);

	if (why) {
		sp_style_print_note(out, why);
		return;
	}
	print_head(out, p);
	print_sites(out, p, top);
	print_counts(out, p);
	print_notes(out, p);
}

/* ---- for programs ---- */

static void write_trim(struct sp_json *json, const struct sp_rss_pins *p,
		       struct sp_interval trim)
{
	if (p->has_trim)
		sp_json_interval(json, "trim_bytes", trim);
	else
		sp_json_null(json, "trim_bytes");
}

static void write_site(struct sp_json *json, const struct sp_rss_pins *p,
		       const struct sp_rss_pin_site *s)
{
	sp_json_open(json, NULL, '{');
	sp_json_string(json, "function", s->function->name);
	sp_json_string(json, "module", s->function->module);
	sp_json_string(json, "file", s->function->file);
	sp_json_u64(json, "line", s->function->line);
	sp_json_u64(json, "samples", s->samples);
	sp_json_interval(json, "pinned_bytes", s->pinned);
	write_trim(json, p, s->trim);
	sp_json_u64_if(json, "needs_period_bytes", s->needs_period_bytes != 0,
		       s->needs_period_bytes);
	sp_function_json_path(json, p->aggregate, s->stack, s->stack_share);
	sp_json_open(json, "left_by", '[');
	for (size_t i = 0; i < s->n_left; i++) {
		sp_json_open_flat(json, NULL, '{');
		sp_json_string(json, "function", s->left[i].function->name);
		sp_json_double(json, "share", s->left[i].share);
		sp_json_close(json, '}');
	}
	sp_json_close(json, ']');
	sp_json_close(json, '}');
}

static void write_known(struct sp_json *json, const struct sp_rss_pins *p)
{
	sp_json_string(json, "rule", rules[p->rule]);
	sp_json_bool(json, "is_exact", p->is_exact);
	sp_json_bool(json, "can_tell", p->can_tell);
	sp_json_double(json, "confidence", p->confidence);
	sp_json_interval(json, "pinned_bytes", p->pinned);
	write_trim(json, p, p->trim);
	sp_json_u64(json, "top_bytes", p->top_bytes);
	sp_json_u64_if(json, "needs_period_bytes", p->needs_period_bytes != 0,
		       p->needs_period_bytes);
	sp_json_u64(json, "samples", p->samples);
	sp_json_u64(json, "looked_at", p->looked);
	sp_json_u64(json, "freed_meanwhile", p->gone);
	sp_json_u64(json, "torn", p->torn);
	sp_json_u64(json, "mapped_by_themselves", p->large);
	sp_json_u64(json, "in_no_slab", p->odd);
	sp_json_u64(json, "without_address", p->unknown);
	sp_json_bool(json, "is_held_against_total", p->is_held);
	sp_json_u64_if(json, "free_in_holes_bytes", p->free_bytes != 0,
		       p->free_bytes);
	sp_json_u64(json, "fast_bytes", p->fast_bytes);
	sp_json_u64(json, "fast_objects", p->fast_objects);
	sp_json_u64(json, "cached_objects_max", p->cached_objects_max);
	sp_json_u64(json, "cached_bytes", p->cached_bytes);
	sp_json_open(json, "sites", '[');
	for (size_t i = 0; i < p->n_sites; i++)
		write_site(json, p, &p->sites[i]);
	sp_json_close(json, ']');
}

void sp_rss_pins_write_json(struct sp_json *json, const struct sp_rss_pins *p)
{
	sp_json_string(json, "state", names[p->state]);
	if (p->state == SP_RSS_PINS_KNOWN)
		write_known(json, p);
	else
		sp_json_string(json, "why_not", sp_rss_pins_why_not(p));
}
