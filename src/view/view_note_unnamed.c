/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/package.h"
#include "text/lines.h"
#include "text/text.h"
#include "view/view_note.h"

#define MODULES_MAX 3

/* Of a library that is stripped, so that its callers have names.  The pool that
 * libstdc++ takes at the start of every C++ program is less, as a rule. */
#define STRIPPED_SHARE_MIN 0.01
/* From then on, what to do about it takes lines of the screen. */
#define REMEDY_SHARE_MIN 0.05

/* Of stacks. */
enum which {
	FLAT, /* that are flat for a function without a name */
	ANY,  /* with one of them anywhere */
	OWN,  /* that are flat for any function */
	N_WHICH
};

/* Of a module, by its position in the profile.  The sums are one set of
 * samples: values of estimates for single stacks may add up to more than all
 * that was allocated. */
struct unnamed {
	const struct sp_module *module;
	struct sp_class_sums sums[N_WHICH];
	double bytes[N_WHICH]; /* their estimates */
	uint32_t last;         /* 1 + the stack that ANY has */
	const char *reason;    /* NULL: the file is there, and says no more */
	const char *lack;      /* of debug information; NULL: nothing */
	/* One that is FLAT, of the heaviest function. */
	const struct sp_aggregate_stack *heaviest;
};

struct unnamed_modules {
	const struct sp_profile *profile;
	struct unnamed *modules;
	const char *jit_reason; /* of code in no module; NULL: no trouble */
};

static struct unnamed *unnamed_of(struct unnamed_modules *all,
				  uint32_t module_id)
{
	const struct sp_module *m = sp_profile_module(all->profile, module_id);

	return m ? &all->modules[m - all->profile->modules] : NULL;
}

static bool is_unnamed(const struct sp_aggregate *aggregate,
		       const struct sp_aggregate_stack *s, uint32_t frame)
{
	return sp_aggregate_symbols(aggregate, s->stack->frames[frame])
		.symbol[0]
		.is_fallback;
}

/* Without memory less is said. */
static void add_sums(struct unnamed *u, enum which which,
		     const struct sp_aggregate_stack *s)
{
	(void)sp_class_sums_merge(&u->sums[which], s->sums);
}

static void add_any(struct unnamed_modules *all, uint32_t module_id, size_t i,
		    const struct sp_aggregate_stack *s)
{
	struct unnamed *u = unnamed_of(all, module_id);

	if (!u || u->last == i + 1)
		return;
	add_sums(u, ANY, s);
	u->last = (uint32_t)(i + 1);
}

static const struct sp_aggregate_function *flat_row(
	const struct sp_aggregate *aggregate,
	const struct sp_aggregate_stack *s)
{
	return sp_aggregate_at(aggregate, aggregate->rows[s->first_row]);
}

static void add_stack(struct unnamed_modules *all,
		      const struct sp_aggregate *aggregate, size_t i)
{
	const struct sp_aggregate_stack *s = &aggregate->stacks[i];
	const uint64_t modules = s->unnamed_modules;
	struct unnamed *flat;

	for (uint64_t left = modules << 1 >> 1; left; left &= left - 1)
		add_any(all, (uint32_t)__builtin_ctzll(left), i, s);
	for (uint32_t k = 0; modules >> 63 && k < s->stack->n_frames; k++)
		if (is_unnamed(aggregate, s, k))
			add_any(all, s->stack->frames[k].module, i, s);
	flat = unnamed_of(all, s->flat_module);
	if (flat)
		add_sums(flat, OWN, s);
	if (!flat || !s->flat_is_unnamed)
		return;
	add_sums(flat, FLAT, s);
	if (!flat->heaviest ||
	    flat_row(aggregate, s)->flat_bytes >
		    flat_row(aggregate, flat->heaviest)->flat_bytes)
		flat->heaviest = s;
}

static void estimate(struct unnamed *u, const struct sp_estimation *how)
{
	for (int i = 0; i < N_WHICH; i++) {
		u->bytes[i] = sp_estimate_bytes_value(how, &u->sums[i]);
		sp_class_sums_free(&u->sums[i]);
	}
}

