/* SPDX-License-Identifier: MIT */
/*
 * Filters of call stacks: each by itself, random patterns over random call
 * stacks compared with a model of pprof's rules, and their effect on an
 * analysis.
 */
#include <errno.h>

#include "base/rng.h"
#include "report/analysis.h"
#include "report/filter.h"
#include "support/close.h"
#include "support/report_fixture.h"
#include "support/test.h"

#define R 4096

/* Offsets of symbols: the function of each is its name in lower case. */
enum { A, B, C, D, E_IN_B, SIZES_IN, N_SYMBOLS };

static int setup(void **state)
{
	struct fixture *x = fixture_new(R);

	fixture_symbol(x, A, "a", "one.c", 1);
	fixture_symbol(x, B, "b", "one.c", 2);
	fixture_symbol(x, C, "c", "two.c", 3);
	fixture_symbol(x, D, "d", NULL, 0);
	fixture_symbol(x, E_IN_B, "e", "two.c", 4); /* inlined into b */
	fixture_symbol(x, E_IN_B, "b", "one.c", 5);
	fixture_symbol(x, SIZES_IN, "sizes<unsigned>(int)", "two.c", 6);
	*state = x;
	return 0;
}

/* Like printf into a text that grows. */
static void append(char *text, size_t size, const char *name)
{
	size_t n = strlen(text);

	assert_true(n + strlen(name) + 2 < size);
	snprintf(text + n, size - n, "%s%s", n ? " " : "", name);
}

/* What a filter leaves of stack number i: its functions from inside, "" if it
 * is dropped. */
static const char *left(const struct sp_filter *f, size_t i)
{
	const struct sp_stack *s = &sp_filter_profile(f)->stacks[i];
	static char text[1024];

	text[0] = '\0';
	if (!sp_filter_keeps(f)[i])
		return text;
	if (!s->n_frames)
		return "[no stack]";
	for (uint32_t k = 0; k < s->n_frames; k++) {
		struct sp_symbols symbols = sp_filter_symbols(f, s->frames[k]);

		assert_true(symbols.count);
		for (size_t n = 0; n < symbols.count; n++)
			append(text, sizeof(text), symbols.symbol[n].function);
	}
	return text;
}

/* What one pattern leaves of the last stack. */
static void assert_left(struct fixture *x, enum sp_filter_kind kind,
			const char *pattern, const char *expected)
{
	struct sp_filter_patterns patterns = {.text = {NULL}};
	struct sp_filter *f;

	patterns.text[kind] = pattern;
	assert_int_equal(sp_filter_new(&x->profile, &x->symbolizer, &patterns,
				       NULL, NULL, &f, NULL),
			 0);
	assert_string_equal(left(f, x->profile.n_stacks - 1), expected);
	sp_filter_free(f);
}

/* Innermost first. */
#define ADD(x, ...)                                                            \
	fixture_stack(x, (size_t[]){__VA_ARGS__},                              \
		      sizeof((size_t[]){__VA_ARGS__}) / sizeof(size_t), 1,     \
		      100)

TEST_OF(struct fixture *x, focus_and_ignore, setup, fixture_teardown)
{
	ADD(x, C, B, A);
	assert_left(x, SP_FILTER_FOCUS, "b", "c b a");
	assert_left(x, SP_FILTER_FOCUS, "d", "");
	assert_left(x, SP_FILTER_FOCUS, "two", "c b a");
	assert_left(x, SP_FILTER_FOCUS, "bin/app$", "c b a");
	assert_left(x, SP_FILTER_FOCUS, "libz", "");
	assert_left(x, SP_FILTER_FOCUS, "", "c b a");
	assert_left(x, SP_FILTER_IGNORE, "b", "");
	assert_left(x, SP_FILTER_IGNORE, "d", "c b a");
	assert_left(x, SP_FILTER_IGNORE, "one", "");
	assert_left(x, SP_FILTER_IGNORE, "app", "");
}

