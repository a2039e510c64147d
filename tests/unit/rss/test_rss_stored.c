/* SPDX-License-Identifier: MIT */
/* Ledgers of a profile: which of them there are and are found, what was written
 * is what is read, and damaged or hostile ones are left out or within limits.
 */
#include <stdlib.h>

#include "report/ledgers.h"
#include "rss/stored.h"
#include "support/test.h"

#define INFOS_MAX 16

struct file {
	struct sp_info infos[INFOS_MAX];
	struct sp_profile profile;
};

static void add(struct file *f, const char *key, const char *value)
{
	f->profile.infos = f->infos;
	f->infos[f->profile.n_infos++] = (struct sp_info){key, value};
}

static struct sp_ledgers read_all(const struct file *f)
{
	struct sp_ledgers all;

	assert_int_equal(sp_ledgers_read(&f->profile, &all), 0);
	return all;
}

static void assert_found(const struct sp_ledgers *all, const char *which,
			 uint64_t time_ns)
{
	const struct sp_ledger *l = sp_ledgers_find(all, which);

	assert_non_null(l);
	assert_int_equal(l->time_ns, time_ns);
}

#define PEAK "{\"why\": \"peak\", \"rss_bytes\": 5, \"rows\": []}"
#define END  "{\"why\": \"end\", \"rss_bytes\": 5, \"rows\": []}"
#define MARK(name)                                                             \
	"{\"why\": \"snapshot\", \"mark\": \"" name                            \
	"\", \"rss_bytes\": 5, \"rows\": []}"

TEST(which)
{
	struct file f = {.profile = {.n_infos = 0}};
	struct sp_ledgers all;

	add(&f, "exe", "/bin/true");
	add(&f, "ledger.30", PEAK);
	add(&f, "ledger.10", MARK("a"));
	add(&f, "ledger.20", PEAK);
	add(&f, "ledger.40", MARK("b"));
	all = read_all(&f);
	/* Of the peaks the last, in the order of time. */
	assert_int_equal(all.n, 3);
	assert_int_equal(all.list[0].time_ns, 10);
	assert_int_equal(all.list[1].time_ns, 30);
	assert_found(&all, NULL, 40);
	assert_found(&all, "a", 10);
	assert_found(&all, "peak", 30);
	assert_null(sp_ledgers_find(&all, "end"));
	sp_ledgers_free(&all);
	add(&f, "ledger.35", END);
	add(&f, "ledger.50", MARK("a"));
	all = read_all(&f);
	assert_int_equal(all.n, 4);
	assert_found(&all, NULL, 35);
	assert_found(&all, "a", 50);
	assert_string_equal(sp_ledger_name(sp_ledgers_find(&all, NULL)), "end");
	sp_ledgers_free(&all);
}

TEST(hostile)
{
	static const char *const bad[] = {
		"",
		"x",
		"[]",
		"{}",
		"null",
		"{\"why\": \"end\"}",
		"{\"why\": 5, \"rows\": []}",
		"{\"why\": \"end\", \"rows\": 5}",
		"{\"why\": \"end\", \"rows\": [] } x"};
	struct file f = {.profile = {.n_infos = 0}};
	struct sp_rss_ledger ledger;
	struct sp_ledgers all;
	const struct sp_ledger *l;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		add(&f, "ledger.1", bad[i]);
	add(&f, "ledger.", END);
	add(&f, "ledger.x", END);
	add(&f, "ledger", END);
	all = read_all(&f);
	assert_int_equal(all.n, 0);
	sp_ledgers_free(&all);
	f.profile.n_infos = 0;
	add(&f, "ledger.7",
	    "{\"why\": \"later\", \"rss_bytes\": -5, \"confidence\": 7, "
	    "\"rows\": [5, {}, {\"name\": \"heap_alive\", \"bytes\": 1e300}, "
	    "{\"name\": \"code\", \"bytes\": 10, \"lo\": 20, \"hi\": 5}, "
	    "{\"name\": \"of a later version\", \"bytes\": 3}]}");
	all = read_all(&f);
	l = sp_ledgers_find(&all, NULL);
	assert_non_null(l);
	assert_int_equal(l->why, SP_LEDGER_NOW);
	assert_int_equal(l->rss_bytes, 0);
	assert_int_equal(l->n_rows, 5);
	assert_true(l->rows[2].bytes.value == 0);
	assert_true(l->rows[3].bytes.lo == 10 && l->rows[3].bytes.hi == 10);
	assert_int_equal(sp_rss_ledger_read(l, &ledger), 0);
	assert_true(ledger.confidence > 0 && ledger.confidence < 1);
	assert_true(ledger.rows[SP_RSS_ROW_CODE].bytes.value == 10);
	assert_false(ledger.rows[SP_RSS_ROW_DATA].is_there);
	sp_ledgers_free(&all);
}

static char *text_of(const struct sp_rss_ledger *l, bool json)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	if (json)
		sp_rss_print_json(out, l, NULL, 0);
	else
		sp_rss_print(out, l);
	fclose(out);
	return text;
}

/* Written, read and written again: the same, as text and as JSON. */
TEST(there_and_back)
{
	struct sp_rss_ledger l = {.why = SP_LEDGER_SNAPSHOT,
				  .time_ns = 5000000000u,
				  .mark = "<b>\"x\"</b>",
				  .pid = 7,
				  .name = "app\x1b[31m",
				  .rss = 9000000,
				  .vm_rss = 9000000,
				  .swap = 4096,
				  .threads = 3,
				  .stacks = 2,
				  .confidence = 0.95,
				  .untouched = {5000, 4000, 6000},
				  .has_profile = true,
				  .has_objects = true,
				  .was_asked = true,
				  .unsampled_bytes = 5};
	struct file f = {.profile = {.n_infos = 0}};
	struct sp_rss_ledger read;
	FREED_BY(sp_ledgers_free) struct sp_ledgers all;
	char *json, *text, *again;

	l.memory.allocator = SP_ALLOCATOR_JEMALLOC;
	l.memory.free_bytes = 3;
	for (unsigned int i = 0; i < SP_RSS_ROWS; i++)
		l.rows[i] = (struct sp_rss_row){
			{1000.0 * i, 900.0 * i, 1000.0 * i + i % 2}, i, true};
	json = text_of(&l, true);
	text = text_of(&l, false);
	add(&f, "ledger.5000000000", json);
	all = read_all(&f);
	assert_int_equal(all.n, 1);
	assert_int_equal(sp_rss_ledger_read(&all.list[0], &read), 0);
	again = text_of(&read, true);
	assert_string_equal(json, again);
	free(again);
	again = text_of(&read, false);
	assert_string_equal(text, again);
	free(again);
	free(json);
	free(text);
}

TEST_MAIN(NULL, NULL)
