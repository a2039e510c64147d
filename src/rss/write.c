/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/brought.h"
#include "export/html_ledgers.h"
#include "report/ledgers.h"
#include "rss/ledger.h"
#include "text/lack.h"
#include "text/json.h"
#include "text/lines.h"
#include "text/style.h"
#include "text/text.h"

static const struct {
	const char *name;
	const char *label;
	const char *words; /* in the sentence on top */
} rows[SP_RSS_ROWS] = {
	[SP_RSS_ROW_ALIVE] = {"heap_alive", "heap: alive, as requested",
			      "alive"},
	[SP_RSS_ROW_KEPT] = {"heap_kept", "heap: free, kept by the allocator",
			     "free but kept"},
	[SP_RSS_ROW_ROUNDING] = {"heap_rounding",
				 "heap: rounding, headers of objects",
				 "rounding"},
	[SP_RSS_ROW_REST] = {"heap_rest", "heap: rounding, headers, caches",
			     "in the rest of the heap"},
	[SP_RSS_ROW_BEFORE] = {"heap_before",
			       "heap: alive, before the recording",
			       "alive from before"},
	[SP_RSS_ROW_HEAP] = {"heap", "heap", "heap"},
	[SP_RSS_ROW_ANONYMOUS] = {"anonymous", "other anonymous memory",
				  "other anonymous"},
	[SP_RSS_ROW_HUGE] = {"huge_zero", "huge pages, what is zero in them",
			     "zero in huge pages"},
	[SP_RSS_ROW_THREADS] = {"thread_stacks", "stacks of threads",
				"thread stacks"},
	[SP_RSS_ROW_STACK] = {"main_stack", "stack of the main thread",
			      "stack"},
	[SP_RSS_ROW_CODE] = {"code", "program and libraries, code", "code"},
	[SP_RSS_ROW_DATA] = {"data", "program and libraries, variables",
			     "variables"},
	[SP_RSS_ROW_FILES] = {"files", "mapped files", "mapped files"},
	[SP_RSS_ROW_SHARED] = {"shared", "shared memory", "shared"},
	[SP_RSS_ROW_PROFILE] = {"profile", "the profile, and its library",
				"the profile"},
};

const char *sp_rss_row_name(enum sp_rss_row_name row)
{
	return rows[row].name;
}

const char *sp_rss_allocator_name(uint64_t allocator)
{
	static const char *const names[] = {
		[SP_ALLOCATOR_UNKNOWN] = NULL,
		[SP_ALLOCATOR_GLIBC] = "glibc",
		[SP_ALLOCATOR_JEMALLOC] = "jemalloc",
		[SP_ALLOCATOR_TCMALLOC] = "tcmalloc",
	};
	return allocator < sizeof(names) / sizeof(*names) ? names[allocator]
							  : NULL;
}

static bool is_estimate(const struct sp_rss_row *row)
{
	return row->bytes.lo < row->bytes.hi;
}

/* ---- for people ---- */

struct order {
	enum sp_rss_row_name row[SP_RSS_ROWS];
	size_t n;
};

/* Those of the heap first, then the others, each by size. */
static int is_behind(const struct sp_rss_ledger *l, enum sp_rss_row_name a,
		     enum sp_rss_row_name b)
{
	const bool heap_a = a <= SP_RSS_ROW_HEAP, heap_b = b <= SP_RSS_ROW_HEAP;

	if (heap_a != heap_b)
		return heap_b;
	return l->rows[a].bytes.value < l->rows[b].bytes.value;
}

static struct order order_rows(const struct sp_rss_ledger *l)
{
	struct order o = {.n = 0};

	for (enum sp_rss_row_name i = 0; i < SP_RSS_ROWS; i++) {
		size_t k = o.n;

		if (!l->rows[i].is_there)
			continue;
		while (k && is_behind(l, o.row[k - 1], i)) {
			o.row[k] = o.row[k - 1];
			k--;
		}
		o.row[k] = i;
		o.n++;
	}
	return o;
}