TEST_OF(struct fixture *x, hide_and_show, setup, fixture_teardown)
{
	ADD(x, C, E_IN_B, A);
	assert_left(x, SP_FILTER_HIDE, "^b$", "c e a");
	assert_left(x, SP_FILTER_HIDE, "two", "b a");
	assert_left(x, SP_FILTER_HIDE, "[abce]", "");
	assert_left(x, SP_FILTER_HIDE, "app", "");
	assert_left(x, SP_FILTER_SHOW, "^e$", "e");
	assert_left(x, SP_FILTER_SHOW, "one", "b a");
	assert_left(x, SP_FILTER_SHOW, "nothing", "");
	assert_left(x, SP_FILTER_SHOW, "app", "c e b a");
}

/* What is left of the last stack if only own functions are. */
static void assert_own(struct fixture *x, const char *expected)
{
	const struct sp_filter_patterns own = {.only_own = true};
	struct sp_filter *f;

	assert_true(sp_filter_is_given(&own));
	assert_int_equal(sp_filter_new(&x->profile, &x->symbolizer, &own, NULL,
				       NULL, &f, NULL),
			 0);
	assert_string_equal(left(f, x->profile.n_stacks - 1), expected);
	sp_filter_free(f);
}

/* A stack without an own function is left as it is; what a script calls is not
 * its own, and without a script it is. */
TEST_OF(struct fixture *x, only_own, setup, fixture_teardown)
{
	enum { NEW = 10, STD, STD_IN_A, SCRIPT, EVAL };

	fixture_symbol(x, NEW, "operator new", NULL, 0);
	fixture_symbol(x, STD, "std::x", NULL, 0);
	fixture_symbol(x, STD_IN_A, "std::y", "one.c", 7);
	fixture_symbol(x, STD_IN_A, "a", "one.c", 8);
	fixture_symbol(x, SCRIPT, "py::load", NULL, 0);
	fixture_symbol(x, EVAL, "_PyEval_EvalFrameDefault", NULL, 0);
	ADD(x, NEW, STD, B, STD, STD_IN_A, STD);
	assert_own(x, "b a");
	ADD(x, NEW, STD);
	assert_own(x, "operator new std::x");
	ADD(x, NEW, C, EVAL, SCRIPT, EVAL, A);
	assert_own(x, "py::load");
	ADD(x, NEW, C, EVAL, A);
	assert_own(x, "c _PyEval_EvalFrameDefault a");
}

TEST_OF(struct fixture *x, show_from, setup, fixture_teardown)
{
	ADD(x, B, C, B, A);
	assert_left(x, SP_FILTER_SHOW_FROM, "^a$", "b c b a");
	assert_left(x, SP_FILTER_SHOW_FROM, "^b$", "b c b");
	assert_left(x, SP_FILTER_SHOW_FROM, "^c$", "b c");
	assert_left(x, SP_FILTER_SHOW_FROM, "^d$", "");
	assert_left(x, SP_FILTER_SHOW_FROM, "app", "b c b a");
	/* Of what is inlined at one address, the callers go as well. */
	ADD(x, C, E_IN_B, A);
	assert_left(x, SP_FILTER_SHOW_FROM, "^e$", "c e");
}

TEST_OF(struct fixture *x, prune_from, setup, fixture_teardown)
{
	ADD(x, D, B, C, B, A);
	assert_left(x, SP_FILTER_PRUNE_FROM, "^a$", "a");
	assert_left(x, SP_FILTER_PRUNE_FROM, "^b$", "b c b a");
	assert_left(x, SP_FILTER_PRUNE_FROM, "^x$", "d b c b a");
	/* Neither files nor modules are looked at. */
	assert_left(x, SP_FILTER_PRUNE_FROM, "one", "d b c b a");
	assert_left(x, SP_FILTER_PRUNE_FROM, "app", "d b c b a");
	ADD(x, C, E_IN_B, A);
	assert_left(x, SP_FILTER_PRUNE_FROM, "^b$", "b a");
	/* Arguments are no part of the name, except of PRUNE_FROM's. */
	ADD(x, C, SIZES_IN, A);
	assert_left(x, SP_FILTER_PRUNE_FROM, "int", "c sizes<unsigned>(int) a");
	assert_left(x, SP_FILTER_PRUNE_FROM, "ned>$", "sizes<unsigned>(int) a");
	assert_left(x, SP_FILTER_FOCUS, "int", "c sizes<unsigned>(int) a");
}

