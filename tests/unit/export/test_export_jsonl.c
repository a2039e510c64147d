/* SPDX-License-Identifier: MIT */
/*
 * JSON Lines: header, a line for each sample, unknown fields, certain samples,
 * views, hostile names.
 */
#include <jansson.h>

#include "export/format.h"
#include "support/json_checks.h"
#include "support/report_fixture.h"
#include "support/test.h"

#define LINES 16

enum { MAIN = 0x10, H_IN_G = 0x20 };

struct document {
	struct fixture *x;
	char *text;
	size_t size;
	json_t *lines[LINES];
	size_t n;
};

static int setup(void **state)
{
	struct document *d = calloc(1, sizeof(*d));

	d->x = fixture_new(4096);
	d->x->profile.has_frees = true;
	fixture_symbol(d->x, MAIN, "main", "src/main.c", 10);
	fixture_symbol(d->x, H_IN_G, "h", "h.c", 40);
	fixture_symbol(d->x, H_IN_G, "g", "g.c", 31);
	*state = d;
	return 0;
}

static int teardown(void **state)
{
	struct document *d = *state;

	for (size_t i = 0; i < d->n; i++)
		json_decref(d->lines[i]);
	free(d->text);
	fixture_free(d->x);
	free(d);
	return 0;
}

/* Each line is a document. */
static void export(struct document *d)
{
	const struct sp_export_options options = {0};
	struct sp_aggregate *a = fixture_aggregate(d->x);
	FILE *out = open_memstream(&d->text, &d->size);
	char *rest, *line;

	assert_int_equal(sp_export_jsonl_write(out, a, &options, NULL), 0);
	fclose(out);
	assert_int_equal(strlen(d->text), d->size);
	assert_int_equal(d->text[d->size - 1], '\n');
	for (rest = d->text; (line = strsep(&rest, "\n")) && *line;) {
		json_error_t error;

		assert_true(d->n < LINES);
		d->lines[d->n] =
			json_loads(line, JSON_REJECT_DUPLICATES, &error);
		if (!d->lines[d->n])
			print_error("%s: %s\n", error.text, line);
		assert_non_null(d->lines[d->n++]);
	}
}

TEST_OF(struct document *d, header, setup, teardown)
{
	d->x->profile.losses[SP_LOSS_FILE_FULL] = 3;
	export(d);
	assert_int_equal(d->n, 1);
	assert_string_equal(string(d->lines[0], "type"), "header");
	assert_string_equal(string(d->lines[0], "schema"),
			    "sampleprof-samples");
	assert_int_equal(integer(d->lines[0], "version"), 1);
	assert_int_equal(integer(d->lines[0], "samples"), 0);
	assert_int_equal(integer(d->lines[0], "period_bytes"), 4096);
	assert_string_equal(string(d->lines[0], "view"), "alloc");
	assert_int_equal(integer(d->lines[0], "exact.alloc_bytes"), 5912331);
	assert_int_equal(json_object_size(at(d->lines[0], "losses")), 1);
	assert_int_equal(integer(at(d->lines[0], "losses"),
				 sp_loss_name(SP_LOSS_FILE_FULL)),
			 3);
	assert_null_at(d->lines[0], "damage");
}

