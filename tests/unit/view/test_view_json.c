/* SPDX-License-Identifier: MIT */
/*
 * The JSON of the report: the run, its ends, losses and damage, functions,
 * stacks, threads, settings; every byte in names.
 */
#include <jansson.h>

#include "support/close.h"
#include "support/json_document.h"
#include "text/text.h"
#include "support/test.h"

TEST_OF(struct document *d, run, setup, teardown)
{
	json_t *root;

	d->x->profile.exact_alloc_bytes = INT64_MAX;
	fixture_stack(d->x, (size_t[]){F, MAIN}, 2, 5, 100);
	root = export(d);
	assert_int_equal(integer(root, "format_version"), 1);
	assert_string_equal(string(root, "file"), "app.7.sprof");
	assert_string_equal(string(root, "program"), "/bin/app");
	assert_string_equal(string(root, "command"), "app -x");
	assert_string_equal(string(root, "host"), "box");
	assert_int_equal(integer(root, "pid"), 7);
	assert_true(integer(root, "start_unix_ns") == 1795254012000000000);
	assert_true(integer(root, "duration_ns") == 3250000000);
	assert_string_equal(string(root, "end"), "clean");
	assert_int_equal(integer(root, "period_bytes"), R);
	assert_string_equal(string(root, "seed"), "18446744073709551615");
	assert_int_equal(integer(root, "check_in_bytes"), 1 << 20);
	assert_int_equal(integer(root, "max_file_bytes"), 64 << 20);
	assert_int_equal(integer(root, "samples"), 5);
	assert_int_equal(integer(root, "threads"), 2);
	assert_true(integer(root, "exact.alloc_bytes") == INT64_MAX);
	assert_int_equal(integer(root, "exact.alloc_objects"), 1234);
	assert_true(json_is_true(at(root, "exact.is_complete")));
	assert_true(real(root, "confidence") == 0.95);
	assert_true(real(root, "row_confidence") == 0.95);
	assert_string_equal(string(root, "law"), "exponential");
	assert_string_equal(string(root, "view"), "alloc");
	assert_string_equal(string(root, "method"), "p3t");
	assert_string_equal(string(root, "method_assumes"),
			    sp_method_assumes(SP_METHOD_P3T));
	assert_true(json_is_false(at(root, "has_class_totals")));
	assert_true(json_is_string(at(root, "why_no_class_totals")));
	d->how = sp_analysis_total_how(d->x->analysis);
	assert_bytes(d, root, "estimate.alloc_bytes",
		     &d->x->analysis->alloc->all);
	assert_objects(d, root, "estimate.alloc_objects",
		       &d->x->analysis->alloc->all);
}

/* Not all of what allocates came by the library. */
TEST_OF(struct document *d, unseen, setup, teardown)
{
	d->x->profile.has_unseen = true;
	assert_true(json_is_false(at(export(d), "exact.is_complete")));
	assert_false(sp_profile_is_exact(&d->x->profile));
}

/* Keys that a profile without frees cannot fill are there, and null. */
TEST_BETWEEN(without_frees, setup, teardown)
{
	static const char *const paths[] = {
		"estimate.live_bytes",      "estimate.live_objects",
		"estimate.peak_bytes",      "timeline",
		"functions.0.live_bytes",   "functions.0.live_objects",
		"functions.0.lifetime",     "stacks.0.live_bytes",
		"stacks.0.lifetime",        "size_classes",
		"size_percentiles",         "selection.at_ns",
		"selection.to_ns",          "selection.tail_ns",
		"selection.within_bytes",   "selection.within_ns",
		"selection.min_size_bytes", "selection.max_size_bytes",
		"selection.thread",
	};
	struct document *d = *test_state;
	json_t *root;

	fixture_stack(d->x, (size_t[]){F, MAIN}, 2, 5, 100);
	root = export(d);
	assert_true(json_is_false(at(root, "has_frees")));
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		assert_null_at(root, paths[i]);
	assert_int_equal(json_array_size(at(root, "rss")), 0);
}