static const char *words_of(const struct sp_rss_ledger *l,
			    enum sp_rss_row_name row)
{
	if (row == SP_RSS_ROW_REST && !l->rows[SP_RSS_ROW_KEPT].is_there)
		return l->before ? "from before, free or rounding"
				 : "free or rounding";
	return row == SP_RSS_ROW_BEFORE && l->before == SP_UNSEEN_OFF
		       ? "alive, unsampled"
		       : rows[row].words;
}

static bool is_pinned(const struct sp_rss_ledger *l)
{
	return l->pins && l->pins->state == SP_RSS_PINS_KNOWN &&
	       l->pins->can_tell;
}

#define SENTENCE_COLUMNS 66 /* and what is left */

/* What is alive and what is kept, then what is large, as long as there is room.
 * The rest is one amount. */
static void print_sentence(FILE *out, const struct sp_rss_ledger *l,
			   const struct order *order)
{
	static const enum sp_rss_row_name first[] = {
		SP_RSS_ROW_ALIVE, SP_RSS_ROW_BEFORE, SP_RSS_ROW_KEPT};
	const size_t n_first = sizeof(first) / sizeof(*first);
	double left = (double)l->rss;
	int columns;

	sp_style_begin(out, SP_STYLE_HEAD);
	columns = fprintf(out, "RSS %s:", sp_text_bytes(left).text);
	for (size_t i = 0; i < n_first + order->n; i++) {
		const bool is_first = i < n_first;
		const enum sp_rss_row_name row =
			is_first ? first[i] : order->row[i - n_first];
		const double bytes = l->rows[row].bytes.value;

		if (!l->rows[row].is_there ||
		    (!is_first &&
		     (row == first[0] || row == first[1] || row == first[2] ||
		      bytes < 0.05 * (double)l->rss)) ||
		    columns + 13 + (int)strlen(words_of(l, row)) >
			    SENTENCE_COLUMNS)
			continue;
		columns += fprintf(out, " %s %s,", sp_text_bytes(bytes).text,
				   words_of(l, row));
		left -= bytes;
		if (row == SP_RSS_ROW_KEPT && is_pinned(l))
			columns = fprintf(
				out, "\nof which %s is pinned by site,",
				sp_text_bytes(l->pins->pinned.value).text);
	}
	fprintf(out, " %s else\n", sp_text_bytes(left > 0 ? left : 0).text);
	sp_style_begin(out, SP_STYLE_PLAIN);
}

struct label {
	char text[SP_LEDGER_TEXT_MAX];
};

/* What is not in a row of its own is in this one. */
static const char *rest_label(const struct sp_rss_ledger *l)
{
	const bool has_rounding = l->rows[SP_RSS_ROW_ROUNDING].is_there;

	/* without the allocator's count nobody knows how much that is */
	if (l->before && !l->rows[SP_RSS_ROW_KEPT].is_there)
		return "alive from before, free, caches";
	if (!l->rows[SP_RSS_ROW_KEPT].is_there)
		return has_rounding ? "free, caches, tables"
				    : "free, rounding, headers";
	return has_rounding ? "caches, tables, unused"
			    : "rounding, headers, caches";
}

static struct label label_of(const struct sp_rss_ledger *l,
			     enum sp_rss_row_name row)
{
	const char *allocator = sp_rss_allocator_name(l->memory.allocator);
	struct label label = {""};
	char *to = label.text;

	if (row == SP_RSS_ROW_KEPT && allocator)
		snprintf(to, sizeof(label), "heap: free, kept by %s",
			 allocator);
	else if (row == SP_RSS_ROW_REST)
		snprintf(to, sizeof(label), "heap: %s", rest_label(l));
	else if (row == SP_RSS_ROW_BEFORE && l->before == SP_UNSEEN_OFF)
		snprintf(to, sizeof(label),
			 "heap: alive, while sampling was off");
	else if (row == SP_RSS_ROW_THREADS && l->stacks)
		snprintf(to, sizeof(label), "stacks of %.26s thread%s",
			 sp_text_count(l->stacks).text,
			 sp_text_plural(l->stacks));
	else if (row == SP_RSS_ROW_ANONYMOUS && !l->has_objects &&
		 l->has_other_malloc)
		snprintf(to, sizeof(label), "anonymous memory, heap or not");
	else
		snprintf(to, sizeof(label), "%s", rows[row].label);
	return label;
}

