/* SPDX-License-Identifier: MIT */
/* The notes below the report: none in an ordinary run. */
#include "base/parse.h"
#include "support/page.h"
#include "support/test.h"
#include "support/text_checks.h"
#include "view/view.h"

#define R (512 * 1024)

static const char *print(struct page *page)
{
	struct sp_aggregate *a = fixture_aggregate(page->x);
	FILE *out = page_begin(page);
	sp_view_notes_print(out, a->analysis, a);
	fclose(out);
	return page->text;
}

/* What is lost is a share of the bytes, where it can be one; a little is no
 * news. */
TEST_OF(struct page *page, every_loss_is_a_note, page_setup, page_teardown)
{
	struct sp_profile *p = &page->x->profile;

	page_add_stacks(page->x);
	p->exact_alloc_bytes = 526 << 20;
	for (unsigned int i = 0; i < SP_LOSS_COUNT; i++) {
		/* Behind its first word, which may be there once. */
		const char *text, *help = strchr(sp_loss_help(i), ' ');
		char want[512];

		snprintf(want, sizeof(want), "%s\n", help);
		assert_has_not(print(page), want);
		p->losses[i] = 1ull << 40;
		assert_has(print(page), want);
		text = line_with(page->text, help);
		assert_true(strstr(text, "about 99.9% of the ") ||
			    strstr(text, "about 100.0% of the ") ||
			    strstr(text, "  - 1,099,511,627,776 "));
		assert_has_not(text, sp_loss_name(i));
		p->losses[i] = 0;
	}
	p->losses[SP_LOSS_NO_LANE] = 1;
	assert_has_not(print(page), "dropped");
	p->losses[SP_LOSS_NO_LANE] = 2;
	assert_has(print(page),
		   "  - about 0.2% of the bytes: samples dropped because every "
		   "writer lane was busy; estimates are low\n");
}

TEST_OF(struct page *page, notes, page_setup, page_teardown)
{
	struct sp_profile *p = &page->x->profile;
	const char *text;

	page_add_stacks(page->x);
	page->x->stacks[0].flags = SP_STACK_CALLER_ONLY;
	page->x->stacks[1].flags = SP_STACK_TRUNCATED;
	page->x->symbolizer.problem = &page->x->modules[1];
	page->x->symbolizer.reason = "is not there";
	page->x->infos[0] = (struct sp_info){"diagnosis", "nothing seen"};
	p->n_infos = 1;
	p->damaged_records = 1;
	p->ignored_bytes = 4096;
	strcpy(p->damage, "offset 65536: check");
	text = print(page);
	assert_has(text, "  - nothing seen\n");
	assert_has(text, "damaged: 1 bad record, 4 KiB ignored; first: "
			 "offset 65536: check\n");
	assert_has(text, "  - 4.8% of the bytes are in stacks deeper");
	assert_has_not(text, "callers");
	assert_has(
		text,
		"  - 0.2% of the bytes are in functions without "
		"names: /lib/libz.so.1 is not there; sampleprof run keeps "
		"the names of such files; with a copy of it: sampleprof "
		"symbolize --module /lib/libz.so.1=COPY app.7.sprof -o OUT\n");
	page->x->infos[0] = (struct sp_info){"setting.run", "none"};
	assert_has(print(page), "keeps the names");
	page->x->infos[0].value = "run's";
	assert_has_not(print(page), "keeps the names");
	page->x->stacks[0].flags = SP_STACK_NO_POINTER;
	assert_has(print(page),
		   "  - 95.1% of the bytes are in stacks that end at code "
		   "whose callers cannot be found: outer functions are "
		   "missing\n");
	page->x->infos[0] = (struct sp_info){"unwinder", "fp"};
	assert_has(print(page), "SAMPLEPROF_UNWIND=tables finds");
	/* Stripped: only what is flat for it is worth a word, and only a
	 * hundredth of all. */
	page->x->symbolizer.problem = NULL;
	assert_has_not(print(page), "libz.so.1");
}