/* Of a library as it is installed, its packages have the rest. */
static void take_lack(void *arg, const struct sp_module *module,
		      const char *lack)
{
	struct unnamed_modules *all = arg;

	if (module->is_main || strstr(lack, "inlined functions are missing:"))
		all->modules[module - all->profile->modules].lack = lack;
}

static void take_reason(void *arg, const struct sp_module *module,
			const char *reason)
{
	struct unnamed_modules *all = arg;

	if (!module->id) {
		all->jit_reason = reason;
		return;
	}
	all->modules[module - all->profile->modules].reason = reason;
}

/* A file that is gone has no name for any function; one that is stripped still
 * has those that others call. */
static double lost_bytes(const struct unnamed *u)
{
	return u->bytes[u->reason ? ANY : FLAT];
}

static bool is_worth_saying(const struct unnamed *u, double whole)
{
	return sp_view_note_matters(lost_bytes(u), whole) &&
	       (u->reason || lost_bytes(u) > STRIPPED_SHARE_MIN * whole);
}

static int compare_unnamed(const void *a, const void *b)
{
	const struct unnamed *u = a, *v = b;
	const double x = lost_bytes(u), y = lost_bytes(v);

	return x < y ? 1 : x > y ? -1 : u->module < v->module ? -1 : 1;
}

/* What is stripped, so far. */
struct stripped {
	const struct sp_module *libraries[MODULES_MAX];
	size_t n_libraries;
	char packages[MODULES_MAX][SP_PACKAGE_NAME_MAX];
	size_t n_packages;
	bool is_any;
	bool is_systems; /* one at least is no user's own */
	double bytes;    /* the most that is without names in one */
};

/* Where its debug information is, if only that is not installed. */
static bool print_moved(struct sp_view_notes *notes, const struct unnamed *u,
			struct stripped *all)
{
	char *package = all->packages[all->n_packages];

	if (!u->lack || !strstr(u->lack, "was moved to"))
		return false;
	fputs(", ", notes->out);
	all->is_any = true;
	all->is_systems |= !sp_package_is_users_own(u->module->path);
	if (all->n_packages < MODULES_MAX &&
	    sp_package_of_debug(SP_PACKAGE_LISTS, u->module->path, package)) {
		fprintf(notes->out, "whose debug information is in %s",
			package);
		all->n_packages++;
	} else {
		sp_text_print(notes->out, u->lack);
	}
	return true;
}

/* The rows of the table, and what calls them, which has rows by --cum alone. */
static void note_share(struct sp_view_notes *notes, const struct unnamed *u,
		       double whole)
{
	const double callers = lost_bytes(u) - u->bytes[FLAT];
	const bool has_flat = sp_view_note_matters(u->bytes[FLAT], whole);
	const bool has_callers = sp_view_note_matters(callers, whole);
	FILE *out = sp_view_note(notes);

	if (has_flat)
		fprintf(out, "%s of the bytes are in functions without names",
			sp_text_percent(u->bytes[FLAT], whole).text);
	if (has_callers || !has_flat)
		fprintf(out, "%s%s %s callers without names",
			has_flat ? ", " : "",
			sp_text_percent(has_flat ? callers : lost_bytes(u),
					whole)
				.text,
			has_flat ? "more have" : "of the bytes have");
	fputs(": ", out);
}

/* A profile from a database came from a file. */
static void print_file(FILE *out, const struct sp_profile *p)
{
	putc(' ', out);
	if (p->n_parts == 1)
		sp_text_print_shell_path(out, p->parts[0].path);
	else
		fputs("FILE", out);
}

static void note_missing(struct sp_view_notes *notes, const struct unnamed *u,
			 const struct sp_profile *p)
{
	const char *run = sp_profile_info(p, "setting.run");

	sp_text_print(notes->out, u->module->path);
	putc(' ', notes->out);
	sp_text_print(notes->out, u->reason);
	/* `run` has tried. */
	if (!run || !*run || !strcmp(run, "none"))
		fputs("; sampleprof run keeps the names of such files",
		      notes->out);
	fputs("; with a copy of it: sampleprof symbolize --module ",
	      notes->out);
	sp_text_print_shell_path(notes->out, u->module->path);
	fputs("=COPY", notes->out);
	print_file(notes->out, p);
	fputs(" -o OUT\n", notes->out);
}