TEST_OF(struct fixture *x, names_with_parentheses, setup, fixture_teardown)
{
	fixture_symbol(x, 100, "(anonymous namespace)::f", NULL, 0);
	fixture_symbol(x, 101, "g::operator()", NULL, 0);
	ADD(x, C, 100, 101, A);
	assert_left(x, SP_FILTER_PRUNE_FROM, "::f$",
		    "(anonymous namespace)::f g::operator() a");
	assert_left(x, SP_FILTER_PRUNE_FROM, "operator\\(\\)$",
		    "g::operator() a");
}

/* Samples without a stack are as those of one function. */
TEST_OF(struct fixture *x, no_stack, setup, fixture_teardown)
{
	fixture_stack(x, NULL, 0, 1, 100);
	assert_left(x, SP_FILTER_FOCUS, "a", "[no stack]");
	assert_left(x, SP_FILTER_FOCUS, "^b$", "");
	assert_left(x, SP_FILTER_IGNORE, "no stack", "");
	assert_left(x, SP_FILTER_HIDE, "no stack", "");
	assert_left(x, SP_FILTER_SHOW, "no stack", "[no stack]");
	assert_left(x, SP_FILTER_SHOW_FROM, "b", "");
}

TEST_BETWEEN(bad_patterns, setup, fixture_teardown)
{
	struct sp_filter_patterns patterns = {
		.text = {[SP_FILTER_SHOW_FROM] = "a(b"}};
	struct sp_error err = {0};

	assert_true(sp_filter_is_given(&patterns));
	assert_int_equal(sp_filter_check(&patterns, &err), -EINVAL);
	assert_non_null(strstr(err.message, "--show-from: "));
	assert_non_null(strstr(err.message, "after 3 characters of a(b"));
	patterns.text[SP_FILTER_SHOW_FROM] = "";
	assert_false(sp_filter_is_given(&patterns));
	assert_int_equal(sp_filter_check(&patterns, &err), 0);
}

/* ---- all of them against a model ---- */

#define MODEL_PLACES 40
#define MODEL_LINES  3
#define MODEL_STACKS 60

struct line {
	char name[4];
	char file[4];
};

struct place {
	struct line lines[MODEL_LINES];
	size_t n;
	bool is_begin; /* of SHOW_FROM */
	bool is_end;   /* of PRUNE_FROM */
};

/* A pattern of the model is a set of letters: it matches what has one. */
static bool has(const char *text, const char *set)
{
	return set && strpbrk(text, set);
}

static bool line_has(const struct line *line, const char *set)
{
	return has(line->name, set) || has(line->file, set);
}

static bool place_has(const struct place *p, const char *module,
		      const char *set)
{
	for (size_t i = 0; i < p->n; i++)
		if (line_has(&p->lines[i], set))
			return true;
	return has(module, set);
}

/* What HIDE (or, if `wanted`, SHOW) leaves of the lines. */
static void model_drop(struct place *p, const char *module, const char *set,
		       bool wanted)
{
	size_t n = 0;

	if (!set)
		return;
	if (has(module, set)) {
		p->n = wanted ? p->n : 0;
		return;
	}
	for (size_t i = 0; i < p->n; i++)
		if (line_has(&p->lines[i], set) == wanted)
			p->lines[n++] = p->lines[i];
	p->n = n;
}

static void model_cut(struct place *p, const char *module, char *const *sets)
{
	const char *from = sets[SP_FILTER_SHOW_FROM];
	const char *prune = sets[SP_FILTER_PRUNE_FROM];

	p->is_begin = has(module, from);
	for (size_t i = p->n; !p->is_begin && i-- > 0;) {
		if (!line_has(&p->lines[i], from))
			continue;
		p->is_begin = true;
		p->n = i + 1;
	}
	for (size_t i = 0; !p->is_end && i < p->n; i++) {
		if (!has(p->lines[i].name, prune))
			continue;
		p->is_end = true;
		memmove(p->lines, p->lines + i, (p->n - i) * sizeof(*p->lines));
		p->n -= i;
	}
}