#define LABEL_COLUMNS 36

static void print_row(FILE *out, const struct sp_rss_ledger *l,
		      enum sp_rss_row_name row)
{
	const struct sp_rss_row *r = &l->rows[row];
	int n;

	fprintf(out, "  %10s  %6s  ", sp_text_bytes(r->bytes.value).text,
		sp_text_percent(r->bytes.value, (double)l->rss).text);
	n = fprintf(out, "%s", label_of(l, row).text);
	if (is_estimate(r))
		fprintf(out, "%*s%s", n < LABEL_COLUMNS ? LABEL_COLUMNS - n : 1,
			"", sp_text_interval(r->bytes).text);
	putc('\n', out);
}

static void print_outside(FILE *out, const struct sp_rss_ledger *l)
{
	if (l->untouched.value >= 4096)
		fprintf(out,
			"besides: %s%s%s alive, never touched or swapped "
			"out\n",
			sp_text_bytes(l->untouched.value).text,
			l->untouched.lo < l->untouched.hi ? " " : "",
			l->untouched.lo < l->untouched.hi
				? sp_text_interval(l->untouched).text
				: "");
	if (l->swap) {
		fprintf(out, "besides: %s are swapped out:",
			sp_text_bytes((double)l->swap).text);
		for (enum sp_rss_row_name i = 0; i < SP_RSS_ROWS; i++)
			if (l->rows[i].swap)
				fprintf(out, " %s %s", rows[i].words,
					sp_text_bytes((double)l->rows[i].swap)
						.text);
		putc('\n', out);
	}
	if (l->hugetlb)
		fprintf(out,
			"besides: %s in huge pages of hugetlbfs, which the "
			"kernel does not count\n",
			sp_text_bytes((double)l->hugetlb).text);
}

/* The process did not answer. */
static void note_silence(FILE *out, const struct sp_rss_ledger *l)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "the process did not say within %s what its allocator keeps: "
		 "a thread answers when it allocates; try again while it "
		 "works, or with --timeout 1m",
		 sp_text_duration(l->waited_ns).text);
	sp_style_print_note(out, text);
}

static void note_unseen(FILE *out, const struct sp_rss_ledger *l)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "%s, so sampleprof does not see what it allocates: that is in "
		 "the heap, in anonymous memory, or in variables",
		 l->why_unseen);
	sp_style_print_note(out, text);
}

static void note_brought(FILE *out, const struct sp_rss_ledger *l)
{
	char text[sizeof(l->brought) + 200];

	snprintf(text, sizeof(text),
		 "this program brings its own allocator "
		 "(%s), " SP_BROUGHT_ADVICE,
		 l->brought);
	sp_style_print_note(out, text);
}

static const char *const before_notes[] = {
	[SP_UNSEEN_FORK] =
		"the row \"heap: alive, as requested\" lacks what the parent "
		"allocated before the fork: the parent's profile has its "
		"functions (--view live)",
	[SP_UNSEEN_ATTACH] =
		"the row \"heap: alive, as requested\" lacks objects from "
		"before the attach: nobody knows their functions; start the "
		"program with `sampleprof run` for these",
	[SP_UNSEEN_OFF] =
		"the row \"heap: alive, as requested\" lacks objects that were "
		"allocated while sampling was off: nobody knows their "
		"functions",
};