TEST_OF(struct document *d, a_sample, setup, teardown)
{
	struct sp_sample *next = &d->x->next;
	struct sp_acc one;

	d->x->profile.n_thread_infos = 2;
	d->x->threads[0] =
		(struct sp_thread_info){.index = 4, .tid = 99, .name = "io"};
	d->x->threads[1] = (struct sp_thread_info){.index = 6};
	*next = (struct sp_sample){.id = 17,
				   .born_ns = 5,
				   .freed_ns = 25,
				   .offset_bytes = 99,
				   .period_bytes = 512,
				   .age_bytes = 77,
				   .thread = 0,
				   .freed_by = 1,
				   .free_missed = true};
	fixture_stack(d->x, (size_t[]){H_IN_G, MAIN}, 2, 1, 100)->id = 1234;
	export(d);
	assert_int_equal(d->n, 5);
	assert_string_equal(string(d->lines[1], "type"), "thread");
	assert_int_equal(integer(d->lines[1], "index"), 4);
	assert_int_equal(integer(d->lines[1], "tid"), 99);
	assert_string_equal(string(d->lines[1], "name"), "io");
	assert_string_equal(string(d->lines[3], "type"), "stack");
	assert_int_equal(integer(d->lines[3], "id"), 1234);
	assert_int_equal(json_array_size(at(d->lines[3], "frames")), 3);
	assert_string_equal(string(d->lines[3], "frames.0.function"), "h");
	assert_true(json_is_true(at(d->lines[3], "frames.0.inlined")));
	assert_string_equal(string(d->lines[3], "frames.1.function"), "g");

	sp_acc_init(&one, 512);
	sp_acc_add(&one, &d->x->profile.law, 100, 99, 512);
	assert_string_equal(string(d->lines[4], "type"), "sample");
	assert_int_equal(integer(d->lines[4], "id"), 17);
	assert_int_equal(integer(d->lines[4], "size"), 100);
	assert_int_equal(integer(d->lines[4], "offset"), 99);
	assert_int_equal(integer(d->lines[4], "period_bytes"), 512);
	assert_true(real(d->lines[4], "p") == as_written(1 / one.est_count));
	assert_true(real(d->lines[4], "weight_bytes") ==
		    as_written(one.est_bytes));
	assert_true(real(d->lines[4], "weight_count") ==
		    as_written(one.est_count));
	assert_int_equal(integer(d->lines[4], "born_ns"), 5);
	assert_int_equal(integer(d->lines[4], "freed_ns"), 25);
	assert_true(json_is_true(at(d->lines[4], "free_missed")));
	assert_int_equal(integer(d->lines[4], "age_bytes"), 77);
	assert_int_equal(integer(d->lines[4], "thread"), 4);
	assert_int_equal(integer(d->lines[4], "freed_by"), 6);
	assert_string_equal(string(d->lines[4], "entry"), sp_entry_name(0));
	assert_int_equal(integer(d->lines[4], "stack"), 1234);
}

TEST_OF(struct document *d, what_is_not_known, setup, teardown)
{
	fixture_stack(d->x, NULL, 0, 1, 100);
	export(d);
	assert_int_equal(d->n, 3);
	assert_null_at(d->lines[2], "freed_ns");
	assert_null_at(d->lines[2], "age_bytes");
	assert_null_at(d->lines[2], "thread");
	assert_null_at(d->lines[2], "freed_by");
	assert_int_equal(json_array_size(at(d->lines[1], "frames")), 0);
}

/* Certain to be sampled: at period 1, and large where the law says so. */
TEST_OF(struct document *d, certain, setup, teardown)
{
	d->x->next.period_bytes = 1;
	fixture_stack(d->x, (size_t[]){MAIN}, 1, 1, 3);
	d->x->next.period_bytes = 4096;
	d->x->profile.law.always_large = true;
	fixture_samples(d->x, &d->x->stacks[0], 1, 20000);
	export(d);
	assert_int_equal(d->n, 4);
	for (size_t i = 2; i < 4; i++) {
		assert_true(real(d->lines[i], "p") == 1);
		assert_true(real(d->lines[i], "weight_count") == 1);
	}
	assert_true(real(d->lines[3], "weight_bytes") == 20000);
}

/* Only what the view has, and only its stacks. */
TEST_OF(struct document *d, a_view, setup, teardown)
{
	fixture_stack(d->x, (size_t[]){MAIN}, 1, 2, 100);
	d->x->next.freed_ns = 1000;
	fixture_stack(d->x, (size_t[]){H_IN_G}, 1, 5, 100);
	d->x->question.has_view = true;
	d->x->question.view = SP_VIEW_LIVE;
	export(d);
	assert_int_equal(d->n, 4);
	assert_string_equal(string(d->lines[0], "view"), "live");
	assert_int_equal(integer(d->lines[0], "samples"), 2);
	assert_int_equal(integer(d->lines[1], "id"), 1);
}

TEST_BETWEEN(hostile, setup, teardown)
{
	static const char name[] = "\"}\n{\"type\":\"sample\"}\n\x1b\xff";
	struct document *d = *test_state;

	fixture_symbol(d->x, 0x50, name, name, 1);
	d->x->profile.command = name;
	d->x->modules[0].path = name;
	d->x->next.entry = 255;
	fixture_stack(d->x, (size_t[]){0x50}, 1, 1, INT64_MAX);
	export(d);
	assert_int_equal(d->n, 3);
	assert_string_equal(string(d->lines[0], "command"),
			    "\"}\n{\"type\":\"sample\"}\n\x1b\xef\xbf\xbd");
}

TEST_MAIN(NULL, NULL)
