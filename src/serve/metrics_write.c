/* SPDX-License-Identifier: MIT */
/* The figures as text (metrics.h). */
#include <math.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "serve/entry.h"
#include "serve/metrics.h"
#include "text/figures.h"

static bool is_shown(const struct sp_metrics *m,
		     const struct sp_metrics_entry *p)
{
	return p->labels && (p->is_running ||
			     p->stop_unix_ns + m->keep_ns >= m->now_unix_ns);
}

#define AT(member) offsetof(struct sp_metrics_entry, member)
#define ALWAYS     SIZE_MAX

static const struct {
	const char *name, *type, *unit, *help;
	enum { FLAG, NUMBER } kind;
	size_t at;  /* of the bool or uint64_t in the entry */
	size_t has; /* of the bool that says whether it is known, or ALWAYS */
} families[] = {
	{"running", "gauge", "", "1 while the process runs", FLAG,
	 AT(is_running), ALWAYS},
	{"allocated_bytes", "counter", "bytes", "Bytes allocated, counted",
	 NUMBER, AT(alloc_bytes), ALWAYS},
	{"allocated_objects", "counter", "", "Objects allocated, counted",
	 NUMBER, AT(alloc_objects), ALWAYS},
	{"resident_bytes", "gauge", "bytes",
	 "Resident memory as it was last recorded", NUMBER, AT(rss_bytes),
	 AT(has_rss)},
	{"whole", "gauge", "",
	 "1 if the profile has all that was recorded; else upper limits are "
	 "missing, and what is alive may be",
	 FLAG, AT(is_whole), AT(has_figures)},
	{"unseen", "gauge", "",
	 "1 if live objects may be in no sample, since they were allocated "
	 "before a fork or an attach, or while sampling was off",
	 FLAG, AT(has_unseen), AT(has_figures)},
};

static const struct {
	const char *name, *unit, *help;
	size_t at; /* of the struct sp_interval in the entry */
} estimates[] = {
	{"live_bytes", "bytes", "Bytes alive, estimated", AT(live_bytes)},
	{"live_objects", "", "Objects alive, estimated", AT(live_objects)},
	{"peak_bytes", "bytes", "Most bytes alive at a time, estimated",
	 AT(peak_bytes)},
};

static bool flag_at(const struct sp_metrics_entry *p, size_t at)
{
	return *(const bool *)((const char *)p + at);
}

static bool value_of(size_t family, const struct sp_metrics_entry *p,
		     uint64_t *ret)
{
	if (families[family].kind == FLAG)
		*ret = flag_at(p, families[family].at);
	else
		memcpy(ret, (const char *)p + families[family].at,
		       sizeof(*ret));
	return families[family].has == ALWAYS ||
	       flag_at(p, families[family].has);
}

static const struct {
	const char *suffix, *what;
	size_t at; /* of the double in struct sp_interval */
} bounds[] = {
	{"", "", offsetof(struct sp_interval, value)},
	{"_lo", ": the lower limit at 95 %", offsetof(struct sp_interval, lo)},
	{"_hi", ": the upper limit at 95 %", offsetof(struct sp_interval, hi)},
};

/* How a family is written.  OpenMetrics names a counter without the end of its
 * samples' name. */
struct style {
	FILE *out;
	bool is_open;
};

static void put_head(const struct style *style, const char *name,
		     const char *suffix, const char *type, const char *unit,
		     const char *help)
{
	const bool is_counter = strcmp(type, "counter") == 0;
	const char *end = is_counter && !style->is_open ? "_total" : "";
	FILE *out = style->out;

	fprintf(out, "# TYPE sampleprof_%s%s%s %s\n", name, suffix, end, type);
	if (style->is_open && *unit && !*suffix)
		fprintf(out, "# UNIT sampleprof_%s %s\n", name, unit);
	fprintf(out, "# HELP sampleprof_%s%s%s %s", name, suffix, end, help);
}

static void write_family(const struct sp_metrics *m, const struct style *style,
			 size_t f)
{
	FILE *out = style->out;
	const bool is_counter = strcmp(families[f].type, "counter") == 0;
	uint64_t value;

	put_head(style, families[f].name, "", families[f].type,
		 families[f].unit, families[f].help);
	fputs(".\n", out);
	for (size_t i = 0; i < m->n; i++)
		if (is_shown(m, m->processes[i]) &&
		    value_of(f, m->processes[i], &value))
			fprintf(out, "sampleprof_%s%s{%s} %s\n",
				families[f].name, is_counter ? "_total" : "",
				m->processes[i]->labels,
				sp_figure_fixed((double)value, 0).text);
}

static void write_estimate(const struct sp_metrics *m,
			   const struct style *style, size_t e, size_t b)
{
	FILE *out = style->out;

	put_head(style, estimates[e].name, bounds[b].suffix, "gauge",
		 estimates[e].unit, estimates[e].help);
	fprintf(out, "%s.\n", bounds[b].what);
	for (size_t i = 0; i < m->n; i++) {
		const struct sp_metrics_entry *p = m->processes[i];
		double value;

		if (!is_shown(m, p) || !p->has_live)
			continue;
		memcpy(&value, (const char *)p + estimates[e].at + bounds[b].at,
		       sizeof(value));
		if (!isfinite(value))
			continue;
		fprintf(out, "sampleprof_%s%s{%s} %s\n", estimates[e].name,
			bounds[b].suffix, p->labels,
			sp_figure_fixed(value, 0).text);
	}
}

static void write_classes(const struct sp_metrics *m, const struct style *style,
			  bool of_bytes)
{
	FILE *out = style->out;
	const char *name =
		of_bytes ? "class_allocated_bytes" : "class_allocated_objects";

	put_head(style, name, "", "counter", of_bytes ? "bytes" : "",
		 of_bytes ? "Bytes allocated by size class, counted"
			  : "Objects allocated by size class, counted");
	fputs(".\n", out);
	for (size_t i = 0; i < m->n; i++) {
		const struct sp_metrics_entry *p = m->processes[i];

		if (!is_shown(m, p) || !p->has_classes)
			continue;
		for (unsigned int k = 0; k < SP_FORMAT_CLASSES; k++) {
			const uint64_t max = sp_format_class_max(k);
			char limit[24] = "+Inf";

			if (!p->classes[k].objects)
				continue;
			if (max != UINT64_MAX)
				snprintf(limit, sizeof(limit), "%" PRIu64, max);
			fprintf(out,
				"sampleprof_%s_total{%s,size_max=\"%s\"} "
				"%" PRIu64 "\n",
				name, p->labels, limit,
				of_bytes ? p->classes[k].bytes
					 : p->classes[k].objects);
		}
	}
}

void sp_metrics_write(const struct sp_metrics *m, bool is_open,
		      bool has_classes, FILE *out)
{
	const struct style style = {out, is_open};

	for (size_t f = 0; f < sizeof(families) / sizeof(*families); f++)
		write_family(m, &style, f);
	for (size_t e = 0; e < sizeof(estimates) / sizeof(*estimates); e++)
		for (size_t b = 0; b < sizeof(bounds) / sizeof(*bounds); b++)
			write_estimate(m, &style, e, b);
	if (has_classes) {
		write_classes(m, &style, true);
		write_classes(m, &style, false);
	}
	if (is_open)
		fputs("# EOF\n", out);
}
