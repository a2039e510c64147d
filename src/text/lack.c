/* SPDX-License-Identifier: MIT */
#include "text/lack.h"

#include <string.h>

/* ---- the end ---- */

static struct sp_text_cell end_of_killed(uint64_t end_kind)
{
	struct sp_text_cell cell = {"was killed or left without exit()"};

	if (end_kind == SP_END_NO_MEMORY)
		snprintf(cell.text, sizeof(cell.text),
			 "was killed by the kernel's OOM killer");
	else if (end_kind == SP_END_EXIT)
		snprintf(cell.text, sizeof(cell.text), "ended by _exit()");
	else if (end_kind > SP_END_SIGNAL && end_kind <= SP_END_SIGNAL + 64)
		snprintf(cell.text, sizeof(cell.text),
			 "was killed by signal %u",
			 (unsigned int)(end_kind - SP_END_SIGNAL));
	return cell;
}

struct sp_text_cell sp_lack_end(enum sp_profile_end end, uint64_t end_kind)
{
	switch (end) {
	case SP_PROFILE_END_CLEAN:
		return (struct sp_text_cell){"ended cleanly"};
	case SP_PROFILE_END_KILLED:
		return end_of_killed(end_kind);
	case SP_PROFILE_END_EXEC:
		return (struct sp_text_cell){
			"ended as it executed another program"};
	case SP_PROFILE_END_RUNNING:
		return (struct sp_text_cell){"still running"};
	case SP_PROFILE_END_DETACHED:
		return (struct sp_text_cell){"went on after it was detached"};
	}
	return (struct sp_text_cell){""};
}

/* Of a process whose file is cut: not what only its last record tells. */
static struct sp_text_cell end_of_cut(const struct sp_profile *p)
{
	switch (p->end) {
	case SP_PROFILE_END_CLEAN:
		return (struct sp_text_cell){"ended by exit()"};
	case SP_PROFILE_END_RUNNING:
		return (struct sp_text_cell){"is still running"};
	case SP_PROFILE_END_KILLED:
		if (!p->end_kind)
			break;
		/* fallthrough */
	case SP_PROFILE_END_EXEC:
	case SP_PROFILE_END_DETACHED:
		return sp_lack_end(p->end, p->end_kind);
	}
	return (struct sp_text_cell){""};
}

struct sp_lack_line sp_lack_end_of(const struct sp_profile *p)
{
	struct sp_lack_line line;
	struct sp_text_cell end;
	size_t n_cut = 0;

	if (!p->is_cut && p->end == SP_PROFILE_END_KILLED && !p->end_kind &&
	    p->losses[SP_LOSS_PAGE])
		return (struct sp_lack_line){
			"how it ended is not known: its disk was nearly full"};
	if (!p->is_cut) {
		snprintf(line.text, sizeof(line.text), "%s",
			 sp_lack_end(p->end, p->end_kind).text);
		return line;
	}
	end = end_of_cut(p);
	for (size_t i = 0; p->n_parts > 1 && i < p->n_parts; i++)
		n_cut += p->parts[i].is_cut;
	if (n_cut)
		snprintf(line.text, sizeof(line.text),
			 "%.80s%s%.20s of %.20s files %s cut short", end.text,
			 *end.text ? "; " : "", sp_text_count(n_cut).text,
			 sp_text_count(p->n_parts).text,
			 n_cut == 1 ? "is" : "are");
	else
		snprintf(line.text, sizeof(line.text),
			 "the file is cut short%s%s",
			 *end.text ? "; the process " : "", end.text);
	return line;
}

const char *sp_lack_end_name(enum sp_profile_end end, bool is_cut)
{
	switch (end) {
	case SP_PROFILE_END_CLEAN:
		return is_cut ? "cut" : "clean";
	case SP_PROFILE_END_KILLED:
		return "killed";
	case SP_PROFILE_END_EXEC:
		return "exec";
	case SP_PROFILE_END_RUNNING:
		return "running";
	case SP_PROFILE_END_DETACHED:
		return "detached";
	}
	return NULL;
}

struct sp_text_cell sp_lack_word(enum sp_profile_end end, uint64_t end_kind,
				 bool is_cut)
{
	struct sp_text_cell word = {"killed?"};

	if (is_cut)
		return (struct sp_text_cell){"cut"};
	if (end != SP_PROFILE_END_KILLED)
		snprintf(word.text, sizeof(word.text), "%s",
			 sp_lack_end_name(end, false));
	else if (end_kind == SP_END_NO_MEMORY)
		strcpy(word.text, "oom");
	else if (end_kind == SP_END_EXIT)
		strcpy(word.text, "_exit");
	else if (end_kind > SP_END_SIGNAL && end_kind <= SP_END_SIGNAL + 64)
		snprintf(word.text, sizeof(word.text), "sig%u",
			 (unsigned int)(end_kind - SP_END_SIGNAL));
	return word;
}

