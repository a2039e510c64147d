/* SPDX-License-Identifier: MIT */
/*
 * Which functions are the same on both sides: overloads, lambdas, other
 * inlining, other names.
 */

#include "compare/check.h"
#include "compare/format.h"
#include "support/gate_scene.h"
#include "support/test.h"
#include "support/text_checks.h"

/* Overloads are functions of their own, and read without parameters where that
 * is clear. */
TEST(overloads)
{
	struct scene *s = scene_new(1);
	const struct sp_finding *f;

	for (int i = 0; i < 2; i++) {
		struct sp_summary *run = i ? s->new[0] : s->old[0];

		add(s, run, "ns::over(int)<main", i ? 8000 : 4000);
		add(s, run, "ns::over(double)<main", i ? 4000 : 8000);
		add(s, run, "libz.so!ns::one(int)<main", i ? 9000 : 4000);
	}
	f = judge(s, "sites=+5%");
	assert_int_equal(f->n_rejected, 2);
	assert_string_equal(f->culprits[0].name, "libz.so!ns::one");
	assert_string_equal(f->culprits[1].name, "libz.so!ns::one < main");
	assert_string_equal(f->culprits[2].name, "ns::over(int)");
	assert_verdict(s, "site(^ns::over$)=+5%", SP_VERDICT_PASS);
	assert_verdict(s, "site(over.int)=+5%", SP_VERDICT_REGRESSION);
}

#define LAMBDA(n) "main::{lambda(int)#" #n "}::operator()(int) const<main"

/* One more lambda in front of others gives them other numbers. */
TEST(lambdas_with_other_numbers)
{
	for (unsigned int grown = 0; grown < 2; grown++) {
		struct scene *s = scene_new(1);
		const struct sp_finding *f;

		add(s, s->old[0], LAMBDA(1), 4000);
		add(s, s->old[0], LAMBDA(2), 20000);
		add(s, s->new[0], LAMBDA(1), 100);
		add(s, s->new[0], LAMBDA(2), 4000);
		add(s, s->new[0], LAMBDA(3), grown ? 40000 : 20000);
		for (int i = 0; i < 2; i++) {
			struct sp_summary *run = i ? s->new[0] : s->old[0];

			/* numbers as before, and one that a few samples miss
			 */
			add(s, run, "f::$_0::operator()<main", 4000);
			add(s, run, "g::{lambda()#1}::operator()<main", 4000);
		}
		add(s, s->new[0], "g::{lambda()#2}::operator()<main", 5);
		f = judge(s, "sites=+10%&64K");
		assert_int_equal(s->check->caveats.n_notes, 1);
		assert_has(s->check->caveats.note[0],
			   "main::{lambda(int)#*}::operator()(int) const");
		assert_int_equal(f->verdict, grown ? SP_VERDICT_REGRESSION
						   : SP_VERDICT_PASS);
		if (grown)
			assert_string_equal(
				f->culprits[0].name,
				"main::{lambda(int)#*}::operator()");
	}
}

/* A function that has no frame on one side, since it is inlined there: its
 * bytes are its caller's.  What is new in truth makes its caller grow, too. */
TEST(other_inlining)
{
	const struct sp_finding *f;

	for (int is_back = 0; is_back < 2; is_back++) {
		struct scene *s = scene_new(1);
		struct sp_summary *plain = is_back ? s->new[0] : s->old[0];
		struct sp_summary *debug = is_back ? s->old[0] : s->new[0];

		add(s, plain, "work<main", 9000);
		add(s, debug, "inner<outer<work<main", 6000);
		add(s, debug, "outer<work<main", 3000);
		add(s, plain, "libz.so!inflate<main", 3000);
		add(s, debug, "libz.so!deep<libz.so!inflate<main", 3000);
		f = judge(s, "sites=+10%");
		assert_int_equal(f->verdict, SP_VERDICT_CANNOT_TELL);
		assert_has(f->why, "other inlining");
		assert_int_equal(f->n_moved, is_back ? 2 : 3);
		assert_int_equal(f->n_culprits, 0);
		/* two functions in truth, one of them new */
		add(s, s->new[0], "fresh<work<main", 2000);
		f = judge(s, "sites=+10%");
		assert_int_equal(f->verdict, SP_VERDICT_REGRESSION);
	}
}