TEST_BETWEEN(ends, setup, teardown)
{
	static const char *const names[] = {"clean", "killed", "exec",
					    "running"};
	struct document *d = *test_state;

	for (int end = 0; end < 4; end++) {
		d->x->profile.end = (enum sp_profile_end)end;
		assert_string_equal(string(export(d), "end"), names[end]);
		json_decref(d->root);
		free(d->text);
		d->root = NULL;
		d->text = NULL;
	}
	/* Of a file that is cut nothing is clean. */
	d->x->profile.end = SP_PROFILE_END_CLEAN;
	d->x->profile.is_cut = true;
	assert_string_equal(string(export(d), "end"), "cut");
	d->x->profile.exact_alloc_bytes = d->x->profile.exact_alloc_objects = 0;
	d->x->profile.missing_bytes_max = UINT64_MAX;
	assert_null_at(export(d), "exact.alloc_bytes");
	assert_null_at(d->root, "exact.alloc_objects");
}

/* One file is the only one of its list; several are each named. */
TEST_OF(struct document *d, parts, setup, teardown)
{
	struct sp_part parts[] = {
		{.path = "a.sprof",
		 .program = "/bin/a",
		 .command = "a b",
		 .pid = 5,
		 .period_bytes = 4096,
		 .exact_alloc_bytes = 11,
		 .exact_alloc_objects = 3,
		 .stop_ns = 70},
		{.path = "c.sprof",
		 .program = "/bin/c",
		 .command = "c",
		 .end = SP_PROFILE_END_KILLED,
		 .start_ns = 9},
	};
	json_t *root = export(d);
	const json_t *profiles = at(root, "profiles"), *p;

	assert_int_equal(json_array_size(profiles), 1);
	p = json_array_get(profiles, 0);
	assert_string_equal(string(p, "file"), d->x->profile.path);
	assert_int_equal(integer(p, "exact.alloc_bytes"),
			 d->x->profile.exact_alloc_bytes);
	assert_int_equal(integer(p, "stop_ns"), d->x->profile.duration_ns);
	d->x->profile.parts = parts;
	d->x->profile.n_parts = 2;
	root = export(d);
	profiles = at(root, "profiles");
	assert_int_equal(json_array_size(profiles), 2);
	p = json_array_get(profiles, 0);
	assert_string_equal(string(p, "file"), "a.sprof");
	assert_string_equal(string(p, "program"), "/bin/a");
	assert_string_equal(string(p, "command"), "a b");
	assert_string_equal(string(p, "end"), "clean");
	assert_int_equal(integer(p, "pid"), 5);
	assert_int_equal(integer(p, "period_bytes"), 4096);
	assert_int_equal(integer(p, "exact.alloc_bytes"), 11);
	assert_int_equal(integer(p, "exact.alloc_objects"), 3);
	assert_int_equal(integer(p, "stop_ns"), 70);
	p = json_array_get(profiles, 1);
	assert_string_equal(string(p, "end"), "killed");
	assert_int_equal(integer(p, "start_ns"), 9);
}

TEST_OF(struct document *d, every_loss_and_damage, setup, teardown)
{
	struct sp_profile *p = &d->x->profile;
	bool has_note = false;
	json_t *root;

	for (unsigned int i = 0; i < SP_LOSS_COUNT; i++)
		p->losses[i] = 100 + i;
	p->damaged_records = 2;
	p->ignored_bytes = 77;
	p->unfinished_records = 5;
	strcpy(p->damage, "offset 9: bad");
	root = export(d);
	assert_int_equal(json_object_size(at(root, "losses")), SP_LOSS_COUNT);
	for (unsigned int i = 0; i < SP_LOSS_COUNT; i++)
		assert_int_equal(integer(at(root, "losses"), sp_loss_name(i)),
				 100 + i);
	assert_int_equal(integer(root, "damage.records"), 2);
	assert_int_equal(integer(root, "damage.ignored_bytes"), 77);
	assert_string_equal(string(root, "damage.text"), "offset 9: bad");
	/* In the words of the text. */
	assert_int_equal(json_array_size(at(root, "remedies")), 0);
	for (size_t j = json_array_size(at(root, "notes")); j--;)
		has_note |= !strcmp(
			json_string_value(json_array_get(at(root, "notes"), j)),
			"the file is damaged: 2 bad records, 77 B "
			"ignored; first: offset 9: bad");
	assert_true(has_note);
	assert_int_equal(integer(root, "unfinished_records"), 5);
}