/* Why the heap is not known better, and what to do. */
static void print_heap_notes(FILE *out, const struct sp_rss_ledger *l)
{
	if (*l->brought)
		note_brought(out, l);
	if (l->why_unseen)
		note_unseen(out, l);
	else if (!l->has_profile)
		sp_style_print_note(
			out, "there is no profile: with one (`sampleprof run`, "
			     "or `sampleprof attach`) the heap is split into "
			     "what is alive and what the allocator keeps");
	else if (!l->has_objects)
		sp_style_print_note(
			out,
			"frees are not recorded (SAMPLEPROF_FREES=off): what "
			"is alive is not known");
	else if (l->why == SP_LEDGER_END && !l->was_asked)
		sp_style_print_note(
			out,
			"it left by _exit, quick_exit or in a signal "
			"handler, where its allocator cannot be asked what "
			"it keeps");
	else if (l->is_stopped)
		sp_style_print_note(
			out,
			"the process is stopped, so its allocator cannot be "
			"asked what it keeps");
	else if (!l->was_asked)
		note_silence(out, l);
	else if (!l->memory.allocator)
		sp_style_print_note(
			out,
			"this allocator does not say what it keeps: that is "
			"in the last row of the heap, or in other "
			"anonymous memory");
	if (l->has_objects && l->before)
		sp_style_print_note(out, before_notes[l->before]);
}

static void print_notes(FILE *out, const struct sp_rss_ledger *l)
{
	print_heap_notes(out, l);
	if (l->is_unreadable)
		sp_style_print_note(out,
				    "its memory may not be read (run as root): "
				    "stacks of threads and large objects are "
				    "in other anonymous memory");
	else if (l->is_32_bit)
		sp_style_print_note(
			out,
			"it is a 32-bit process: stacks of threads and large "
			"objects are in other anonymous memory");
}

static void print_when(FILE *out, const struct sp_rss_ledger *l)
{
	static const char *const words[] = {
		[SP_LEDGER_NOW] = "",
		[SP_LEDGER_SNAPSHOT] = ", at snapshot ",
		[SP_LEDGER_PEAK] = ", near its peak",
		[SP_LEDGER_END] = ", as it ended",
	};

	fputs(words[l->why], out);
	if (l->why == SP_LEDGER_SNAPSHOT)
		sp_text_print(out, l->mark);
	if (l->why != SP_LEDGER_NOW)
		fprintf(out, ", at %s", sp_text_moment(l->time_ns).text);
	fputs("\n\n", out);
}

static void print_page(FILE *out, const struct sp_rss_ledger *l)
{
	const struct order order = order_rows(l);

	print_sentence(out, l, &order);
	fprintf(out, "process %" PRIu64 ", ", l->pid);
	sp_text_print(out, l->name);
	fprintf(out, ", %s thread%s", sp_text_count(l->threads).text,
		sp_text_plural(l->threads));
	print_when(out, l);
	for (size_t i = 0; i < order.n; i++)
		print_row(out, l, order.row[i]);
	fprintf(out, "  %10s  %6s  resident, as the kernel counts it\n\n",
		sp_text_bytes((double)l->rss).text, "100%");
	print_outside(out, l);
	print_notes(out, l);
	if (l->has_objects)
		fprintf(out,
			"[ ]: interval of %s; the kernel and the allocator "
			"count the others\n",
			sp_text_level(l->confidence).text);
}

void sp_rss_print(FILE *out, const struct sp_rss_ledger *l)
{
	char *text = NULL;
	size_t size;
	FILE *page = open_memstream(&text, &size);

	if (!page)
		return;
	print_page(page, l);
	if (l->pins) {
		putc('\n', page);
		sp_rss_pins_print(page, l->pins, l->pins_top);
	}
	sp_lines_close(out, page, &text);
}

/* ---- for programs ---- */

static void write_row(struct sp_json *json, const struct sp_rss_ledger *l,
		      enum sp_rss_row_name name)
{
	const struct sp_rss_row *row = &l->rows[name];

	sp_json_open_flat(json, NULL, '{');
	sp_json_string(json, "name", rows[name].name);
	sp_json_string(json, "label", label_of(l, name).text);
	sp_json_u64(json, "bytes", sp_text_to_count(row->bytes.value));
	if (is_estimate(row)) {
		sp_json_u64(json, "lo", sp_text_to_count(row->bytes.lo));
		sp_json_u64(json, "hi", sp_text_to_count(row->bytes.hi));
	}
	sp_json_u64(json, "swap_bytes", row->swap);
	sp_json_close(json, '}');
}