/* Patterns, too: what is inlined on one side is not in them there. */
TEST(patterns_and_inlining)
{
	struct scene *s = scene_new(1);
	const struct sp_finding *f;

	add(s, s->old[0], "work<main", 9000);
	add(s, s->new[0], "work<main", 6000);
	add(s, s->new[0], "parse_it<work<main", 3000);
	f = judge(s, "site(^parse_)=+10%");
	assert_int_equal(f->verdict, SP_VERDICT_CANNOT_TELL);
	assert_has(f->why, "other inlining");
	assert_false(f->culprits[0].is_comparable);
	assert_false(f->culprits[0].is_certain);
	assert_false(f->culprits[0].is_new);
	/* new in truth: all that is around it has grown as much */
	add(s, s->new[0], "parse_that<work<main", 3000);
	assert_verdict(s, "site(^parse_that)=+10%", SP_VERDICT_REGRESSION);
	assert_true(s->check->findings[0].culprits[0].is_new);
	/* gone, or inlined */
	s = scene_new(1);
	add(s, s->old[0], "parse_it<work<main", 3000);
	add(s, s->old[0], "work<main", 3000);
	add(s, s->new[0], "work<main", 6000);
	assert_verdict(s, "site(^parse_)=+10%", SP_VERDICT_CANNOT_TELL);
	s = scene_new(1);
	add(s, s->old[0], "libz.so!parse_it<work<main", 3000);
	add(s, s->old[0], "work<main", 3000);
	add(s, s->new[0], "work<main", 6000);
	assert_verdict(s, "site(^parse_)=+10%", SP_VERDICT_PASS);
}

static void add_nameless(struct sp_summary *run)
{
	run->nameless = calloc(1, sizeof(*run->nameless));
	assert_non_null(run->nameless);
	run->nameless[0] = (struct sp_nameless){strdup(""), strdup("/bin/app"),
						strdup("is not there")};
	run->n_nameless = 1;
}

/* The old binary is gone: its functions have no names. */
TEST(names_are_missing)
{
	const struct sp_caveats *can;
	const struct sp_finding *f;

	/* few samples tell only with the symbolizer's word */
	for (int is_known = 0; is_known < 2; is_known++) {
		struct scene *s = scene_new(1);
		const unsigned int n = is_known ? 5 : 300;

		add(s, s->old[0], "[unknown]<libc.so!start", n);
		add(s, s->new[0], "leaf<main<libc.so!start", 2 * n);
		for (int i = 0; i < 2; i++)
			add(s, i ? s->new[0] : s->old[0], "libz.so!inflate",
			    i ? 600 : 300);
		if (is_known)
			add_nameless(s->old[0]);
		f = judge(s, "sites=+10%&4K");
		can = &s->check->caveats;
		assert_int_equal(can->names.n_mixed, 1);
		assert_has(can->note[0], is_known ? "old.sprof: no names in "
						    "/bin/app"
						  : "no names in the program");
		assert_has(can->note[0], "1 of 2 call paths");
		/* the rest is compared as ever */
		assert_int_equal(f->verdict, SP_VERDICT_REGRESSION);
		assert_int_equal(f->n_rejected, 1);
		assert_string_equal(f->culprits[0].name, "libz.so!inflate");
		f = judge(s, "sites=+200%&4K");
		assert_int_equal(f->verdict, SP_VERDICT_CANNOT_TELL);
		assert_has(f->why, "names in some runs only");
		assert_int_equal(s->check->n_renamed, 0);
		f = judge(s, "site(^leaf$)=+10%");
		assert_int_equal(f->verdict, SP_VERDICT_CANNOT_TELL);
		/* it may be among those without a name */
		f = judge(s, "site(^nothing$)=+10%");
		assert_int_equal(f->verdict, SP_VERDICT_CANNOT_TELL);
		assert_verdict(s, "module(libz)=+10%", SP_VERDICT_REGRESSION);
		assert_verdict(s, "site(^inflate$)=+10%",
			       SP_VERDICT_REGRESSION);
	}
}

/* Where neither side has names, or by chance, nothing is mixed. */
TEST(names_that_neither_side_has)
{
	struct scene *s = scene_new(1);

	for (int i = 0; i < 2; i++) {
		add(s, i ? s->new[0] : s->old[0], "libz.so![unknown]<main",
		    i ? 600 : 300);
		add(s, i ? s->new[0] : s->old[0], "libz.so!inflate<main", 100);
	}
	add(s, s->old[0], "liby.so![unknown]<main", 11);
	add(s, s->new[0], "liby.so!f<main", 11);
	assert_verdict(s, "site(^.unknown.$)=+10%", SP_VERDICT_REGRESSION);
	assert_int_equal(s->check->caveats.names.n_mixed, 0);
	assert_int_equal(s->check->caveats.n_notes, 0);
	add(s, s->old[0], "liby.so![unknown]<x<main", 1);
	add(s, s->new[0], "liby.so!f<main", 1);
	judge(s, "sites=+10%");
	assert_int_equal(s->check->caveats.names.n_mixed, 1);
}