static void model(const struct place *all, const char *module,
		  const size_t *offsets, size_t n, char *const *sets,
		  char *text, size_t size)
{
	struct place frames[FIXTURE_FRAMES];
	size_t n_frames = 0, begin = 0;
	bool is_focused = false;

	text[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		struct place p = all[offsets[i]];

		if (place_has(&p, module, sets[SP_FILTER_IGNORE]))
			return;
		is_focused |= !sets[SP_FILTER_FOCUS] ||
			      place_has(&p, module, sets[SP_FILTER_FOCUS]);
		model_drop(&p, module, sets[SP_FILTER_HIDE], false);
		model_drop(&p, module, sets[SP_FILTER_SHOW], true);
		model_cut(&p, module, sets);
		if (p.n)
			frames[n_frames++] = p;
	}
	if (!is_focused)
		return;
	while (sets[SP_FILTER_SHOW_FROM] && n_frames &&
	       !frames[n_frames - 1].is_begin)
		n_frames--;
	while (begin < n_frames && !frames[begin].is_end)
		begin++;
	if (begin == n_frames)
		begin = 0;
	for (size_t i = begin; i < n_frames; i++)
		for (size_t k = 0; k < frames[i].n; k++)
			append(text, size, frames[i].lines[k].name);
}

static void random_places(struct fixture *x, struct place *places,
			  struct sp_rng *rng)
{
	memset(places, 0, MODEL_PLACES * sizeof(*places));
	for (size_t i = 0; i < MODEL_PLACES; i++) {
		struct place *p = &places[i];

		p->n = 1 + sp_rng_next(rng) % MODEL_LINES;
		for (size_t k = 0; k < p->n; k++) {
			struct line *line = &p->lines[k];

			line->name[0] = (char)('a' + sp_rng_next(rng) % 8);
			line->name[1] = (char)('a' + sp_rng_next(rng) % 8);
			line->file[0] = (char)('f' + sp_rng_next(rng) % 8);
			fixture_symbol(x, 200 + i, line->name, line->file, 1);
		}
	}
}

/* A third of the patterns is missing; never all. */
static void random_sets(char sets[][4], char *chosen[], char texts[][8],
			struct sp_rng *rng)
{
	for (int i = 0; i < SP_FILTER_COUNT; i++) {
		chosen[i] = NULL;
		if (i && sp_rng_next(rng) % 3 == 0)
			continue;
		snprintf(sets[i], sizeof(sets[i]), "%c%c",
			 (int)('a' + sp_rng_next(rng) % 16),
			 (int)('a' + sp_rng_next(rng) % 8));
		/* A focus that most stacks pass, an ignore that few match. */
		if (i == SP_FILTER_IGNORE)
			snprintf(sets[i], sizeof(sets[i]), "%c",
				 (int)('k' + sp_rng_next(rng) % 8));
		chosen[i] = sets[i];
		snprintf(texts[i], sizeof(texts[i]), "[%.3s]", sets[i]);
	}
}

TEST_BETWEEN(random_against_model, setup, fixture_teardown)
{
	struct place places[MODEL_PLACES];
	const unsigned int rounds = rounds_of(200);
	size_t n_left = 0, n_dropped = 0;
	struct sp_rng rng;

	sp_rng_init(&rng, 7, 0);
	for (unsigned int round = 0; round < rounds; round++) {
		char sets[SP_FILTER_COUNT][4], texts[SP_FILTER_COUNT][8];
		struct sp_filter_patterns patterns = {.text = {NULL}};
		size_t offsets[MODEL_STACKS][FIXTURE_FRAMES];
		struct fixture *x = fixture_new(R);
		char *chosen[SP_FILTER_COUNT];
		struct sp_filter *f;
		char expected[1024];

		x->modules[0].path = "M";
		random_places(x, places, &rng);
		random_sets(sets, chosen, texts, &rng);
		for (int i = 0; i < SP_FILTER_COUNT; i++)
			patterns.text[i] = chosen[i] ? texts[i] : NULL;
		for (size_t i = 0; i < MODEL_STACKS; i++) {
			size_t n = 1 + sp_rng_next(&rng) % FIXTURE_FRAMES;
			size_t at[FIXTURE_FRAMES];

			for (size_t k = 0; k < n; k++) {
				offsets[i][k] =
					sp_rng_next(&rng) % MODEL_PLACES;
				at[k] = 200 + offsets[i][k];
			}
			fixture_stack(x, at, n, 1, 100);
		}
		assert_int_equal(sp_filter_new(&x->profile, &x->symbolizer,
					       &patterns, NULL, NULL, &f, NULL),
				 0);
		for (size_t i = 0; i < MODEL_STACKS; i++) {
			model(places, "M", offsets[i], x->stacks[i].n_frames,
			      chosen, expected, sizeof(expected));
			assert_string_equal(left(f, i), expected);
			n_left += *expected != '\0';
			n_dropped += !*expected;
		}
		sp_filter_free(f);
		fixture_free(x);
	}
	/* Both must come up often for this to mean anything. */
	assert_true(n_left > 10 * rounds);
	assert_true(n_dropped > 10 * rounds);
}