/* "nginx+0x278b0 is between ngx_pool_cleanup_file and ngx_create_pool". */
static void print_heaviest(FILE *out, const struct unnamed *u,
			   const struct sp_aggregate *aggregate)
{
	const struct sp_aggregate_stack *s = u->heaviest;
	const char *name = s ? flat_row(aggregate, s)->name : NULL;
	char *place = NULL;

	for (uint32_t k = 0; name && !place && k < s->stack->n_frames; k++) {
		const struct sp_frame frame = s->stack->frames[k];
		const struct sp_symbols found =
			sp_aggregate_symbols(aggregate, frame);

		if (found.symbol->is_fallback &&
		    !strcmp(found.symbol->function, name))
			place = sp_neighbours_of(aggregate->symbolizer,
						 u->module, frame);
	}
	if (place) {
		fputs("; ", out);
		sp_text_print(out, name);
		fputs(" is ", out);
		sp_text_print(out, place);
	}
	free(place);
}

static void note_module(struct sp_view_notes *notes, struct unnamed *u,
			const struct sp_aggregate *aggregate, double whole,
			struct stripped *all)
{
	const struct sp_profile *p = aggregate->analysis->profile;
	char *package = all->packages[all->n_packages];
	bool is_moved;

	note_share(notes, u, whole);
	all->bytes = fmax(all->bytes, lost_bytes(u));
	if (u->reason) {
		note_missing(notes, u, p);
		return;
	}
	sp_text_print(notes->out, sp_text_base_name(u->module->path));
	is_moved = print_moved(notes, u, all);
	u->lack = NULL; /* it is said */
	if (is_moved) {
		print_heaviest(notes->out, u, aggregate);
		putc('\n', notes->out);
		return;
	}
	all->is_any = true;
	all->is_systems |= !sp_package_is_users_own(u->module->path);
	if (!u->module->is_main)
		all->libraries[all->n_libraries++] = u->module;
	if (sp_package_of_debug(SP_PACKAGE_LISTS, u->module->path, package)) {
		fprintf(notes->out, " is stripped: %s has its names", package);
		all->n_packages++;
	} else {
		fputs(" is stripped: build it with -g and do not strip it",
		      notes->out);
	}
	print_heaviest(notes->out, u, aggregate);
	putc('\n', notes->out);
}

/* Up to the first dot, which versions and systems stand behind. */
static void print_pattern(FILE *out, const struct stripped *all)
{
	fputs(all->n_libraries > 1 ? "'^(" : "'^", out);
	for (size_t i = 0; i < all->n_libraries; i++) {
		const char *name = sp_text_base_name(all->libraries[i]->path);

		if (i)
			putc('|', out);
		for (; *name && *name != '.'; name++) {
			if (strchr("+()[]{}^$*?|\\", *name))
				putc('\\', out);
			/* What ends the word, or is no text, is any byte. */
			putc(*name == '\'' || *name < ' ' || *name > '~'
				     ? '.'
				     : *name,
			     out);
		}
	}
	fputs(all->n_libraries > 1 ? ")\\.'" : "\\.'", out);
}

static void print_servers(FILE *out, const struct sp_profile *p)
{
	const char *servers = getenv("DEBUGINFOD_URLS");

	if (!servers || !*servers)
		fprintf(out, "DEBUGINFOD_URLS=%s ",
			sp_package_server(SP_PACKAGE_ETC));
	fputs("sampleprof report --debuginfod", out);
	print_file(out, p);
}

/* A command on a line of its own, as the shell takes it: what was written to
 * `line`, of open_memstream(&text), which is closed. */
static void print_remedy(FILE *out, FILE *line, char **text, const char *why)
{
	if (fclose(line) == 0) {
		fputs("    ", out);
		if (sp_lines_is_terminal()) {
			sp_lines_print_command(out, 4, *text, why);
		} else {
			sp_lines_print_whole(out, *text);
			fprintf(out, "%s%s\n", *why ? "  # " : "", why);
		}
	}
	free(*text);
}

