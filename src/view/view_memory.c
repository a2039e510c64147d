/* SPDX-License-Identifier: MIT */
#include "view/view_memory.h"

#include "base/parse.h"
#include "text/lack.h"
#include "text/text.h"

/* Answers the most common question: why top and ps have another figure.  There
 * is nothing to compare with where the live bytes are not known. */
void sp_view_memory_print_rss(FILE *out, const struct sp_analysis *a)
{
	const enum sp_view view = a->selection.view;
	const struct sp_profile *p = a->profile;
	const char *unseen = sp_lack_unseen(sp_profile_unseen(p));
	const struct sp_class_sums *sums =
		view == SP_VIEW_LIVE && a->live ? &a->live->all : a->whole;

	if (!p->n_rss || p->samples_of != SP_SAMPLES_ALLOCATED ||
	    (view != SP_VIEW_LIVE && view != SP_VIEW_PEAK))
		return;
	fprintf(out, "  RSS       %s at its peak, %s last",
		sp_text_bytes((double)sp_analysis_peak_rss(p)).text,
		sp_text_bytes((double)p->rss[p->n_rss - 1].rss_bytes).text);
	if (!sums->is_unknown)
		fprintf(out,
			": what it has beyond live bytes is %s%sallocator "
			"overhead, freed memory that the allocator keeps, "
			"stacks, code, mapped files",
			unseen ? unseen : "", unseen ? ", " : "");
	putc('\n', out);
}

/* Beyond it malloc returns NULL, which few programs survive. */
static void print_address_space(FILE *out, const struct sp_profile *p)
{
	const char *text = sp_profile_info(p, "limit.address_space");
	uint64_t bytes;

	if (text && sp_parse_u64(text, &bytes) && p->n_parts == 1 &&
	    (p->end == SP_PROFILE_END_KILLED ||
	     p->end == SP_PROFILE_END_RUNNING))
		fprintf(out,
			"  limit     %s of address space (RLIMIT_AS), beyond "
			"which malloc returns NULL\n",
			sp_text_bytes((double)bytes).text);
}

/* Of a process that is there, or was killed. */
void sp_view_memory_print_limit(FILE *out, const struct sp_profile *p)
{
	const uint64_t limit = sp_profile_memory_limit(p);
	const struct sp_rss *last = p->n_rss ? &p->rss[p->n_rss - 1] : NULL;

	print_address_space(out, p);
	if (limit == SP_NEVER || p->n_parts != 1 ||
	    (p->end != SP_PROFILE_END_KILLED &&
	     p->end != SP_PROFILE_END_RUNNING))
		return;
	fprintf(out, "  limit     %s of memory in its control group",
		sp_text_bytes((double)limit).text);
	if (last)
		fprintf(out, "; RSS at %s: %s, %.1f %% of it",
			sp_text_moment(last->time_ns).text,
			sp_text_bytes((double)last->rss_bytes).text,
			100 * (double)last->rss_bytes / (double)limit);
	fputs(!p->end_kind && sp_profile_is_killed_for_memory(p)
		      ? ": probably killed for memory\n"
		      : "\n",
	      out);
}

void sp_view_memory_print_mapped(FILE *out, const struct sp_analysis *a)
{
	const struct sp_mapped *m = &a->profile->mapped;

	if (a->profile->samples_of != SP_SAMPLES_ALLOCATED || !a->live ||
	    (double)m->bytes <=
		    0.1 * sp_estimate_bytes_value(&a->how, &a->live->all))
		return;
	fprintf(out, "  mapped    %s by the program itself%s: --view mapped\n",
		sp_text_bytes((double)m->bytes).text,
		a->profile->end == SP_PROFILE_END_RUNNING ? " now"
							  : " at the end");
}