/* ---- what becomes of an analysis ---- */

TEST_BETWEEN(rows_keep_their_values, setup, fixture_teardown)
{
	struct sp_filter_patterns patterns = {
		.text = {[SP_FILTER_FOCUS] = "^c$"}};
	struct fixture *x = *test_state;
	struct sp_stack *kept = ADD(x, C, A), *dropped = ADD(x, B, A);
	const struct sp_analysis *whole;
	struct sp_analysis *part;
	struct sp_interval one, other;
	struct sp_filter *f;

	fixture_samples(x, kept, 9, 5000);
	fixture_samples(x, dropped, 30, 700);
	whole = fixture_analysis(x);
	assert_int_equal(sp_filter_new(&x->profile, &x->symbolizer, &patterns,
				       NULL, NULL, &f, NULL),
			 0);
	assert_int_equal(sp_analysis_new_filtered(&x->profile, &x->question, f,
						  SP_VIEW_ALLOC, &part, NULL),
			 0);
	assert_int_equal(part->view->all.all.samples, 10);
	assert_int_equal(part->whole->all.samples, 41);
	assert_true(sp_selection_is_subset(&part->selection));
	assert_false(sp_selection_is_subset(&whole->selection));
	one = sp_estimate_bytes(&part->how, &part->view->stacks[0]);
	other = sp_estimate_bytes(&whole->how, &whole->view->stacks[0]);
	assert_close(one.value, other.value, 0);
	assert_close(one.lo, other.lo, 0);
	assert_close(one.hi, other.hi, 0);
	assert_int_equal(part->view->stacks[1].all.samples, 0);
	sp_analysis_free(part);
	sp_filter_free(f);
}

/* The peak of the rows is that of the program, whatever is dropped. */
TEST_BETWEEN(the_peak_stays, setup, fixture_teardown)
{
	struct sp_filter_patterns patterns = {
		.text = {[SP_FILTER_FOCUS] = "^c$"}};
	struct fixture *x = *test_state;
	struct sp_analysis *part;
	struct sp_filter *f;
	struct sp_stack *early, *late;

	x->profile.has_frees = true;
	x->question.has_view = true;
	x->question.view = SP_VIEW_PEAK;
	x->next.born_ns = 1000;
	x->next.freed_ns = 2000;
	early = fixture_stack(x, (size_t[]){C, A}, 2, 5, 9000);
	x->next.born_ns = 5000;
	x->next.freed_ns = SP_NEVER;
	late = fixture_stack(x, (size_t[]){B, A}, 2, 50, 9000);
	fixture_samples(x, early, 1, 9000);
	(void)late;
	assert_int_equal(sp_filter_new(&x->profile, &x->symbolizer, &patterns,
				       NULL, NULL, &f, NULL),
			 0);
	assert_int_equal(sp_analysis_new_filtered(&x->profile, &x->question, f,
						  SP_VIEW_ALLOC, &part, NULL),
			 0);
	assert_true(part->selection.peak_ns == SP_NEVER);
	assert_true(part->selection.at_ns == x->profile.duration_ns);
	assert_int_equal(part->peak.time_ns, 1000);
	assert_int_equal(part->view->all.all.samples, 1);
	assert_int_equal(part->whole->all.samples, 51);
	sp_analysis_free(part);
	sp_filter_free(f);
}

TEST_MAIN(NULL, NULL)