/* Three frames, in the text each behind the other and "<"; names have some,
 * too. */
static void add_long(struct scene *s, struct sp_summary *run, unsigned int n)
{
	static const char *const names[] = {
		"std::vector<std::pair<std::string, std::map<int, long> > >::"
		"insert_all_of(std::vector<std::pair<std::string, int> > "
		"const&)",
		"ns::operator<(long, long)", "main"};
	const struct sp_acc acc = gate_samples(n, 16, R);
	struct sp_path_rows *rows = &run->rows[SP_VIEW_ALLOC];
	uint32_t frames[3], path;

	for (int i = 0; i < 3; i++)
		assert_int_equal(sp_intern_add(&s->paths.frames, names[i],
					       strlen(names[i]), &frames[i]),
				 0);
	assert_int_equal(sp_paths_add(&s->paths, frames, 3, &path), 0);
	rows->at = calloc(1, sizeof(*rows->at));
	assert_non_null(rows->at);
	rows->at[rows->n++] = (struct sp_path_row){path, acc};
}

/* A name that is too long for a line is shown without what is in its brackets,
 * and nothing is wider than a screen. */
TEST(long_names_on_a_screen)
{
	struct scene *s = scene_new(1);
	struct sp_result result = {.program = "app",
				   .n_old = 1,
				   .n_new = 1,
				   .period_bytes = R,
				   .limits = &s->limits};
	char *text, *rest, *line;
	size_t size;
	FILE *out;

	add_long(s, s->old[0], 100);
	add_long(s, s->new[0], 900);
	judge(s, "sites=+10%");
	result.check = s->check;
	out = open_memstream(&text, &size);
	assert_non_null(out);
	assert_int_equal(sp_check_text_write(out, &result), 0);
	fclose(out);
	assert_has(text, " std::vector<...>::insert_all_of\n");
	/* the call path is not shown as the function is */
	assert_has(strstr(text, "insert_all_of\n") + 1,
		   " std::...::insert_all_of < ...\n");
	rest = text;
	while ((line = strsep(&rest, "\n"))) {
		assert_true(strlen(line) <= 80);
		assert_true(!*line || line[strlen(line) - 1] != ' ');
	}
	free(text);
}

static char *text_of(struct scene *s, const char *limit)
{
	struct sp_result result = {.program = "app",
				   .n_old = 2,
				   .n_new = 2,
				   .period_bytes = R,
				   .limits = &s->limits};
	char *text;
	size_t size;
	FILE *out;

	judge(s, limit);
	result.check = s->check;
	out = open_memstream(&text, &size);
	assert_non_null(out);
	assert_int_equal(sp_check_text_write(out, &result), 0);
	fclose(out);
	return text;
}

/* Two runs that differ a hundredfold tell nothing of what is usual: no growth
 * would be found.  Of two that are alike some would. */
TEST(runs_that_find_nothing)
{
	static const char nothing[] =
		"  finds no growth, however large: runs differ, and these "
		"are too few\n";
	static const char something[] = "  would find, in 95 % of runs: ";
	struct scene *s = scene_new(2);
	char *text;

	for (int i = 0; i < 2; i++) {
		add(s, s->old[i], "f<main", i ? 100 : 10000);
		add(s, s->new[i], "f<main", i ? 100 : 10000);
	}
	text = text_of(s, "sites=+10%");
	assert_has(text, nothing);
	assert_null(strstr(text, something));
	free(text);
	s = scene_new(2);
	for (int i = 0; i < 2; i++) {
		add(s, s->old[i], "f<main", 1000);
		add(s, s->new[i], "f<main", 1000);
	}
	text = text_of(s, "sites=+10%");
	assert_has(text, something);
	assert_null(strstr(text, nothing));
	free(text);
}

/* With few samples a function may be on one side by chance. */
TEST(too_few_to_be_renamed)
{
	for (uint64_t n = 11; n <= 12; n++) {
		struct scene *s = scene_new(1);

		for (int i = 0; i < 2; i++)
			add(s, i ? s->new[0] : s->old[0], "leaf<main", 300);
		add(s, s->old[0], "leaf<stale<main", 30);
		add(s, s->new[0], "leaf<fresh<main", n);
		judge(s, "sites=+10%");
		assert_int_equal(s->check->n_renamed, n >= 12);
	}
}