static void print_remedies(FILE *out, const struct stripped *all,
			   const struct sp_aggregate *aggregate)
{
	const struct sp_profile *p = aggregate->analysis->profile;
	const char *servers = getenv("DEBUGINFOD_URLS");
	const bool has_server = all->is_systems || (servers && *servers);
	char *text = NULL;
	size_t size;
	FILE *line;

	if (all->n_packages && (line = open_memstream(&text, &size))) {
		sp_package_print_install(
			line, SP_PACKAGE_ETC,
			(const char(*)[SP_PACKAGE_NAME_MAX])all->packages,
			all->n_packages);
		print_remedy(out, line, &text, "as root");
	}
	if (has_server && (line = open_memstream(&text, &size))) {
		if (sp_symbolizer_options_of(aggregate->symbolizer)
			    ->use_debuginfod)
			fputs("# --debuginfod: no server in DEBUGINFOD_URLS "
			      "gave it",
			      line);
		else
			print_servers(line, p);
		print_remedy(out, line, &text, "");
	}
	if (all->n_libraries && (line = open_memstream(&text, &size))) {
		fputs("sampleprof report --see-through ", line);
		print_pattern(line, all);
		print_file(line, p);
		print_remedy(out, line, &text, "its callers have its bytes");
	}
}

/* Whether all of its functions have names, or not. */
static void note_lack(struct sp_view_notes *notes, const struct unnamed *u,
		      double whole, struct stripped *all)
{
	if (!u->lack || u->bytes[OWN] <= STRIPPED_SHARE_MIN * whole)
		return;
	fprintf(sp_view_note(notes), "%s of the bytes are in functions of ",
		sp_text_percent(u->bytes[OWN], whole).text);
	sp_text_print(notes->out, sp_text_base_name(u->module->path));
	if (!print_moved(notes, u, all)) {
		fputs(", ", notes->out);
		sp_text_print(notes->out, u->lack);
	}
	putc('\n', notes->out);
}

void sp_view_note_unnamed(struct sp_view_notes *notes,
			  const struct sp_aggregate *aggregate)
{
	const struct sp_analysis *a = aggregate->analysis;
	const size_t n = a->profile->n_modules;
	const double whole = sp_estimate_bytes_value(&a->how, a->whole);
	struct unnamed_modules all = {
		.profile = a->profile,
		.modules = calloc(n + 1, sizeof(*all.modules)),
	};
	struct stripped stripped = {.n_packages = 0};
	size_t n_matter = 0;

	if (!all.modules)
		return;
	for (size_t i = 0; i < n; i++)
		all.modules[i].module = &a->profile->modules[i];
	for (size_t i = 0; i < aggregate->n_stacks; i++)
		add_stack(&all, aggregate, i);
	for (size_t i = 0; i < n; i++)
		estimate(&all.modules[i], &a->how);
	sp_symbolizer_problems(aggregate->symbolizer, take_reason, &all);
	sp_symbolizer_lacks(aggregate->symbolizer, take_lack, &all);
	qsort(all.modules, n, sizeof(*all.modules), compare_unnamed);
	for (size_t i = 0; i < n; i++)
		if (is_worth_saying(&all.modules[i], whole) &&
		    n_matter++ < MODULES_MAX)
			note_module(notes, &all.modules[i], aggregate, whole,
				    &stripped);
	for (size_t i = 0; i < n; i++)
		note_lack(notes, &all.modules[i], whole, &stripped);
	if (stripped.is_any && stripped.bytes >= REMEDY_SHARE_MIN * whole)
		print_remedies(notes->out, &stripped, aggregate);
	if (all.jit_reason) {
		fputs("no names of code made at run time: ",
		      sp_view_note(notes));
		sp_text_print(notes->out, all.jit_reason);
		putc('\n', notes->out);
	}
	if (n_matter > MODULES_MAX)
		fprintf(sp_view_note(notes),
			"%zu more modules have functions without names\n",
			n_matter - MODULES_MAX);
	free(all.modules);
}