TEST_OF(struct document *d, functions, setup, teardown)
{
	const struct sp_class_sums *big, *small;
	FREED_BY(sp_class_sums_free) struct sp_class_sums both;
	const json_t *f;

	fixture_stack(d->x, (size_t[]){H_IN_G, MAIN}, 2, 9, 100);
	fixture_stack(d->x, (size_t[]){F, MAIN}, 2, 4, 100);
	f = at(export(d), "functions");
	big = fixture_sums(d->x, &d->x->stacks[0]);
	small = fixture_sums(d->x, &d->x->stacks[1]);
	sp_class_sums_init(&both, R);
	assert_int_equal(sp_class_sums_merge(&both, big), 0);
	assert_int_equal(sp_class_sums_merge(&both, small), 0);

	assert_int_equal(json_array_size(f), 4);
	assert_string_equal(string(f, "0.name"), "h");
	assert_string_equal(string(f, "0.module"), "/bin/app");
	assert_string_equal(string(f, "0.file"), "h.c");
	assert_int_equal(integer(f, "0.line"), 40);
	assert_int_equal(integer(f, "0.samples"), 9);
	assert_bytes(d, f, "0.flat_bytes", big);
	assert_objects(d, f, "0.flat_objects", big);
	assert_close(real(f, "0.flat_share.value"), 9 / 13.0, 1e-12);
	assert_between(0.3, real(f, "0.flat_share.lo"), 0.5);
	assert_between(0.8, real(f, "0.flat_share.hi"), 0.95);
	assert_string_equal(string(f, "1.name"), "app+0x1f");
	assert_null_at(f, "1.file");
	assert_int_equal(integer(f, "1.line"), 0);
	assert_string_equal(string(f, "2.name"), "main");
	assert_int_equal(integer(f, "2.samples"), 0);
	assert_int_equal(integer(f, "2.cum_samples"), 13);
	assert_bytes(d, f, "2.cum_bytes", &both);
	assert_true(real(f, "2.cum_share.value") == 1);
	assert_true(real(f, "2.cum_share.hi") == 1);
	assert_true(real(f, "2.flat_share.lo") == 0);
}