static void write_allocator(struct sp_json *json, const struct sp_rss_ledger *l)
{
	if (!l->was_asked) {
		sp_json_null(json, "allocator");
		return;
	}
	sp_json_open(json, "allocator", '{');
	sp_json_string(json, "name",
		       sp_rss_allocator_name(l->memory.allocator));
	sp_json_u64(json, "alive_bytes", l->memory.alive_bytes);
	sp_json_u64(json, "free_bytes", l->memory.free_bytes);
	sp_json_u64(json, "system_bytes", l->memory.system_bytes);
	sp_json_u64(json, "large_bytes", l->memory.large_bytes);
	sp_json_close(json, '}');
}

void sp_rss_print_json(FILE *out, const struct sp_rss_ledger *l,
		       const char *absent, double left_out)
{
	struct sp_json json = sp_json_begin(out);

	sp_json_string(&json, "why", sp_ledger_why_name(l->why));
	if (l->why != SP_LEDGER_NOW)
		sp_json_time(&json, "time_ns", l->time_ns);
	if (l->why == SP_LEDGER_SNAPSHOT)
		sp_json_string(&json, "mark", l->mark);
	sp_json_u64(&json, "pid", l->pid);
	sp_json_string(&json, "name", l->name);
	sp_json_u64(&json, "rss_bytes", l->rss);
	sp_json_u64(&json, "vm_rss_bytes", l->vm_rss);
	sp_json_u64(&json, "swap_bytes", l->swap);
	sp_json_u64(&json, "hugetlb_bytes", l->hugetlb);
	sp_json_u64(&json, "threads", l->threads);
	sp_json_u64(&json, "thread_stacks", l->stacks);
	sp_json_bool(&json, "has_profile", l->has_profile);
	sp_json_string(&json, "why_unseen", l->why_unseen);
	sp_json_bool(&json, "is_readable", !l->is_unreadable);
	sp_json_bool(&json, "is_32_bit", l->is_32_bit);
	sp_json_bool(&json, "has_other_malloc", l->has_other_malloc);
	sp_json_u64(&json, "unsampled_bytes", l->unsampled_bytes);
	sp_json_u64(&json, "before_bytes", l->before_bytes);
	sp_json_string(&json, "before", sp_lack_unseen_name(l->before));
	sp_json_double(&json, "confidence", l->confidence);
	sp_json_open(&json, "rows", '[');
	for (enum sp_rss_row_name i = 0; i < SP_RSS_ROWS; i++)
		if (l->rows[i].is_there)
			write_row(&json, l, i);
	sp_json_close(&json, ']');
	if (l->has_objects)
		sp_json_interval(&json, "alive_untouched_bytes", l->untouched);
	else
		sp_json_null(&json, "alive_untouched_bytes");
	write_allocator(&json, l);
	if (l->pins) {
		sp_json_open(&json, "pins", '{');
		sp_rss_pins_write_json(&json, l->pins);
		sp_json_close(&json, '}');
	}
	if (absent) {
		sp_json_open(&json, "absent", '{');
		sp_json_string(&json, "samples", absent);
		sp_json_u64(&json, "left_out_bytes",
			    sp_text_to_count(left_out));
		sp_json_close(&json, '}');
	}
	sp_json_end(&json);
}

void sp_rss_print_html(FILE *out, const struct sp_rss_ledger *l)
{
	struct sp_ledger ledger = {.time_ns = l->time_ns};
	const struct sp_ledgers one = {&ledger, 1};
	char *text = NULL;
	size_t size;
	FILE *json = open_memstream(&text, &size);

	if (!json)
		return;
	sp_rss_print_json(json, l, NULL, 0);
	fclose(json);
	if (text && sp_ledger_read(text, &ledger))
		sp_html_ledgers_page(out, l->name, l->pid, &one);
	free(text);
}