TEST(renamed)
{
	struct scene *s = scene_new(1);

	for (int i = 0; i < 2; i++) {
		struct sp_summary *run = i ? s->new[0] : s->old[0];

		add(s, run, i ? "leaf<fresh<main" : "leaf<stale<main", 300);
		add(s, run, i ? "fresh<main" : "stale<main", 300);
		add(s, run, "leaf<main", 300);
	}
	/* same place, other module: not the same function */
	add(s, s->old[0], "a.so!f<main", 50);
	add(s, s->new[0], "b.so!f<main", 50);
	/* the same name's other path does not fit */
	add(s, s->old[0], "gone<x<main", 5);
	add(s, s->old[0], "gone<y<main", 100);
	add(s, s->new[0], "come<x<main", 5);
	judge(s, "sites=+10%");
	for (size_t i = 1; i < s->check->n_renamed; i++)
		print_error("%s -> %s\n", s->check->renamed[i].old,
			    s->check->renamed[i].new);
	assert_int_equal(s->check->n_renamed, 1);
	assert_string_equal(s->check->renamed[0].old, "stale");
	assert_string_equal(s->check->renamed[0].new, "fresh");
	/* a.so!f and b.so!f are looked at, fresh did not change */
	assert_string_equal(s->check->findings[0].culprits[0].name, "b.so!f");
	assert_int_equal(s->check->findings[0].n_rejected, 1);
}

/* The sites that a limit on them found, "a b". */
static const char *culprits(struct scene *s)
{
	static char text[400];
	const struct sp_finding *f = judge(s, "sites=+10%");

	*text = '\0';
	for (size_t i = 0; i < f->n_rejected; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "%s%s", i ? " + " : "", f->culprits[i].name);
	return text;
}

/* Bytes that went from one static function to another of that name. */
TEST(same_name_in_two_files)
{
	struct scene *s = scene_new(1);

	add(s, s->old[0], "make [in a.c]<main", 300);
	add(s, s->old[0], "make [in b.c]<main", 30);
	add(s, s->new[0], "make [in a.c]<main", 30);
	add(s, s->new[0], "make [in b.c]<main", 300);
	assert_string_equal(culprits(s), "make [in b.c]");
}

/* A build elsewhere, and one more file, are the same functions. */
TEST(homes_in_other_directories)
{
	struct scene *s = scene_new(2);

	for (int i = 0; i < 2; i++) {
		add(s, s->old[i], "make [in /one/x/u.js]<main", 100);
		add(s, s->old[i], "make [in /one/y/u.js]<main", 100);
		add(s, s->old[i], "load [in /one/u.py]<main", 100);
		add(s, s->new[i], "make [in /two/x/u.js]<main", 100);
		add(s, s->new[i], "make [in /two/y/u.js]<main", 100);
		add(s, s->new[i], "load [in /two/u.py]<main", 100);
		add(s, s->new[i], "make [in /two/z/u.js]<main", 100);
	}
	assert_string_equal(culprits(s), "make [in z/u.js]");
}

/* The same directory does not bring files of other names together. */
TEST(homes_of_each_run)
{
	struct scene *s = scene_new(2);

	add(s, s->old[0], "make [in /1/a.js]<main", 100);
	add(s, s->old[1], "make [in /2/a.js]<main", 100);
	add(s, s->new[0], "make [in /3/a.js]<main", 100);
	add(s, s->new[1], "make [in /4/a.js]<main", 100);
	assert_string_equal(culprits(s), "");
}

/* An old baseline has the name alone: the new side's functions are one, too,
 * and the label says of how many. */
TEST(name_without_homes)
{
	struct scene *s = scene_new(1);

	add(s, s->old[0], "make<main", 300);
	add(s, s->old[0], "leaf<main", 100);
	add(s, s->new[0], "make [in a.c]<main", 150);
	add(s, s->new[0], "make [in b.c]<main", 150);
	add(s, s->new[0], "leaf [in a.c]<main", 100);
	assert_string_equal(culprits(s), "");
	add(s, s->new[0], "make [in b.c]<main", 300);
	assert_string_equal(culprits(s), "make [2 functions]");
}

/* Other functions of the name, known everywhere, keep it. */
TEST(static_beside_external)
{
	struct scene *s = scene_new(1);

	add(s, s->old[0], "make<main", 300);
	add(s, s->old[0], "make [in a.c]<main", 30);
	add(s, s->new[0], "make<main", 30);
	add(s, s->new[0], "make [in a.c]<main", 300);
	assert_string_equal(culprits(s), "make [in a.c]");
}

TEST_MAIN(NULL, NULL)