/* ---- what is missing ---- */

const char *sp_lack_why(const struct sp_whole *w)
{
	if (w->is_cut)
		return "the file is cut short";
	if (w->is_damaged)
		return "the file is damaged";
	if (w->is_full)
		return w->is_low ? "its disk was nearly full"
				 : "the file or its disk was full";
	if (w->is_starved)
		return w->lacks_frees ? "samples and frees were lost"
				      : "samples were lost";
	return w->lacks_frees ? "frees were lost" : NULL;
}

/* No reason of one is said of another. */
static const char *why_of_several(const struct sp_whole *w)
{
	if (w->n_cut == 1 && w->n_lacking == 1)
		return "its file is cut short";
	if (w->n_lacking == 1)
		return sp_lack_why(w);
	if (w->n_cut == w->n_lacking)
		return "the files are cut short";
	return w->n_cut ? "files are cut short or damaged, were full, or lost "
			  "frees"
			: "files are damaged, were full, or lost frees";
}

void sp_lack_print(FILE *out, const struct sp_whole *w)
{
	if (w->n_parts > 1 && w->n_lacking) {
		fprintf(out, "%s of %s processes %s not known to the end (%s)",
			sp_text_count(w->n_lacking).text,
			sp_text_count(w->n_parts).text,
			w->n_lacking == 1 ? "is" : "are", why_of_several(w));
		if (w->has_rest)
			fputs(": live bytes are at least those of the others",
			      out);
		return;
	}
	fputs(sp_lack_why(w), out);
	if (w->known_ns == SP_NEVER)
		fputs(": figures are lower limits", out);
	else if (!w->known_ns)
		fputs(": what was alive is not known", out);
	else
		fprintf(out, ": what was alive is known until %s",
			sp_text_moment(w->known_ns).text);
}

void sp_lack_json(struct sp_json *json, const struct sp_whole *w)
{
	sp_json_open_flat(json, "whole", '{');
	sp_json_bool(json, "is_whole", sp_whole_is_all(w));
	sp_json_string(json, "why_not", sp_lack_why(w));
	sp_json_bool(json, "cut", w->is_cut);
	sp_json_bool(json, "damaged", w->is_damaged);
	sp_json_bool(json, "full", w->is_full);
	sp_json_bool(json, "lost_samples", w->is_starved);
	sp_json_bool(json, "lost_frees", w->lacks_frees);
	sp_json_bool(json, "discarded", w->is_turned);
	sp_json_time(json, "live_known_until_ns", w->known_ns);
	sp_json_u64(json, "processes", w->n_parts);
	sp_json_u64(json, "processes_lacking", w->n_lacking);
	sp_json_close(json, '}');
}

/* ---- when what is alive was ---- */

static const char *when_of_end(const struct sp_profile *p, bool has_rest)
{
	if (p->end == SP_PROFILE_END_DETACHED && p->n_parts == 1)
		return "when it was detached";
	if (p->end == SP_PROFILE_END_RUNNING && p->n_parts == 1)
		return "now";
	if (has_rest)
		return "at the end of each process whose end is known";
	return p->n_parts > 1 ? "at the end of each process" : "at the end";
}

struct sp_text_cell sp_lack_when(const struct sp_profile *p, uint64_t at_ns)
{
	const struct sp_whole w = sp_whole_of(p);
	struct sp_text_cell cell;

	if (at_ns != SP_NEVER)
		snprintf(cell.text, sizeof(cell.text), "at %.60s",
			 sp_text_moment(at_ns).text);
	else if (!w.known_ns && !w.has_rest)
		strcpy(cell.text, "as far as the file tells");
	else if (w.known_ns != SP_NEVER && !w.has_rest)
		snprintf(cell.text, sizeof(cell.text),
			 "at %.50s, after which it is not known",
			 sp_text_moment(w.known_ns).text);
	else
		strcpy(cell.text, when_of_end(p, w.has_rest));
	return cell;
}

/* ---- what was not seen ---- */

const char *sp_lack_unseen(enum sp_unseen unseen)
{
	static const char *const texts[] = {
		[SP_UNSEEN_FORK] =
			"what its parent had allocated before the fork",
		[SP_UNSEEN_ATTACH] = "what was alive before the attach",
		[SP_UNSEEN_OFF] = "what was allocated while sampling was off",
	};

	return texts[unseen];
}

const char *sp_lack_unseen_name(enum sp_unseen unseen)
{
	static const char *const names[] = {
		[SP_UNSEEN_FORK] = "fork",
		[SP_UNSEEN_ATTACH] = "attach",
		[SP_UNSEEN_OFF] = "off",
	};

	return names[unseen];
}