TEST_OF(struct page *page, stripped_module, page_setup, page_teardown)
{
	fixture_stack(page->x, (size_t[]){H_IN_G, MAIN}, 2, 900, 64);
	fixture_stack(page->x, (size_t[]){NAMELESS, MAIN}, 2, 50, 64);
	/* Whichever number the module has. */
	for (size_t i = 0; i < 4; i++) {
		const uint32_t id = (uint32_t[]){2, 62, 63, 1000}[i];

		page->x->modules[1].id = page->x->stacks[1].frames[0].module =
			id;
		page->x->symbolizer.problem = NULL;
		assert_has(print(page),
			   "  - 5.3% of the bytes are in functions without "
			   "names: libz.so.1 is stripped: build it with -g");
		page->x->profile.path = i ? "my file" : "-x.sprof";
		assert_has(print(page),
			   i ? " sampleprof report --debuginfod 'my file'\n"
			     : " sampleprof report --debuginfod ./-x.sprof\n");
		assert_has(print(page), "    sampleprof report --see-through "
					"'^libz\\.' ");
		page->x->symbolizer.problem = &page->x->modules[1];
		page->x->symbolizer.reason = "is not there";
		assert_has(print(page), "5.3% of the bytes are in functions "
					"without names: /lib/libz.so.1 is not");
	}
	page->x->symbolizer.problem = NULL;
	/* No public server has what a user has built. */
	page->x->modules[1].path = "/home/me/libz.so.1";
	setenv("DEBUGINFOD_URLS", "", 1);
	assert_has(print(page), "libz.so.1 is stripped");
	assert_has_not(print(page), "--debuginfod");
	setenv("DEBUGINFOD_URLS", "https://debuginfod.example", 1);
	assert_has(print(page), "    sampleprof report --debuginfod");
	/* What was tried is no remedy. */
	page->x->symbolizer.options.use_debuginfod = true;
	assert_has(print(page), "    # --debuginfod: no server in "
				"DEBUGINFOD_URLS gave it\n");
	assert_has_not(print(page), "sampleprof report --debuginfod");
}

/* No remedy is proposed for a few bytes. */
TEST_OF(struct page *page, few_nameless, page_setup, page_teardown)
{
	fixture_stack(page->x, (size_t[]){H_IN_G, MAIN}, 2, 1000, 64);
	fixture_stack(page->x, (size_t[]){NAMELESS, MAIN}, 2, 50, 64);
	assert_has(print(page), "4.8% of the bytes are in functions");
	assert_has_not(print(page), "--see-through");
}

/* Few samples stand for many bytes each, which the exact total bounds once. */
TEST_OF(struct page *page, nameless_are_at_most_all, page_setup, page_teardown)
{
	struct sp_profile *p = &page->x->profile;

	fixture_stack(page->x, (size_t[]){NAMELESS, MAIN}, 2, 1, 64);
	fixture_stack(page->x, (size_t[]){NAMELESS, F, MAIN}, 3, 1, 64);
	fixture_stack(page->x, (size_t[]){NAMELESS, H_IN_G, MAIN}, 3, 1, 64);
	for (size_t i = 0; i < 3; i++)
		page->x->stacks[i].frames[0].module = 2;
	p->has_classes = true;
	p->classes[sp_format_class(64)] = (struct sp_class_total){1024, 16};
	p->exact_alloc_bytes = 1024;
	assert_has(print(page), "  - 100.0% of the bytes are in functions "
				"without names: libz.so.1 is stripped");
}