TEST_OF(struct document *d, stacks, setup, teardown)
{
	struct sp_stack *s;
	const json_t *stacks, *frames;

	fixture_stack(d->x, (size_t[]){MAIN, H_IN_G}, 2, 1, 100);
	s = fixture_stack(d->x, (size_t[]){H_IN_G, MAIN}, 2, 9, 100);
	s->flags = SP_STACK_TRUNCATED;
	s->frames[1].module = 0;
	fixture_stack(d->x, NULL, 0, 4, 100)->flags = SP_STACK_CALLER_ONLY;
	stacks = at(export(d), "stacks");

	assert_int_equal(json_array_size(stacks), 3);
	assert_int_equal(integer(stacks, "0.samples"), 9);
	assert_true(json_is_true(at(stacks, "0.truncated")));
	assert_true(json_is_false(at(stacks, "0.caller_only")));
	assert_bytes(d, stacks, "0.flat_bytes", fixture_sums(d->x, s));
	assert_bytes(d, stacks, "0.cum_bytes", fixture_sums(d->x, s));
	assert_objects(d, stacks, "0.flat_objects", fixture_sums(d->x, s));
	/* Each frame once, and numbers of them. */
	assert_int_equal(integer(d->root, "schema_version"), 2);
	assert_int_equal(json_array_size(at(stacks, "0.frames")), 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(json_integer_value(json_array_get(
					 at(stacks, "0.frames"), (size_t)i)),
				 i);
	assert_int_equal(json_array_size(at(stacks, "1.frames")), 0);
	assert_int_equal(integer(stacks, "2.frames.0"), 3);
	assert_int_equal(integer(stacks, "2.frames.1"), 0);
	assert_int_equal(integer(stacks, "2.frames.2"), 1);
	frames = at(d->root, "frames");
	assert_int_equal(json_array_size(frames), 4);
	assert_string_equal(string(frames, "0.function"), "h");
	assert_true(json_is_true(at(frames, "0.inlined")));
	assert_string_equal(string(frames, "1.function"), "g");
	assert_string_equal(string(frames, "1.file"), "g.c");
	assert_int_equal(integer(frames, "1.line"), 31);
	assert_string_equal(string(frames, "1.module"), "/bin/app");
	assert_int_equal(integer(frames, "1.offset"), H_IN_G);
	assert_true(json_is_false(at(frames, "1.inlined")));
	assert_true(json_is_null(at(frames, "2.module")));
	assert_string_equal(string(frames, "3.module"), "/bin/app");
	assert_true(json_is_true(at(stacks, "1.caller_only")));
	assert_int_equal(integer(stacks, "2.samples"), 1);
}

TEST_OF(struct document *d, threads, setup, teardown)
{
	struct sp_thread_info *t = d->x->threads;
	const json_t *threads;

	d->x->profile.n_thread_infos = 2;
	t[0] = (struct sp_thread_info){.index = 1,
				       .tid = 7,
				       .name = "main",
				       .has_totals = true,
				       .exact_alloc_bytes = 123456,
				       .exact_alloc_objects = 12};
	d->x->next.thread = 0;
	fixture_stack(d->x, (size_t[]){F}, 1, 1, 100);
	d->x->next.thread = 1;
	fixture_samples(d->x, &d->x->stacks[0], 3, 100);
	t[1] = (struct sp_thread_info){.index = 2, .tid = 8, .exited = true};
	/* All 16 bytes taken: no NUL at the end. */
	memcpy(t[1].name, "0123456789abcdef", 16);
	threads = at(export(d), "thread_infos");

	assert_int_equal(json_array_size(threads), 2);
	assert_int_equal(integer(threads, "0.index"), 1);
	assert_int_equal(integer(threads, "0.tid"), 7);
	assert_string_equal(string(threads, "0.name"), "main");
	assert_true(json_is_false(at(threads, "0.exited")));
	assert_int_equal(integer(threads, "0.exact.alloc_bytes"), 123456);
	assert_int_equal(integer(threads, "0.exact.alloc_objects"), 12);
	assert_int_equal(integer(threads, "0.samples"), 1);
	assert_bytes(d, threads, "0.estimate.alloc_bytes",
		     &d->x->analysis->alloc->threads[0]);
	assert_objects(d, threads, "0.estimate.alloc_objects",
		       &d->x->analysis->alloc->threads[0]);
	assert_null_at(threads, "0.estimate.live_bytes");
	assert_int_equal(integer(threads, "1.samples"), 3);
	assert_string_equal(string(threads, "1.name"), "0123456789abcdef");
	assert_true(json_is_true(at(threads, "1.exited")));
	assert_true(json_is_null(at(threads, "1.exact")));
}

TEST_OF(struct document *d, settings_have_no_doubles, setup, teardown)
{
	const json_t *settings;

	d->x->infos[0] = (struct sp_info){"setting.period", "512K"};
	d->x->infos[1] = (struct sp_info){"exe", "/bin/app"};
	d->x->infos[2] = (struct sp_info){"setting.period", "again"};
	d->x->infos[3] = (struct sp_info){"exe", "again"};
	d->x->profile.n_infos = 4;
	settings = at(export(d), "settings");
	assert_int_equal(json_object_size(settings), 2);
	assert_string_equal(
		json_string_value(json_object_get(settings, "setting.period")),
		"512K");
	assert_string_equal(json_string_value(json_object_get(settings, "exe")),
			    "/bin/app");
}

TEST_OF(struct document *d, symbol_problems, setup, teardown)
{
	json_t *root;

	d->x->symbolizer.problem = &d->x->modules[1];
	d->x->symbolizer.reason = "no such file";
	root = export(d);
	assert_string_equal(string(root, "symbol_problems.0.module"),
			    "/lib/libz.so.1");
	assert_string_equal(string(root, "symbol_problems.0.reason"),
			    "no such file");
}

TEST_BETWEEN(empty, setup, teardown)
{
	json_t *root = export(*test_state);

	assert_int_equal(json_array_size(at(root, "functions")), 0);
	assert_int_equal(json_array_size(at(root, "stacks")), 0);
	assert_int_equal(json_array_size(at(root, "thread_infos")), 0);
	assert_int_equal(json_array_size(at(root, "symbol_problems")), 0);
	assert_int_equal(json_object_size(at(root, "settings")), 0);
	assert_true(real(root, "estimate.alloc_bytes.value") == 0);
}

/* A period of 1 has no error, and no division by it. */
TEST_OF(struct document *d, exact_profile, setup, teardown)
{
	const json_t *bytes;

	d->x->profile.period_bytes = 1;
	d->x->next.period_bytes = 1;
	fixture_stack(d->x, (size_t[]){F}, 1, 3, 7);
	bytes = at(export(d), "functions.0.flat_bytes");
	assert_true(real(bytes, "value") == 21);
	assert_true(real(bytes, "lo") == 21);
	assert_true(real(bytes, "hi") == 21);
}

/* Nothing in the text but printable characters and line ends. */
static void assert_harmless(const char *text)
{
	while (*text) {
		uint32_t code = 0;
		unsigned int n = sp_text_decode_utf8(text, &code);

		assert_true(n > 0);
		assert_true(code == '\n' || !sp_text_is_unsafe(code));
		assert_true(code != '<' && code != '>' && code != '&');
		text += n;
	}
}

static const char *exported_name(struct document *d, const char *name)
{
	fixture_symbol(d->x, 100, name, name, 1);
	d->x->modules[0].path = name;
	d->x->profile.command = name;
	d->x->infos[0] = (struct sp_info){name, name};
	d->x->profile.n_infos = 1;
	fixture_stack(d->x, (size_t[]){100}, 1, 5, 100);
	export(d);
	assert_harmless(d->text);
	assert_string_equal(string(d->root, "command"),
			    string(d->root, "functions.0.name"));
	assert_string_equal(string(d->root, "frames.0.module"),
			    string(d->root, "functions.0.name"));
	return string(d->root, "functions.0.name");
}

TEST_BETWEEN(every_valid_byte_survives, setup, teardown)
{
	char name[256];
	size_t n = 0;

	for (int byte = 1; byte < 0x80; byte++)
		name[n++] = (char)byte;
	name[n] = '\0';
	assert_string_equal(exported_name(*test_state, name), name);
}

TEST_BETWEEN(hostile_names, setup, teardown)
{
	static const char name[] =
		"</script><img onerror=\"x\">&amp;\\\" \x1b]52;c;eA==\x07\r\n"
		"\xe2\x80\xae\xe2\x80\xa8\xc2\x9b \xc3\xa9\xf0\x9f\x90\x98";

	assert_string_equal(exported_name(*test_state, name), name);
}

TEST_BETWEEN(bytes_that_are_not_utf8, setup, teardown)
{
	assert_string_equal(
		exported_name(*test_state,
			      "a\xff\xc0\xafz\xed\xa0\x80\xe2\x82"),
		"a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz"
		"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

TEST_MAIN(NULL, NULL)