/* What a kill leaves is no damage, and where names come from is no news. */
TEST_OF(struct page *page, no_notes_in_ordinary_runs, page_setup, page_teardown)
{
	struct sp_profile *p = &page->x->profile;

	/* A frame that is not flat needs no name in a stripped file. */
	fixture_stack(page->x, (size_t[]){H_IN_G, MAIN}, 2, 1000, 64);
	fixture_stack(page->x, (size_t[]){F, NAMELESS}, 2, 100, 64);
	page->x->stacks[1].frames[1].module = 2;
	p->exact_alloc_bytes = 550 << 20;
	p->end = SP_PROFILE_END_KILLED;
	p->unfinished_records = 1;
	p->losses[SP_LOSS_UNWIND_EARLY] = 1;
	p->time_error_ns = p->duration_ns / 2000;
	page->x->symbolizer.named = 1500;
	page->x->symbolizer.embedded = 1100;
	assert_has_not(print(page), "notes:");
	page->x->symbolizer.problem = &page->x->modules[1];
	page->x->symbolizer.reason = "is not there";
	/* Every row of the table has a name: only some callers have none. */
	assert_has(print(page), "  - 9.1% of the bytes have callers without "
				"names: /lib/libz.so.1 is ");
	assert_has_not(print(page), "in functions without names");
}

/* Which runtimes keep memory to themselves, and which setting undoes it. */
TEST_BETWEEN(runtimes, page_setup, page_teardown)
{
	static const struct {
		const char *program;
		const char *module;
		const char *want;
	} cases[] = {
		{"/usr/bin/python3.11", "/lib/libz.so", "PYTHONMALLOC=malloc"},
		{"/usr/bin/blender", "/lib/libpython3.13.so.1.0", "Python"},
		{"/usr/bin/java", "/lib/libz.so", "Java heap is not seen"},
		{"/opt/app", "/jre/lib/server/libjvm.so", "Java heap"},
		{"/usr/bin/node", "/lib/libz.so", "JavaScript objects"},
		{"/opt/app", "/usr/share/dotnet/libcoreclr.so", ".NET heap"},
		{"/usr/bin/php8.2", "/lib/libz.so", "USE_ZEND_ALLOC=0"},
	};
	struct page *page = *test_state;
	struct sp_profile *p = &page->x->profile;

	page_add_stacks(page->x);
	p->exact_alloc_bytes = 526 << 20;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		p->program = cases[i].program;
		page->x->modules[1].path = cases[i].module;
		assert_has(print(page), cases[i].want);
	}
	p->mapped.is_known = true;
	assert_has_not(print(page), "--view mapped");
	p->program = "/usr/bin/node";
	assert_has(print(page), "node itself; --view mapped shows");
	/* If it is unmapped at the end, when it was most. */
	p->mapped.peak_bytes = 4 << 20;
	p->mapped.peak_ns = 1234567890;
	p->mapped.bytes = 3 << 20;
	assert_has(print(page), "node itself; --view mapped shows");
	p->mapped.bytes = 1 << 20;
	assert_has(print(page),
		   "node itself; --view mapped --at 1234568us shows");
	p->mapped.bytes = p->mapped.peak_bytes = 0;
	p->program = "/usr/bin/python3.11";
	page->x->infos[0] = (struct sp_info){"PYTHONMALLOC", "malloc"};
	p->n_infos = 1;
	assert_has_not(print(page), "Python");
	page->x->infos[0].value = "pymalloc";
	assert_has(print(page), "Python");
}

/* The estimate of all is a check of the whole: it speaks when it fails. */
/* A heap that the program maps, of a runtime that is not known. */
TEST_OF(struct page *page, mapped_heap, page_setup, page_teardown)
{
	struct sp_profile *p = &page->x->profile;

	page_add_stacks(page->x);
	p->exact_alloc_bytes = 40u << 20;
	p->mapped = (struct sp_mapped){
		.is_known = true, .bytes = 80u << 20, .peak_bytes = 80u << 20};
	assert_has(print(page), "  - most of its memory the program maps by "
				"itself, 80.0 MiB at its peak; --view mapped "
				"shows what it maps\n");
	p->exact_alloc_bytes++;
	assert_has_not(print(page), "most of its memory");
	p->exact_alloc_bytes = 0;
	p->mapped.bytes = p->mapped.peak_bytes = 4u << 20;
	assert_has(print(page), "most of its memory");
	p->mapped.peak_bytes--;
	assert_has_not(print(page), "most of its memory");
}

TEST_OF(struct page *page, self_check, page_setup, page_teardown)
{
	static const char failed[] = "the samples do not fit the exact total: "
				     "they estimate 526.0 MiB "
				     "(99.99 %: [";

	page_add_stacks(page->x);
	page->x->profile.exact_alloc_bytes = 526 << 20;
	assert_has_not(print(page), "do not fit");
	/* Outside the 95 % interval, as one run of 20 is. */
	page->x->profile.exact_alloc_bytes = 485 << 20;
	assert_has_not(print(page), "do not fit");
	page->x->profile.exact_alloc_bytes = 400 << 20;
	assert_has(print(page), failed);
	page->x->profile.exact_alloc_bytes = 700 << 20;
	assert_has(print(page), failed);
	/* Whatever method the rows are made with. */
	page->x->question.method = SP_METHOD_P3;
	page->x->question.confidence = 0.99;
	assert_has(print(page), failed);
	page->x->question.method = SP_METHOD_P3T;
	page->x->question.confidence = 0.95;

	/* Much may not have been published. */
	page->x->profile.end = SP_PROFILE_END_KILLED;
	page->x->profile.missing_bytes_max = 200 << 20;
	page->x->profile.exact_alloc_bytes = 400 << 20;
	assert_has_not(print(page), "do not fit");
	page->x->profile.exact_alloc_bytes = 250 << 20;
	assert_has(print(page), "do not fit");
	page->x->profile.exact_alloc_bytes = 700 << 20;
	assert_has(print(page), "do not fit");
}

/* The suggested period has to be one that the agent takes, and help. */
TEST_OF(struct page *page, no_samples, page_setup, page_teardown)
{
	const char *text;

	page->x->profile.exact_alloc_bytes = 312 << 10;
	text = print(page);
	assert_has(text, "0 samples: 312.0 KiB allocated, period 512 KiB; to "
			 "see more use SAMPLEPROF_PERIOD=4K\n");

	for (uint64_t bytes = 1; bytes < 1ull << 50; bytes = bytes * 3 + 1) {
		char *period;
		uint64_t period_bytes = 0;

		page->x->profile.period_bytes = 1ull << 50;
		page->x->profile.exact_alloc_bytes = bytes;
		text = print(page);
		assert_has(text, "SAMPLEPROF_PERIOD=");
		period = strdup(strstr(text, "_PERIOD=") + 8);
		period[strcspn(period, "\n")] = '\0';
		assert_true(sp_parse_size(period, &period_bytes));
		free(period);
		assert_true(period_bytes >= 1);
		assert_true(period_bytes == 1 || bytes / period_bytes >= 64);
		assert_true(bytes / period_bytes < 128);
	}
	/* There is no better one. */
	page->x->profile.period_bytes = R;
	page->x->profile.exact_alloc_bytes = 0;
	assert_has(print(page), "0 samples: no allocation was seen");
	page->x->profile.exact_alloc_bytes = 1ull << 40;
	assert_has_not(print(page), "SAMPLEPROF_PERIOD");
	/* A smaller period is of no use where sampling was off. */
	page->x->profile.period_bytes = 1ull << 50;
	page->x->profile.unsampled_bytes = 1ull << 40;
	text = print(page);
	assert_has(text, "0 samples: sampling was off all the time");
	assert_has_not(text, "SAMPLEPROF_PERIOD");
	page->x->profile.unsampled_bytes = (1ull << 40) - (1 << 20);
	assert_has(print(page),
		   "0 samples: 1.00 MiB allocated, period 1 PiB; to see more "
		   "use SAMPLEPROF_PERIOD=16K\n");
}

TEST_MAIN(NULL, NULL)
