/* SPDX-License-Identifier: MIT */
/* Labels of a process: which texts are labels, what is wrong with others, and
 * what they say; also of random text. */
#include "base/labels.h"
#include "base/rng.h"
#include "support/test.h"

static void refuses(const char *text, const char *why)
{
	const char *said = sp_labels_check(text);

	if (!said || !strstr(said, why))
		fail_msg("\"%.80s\": %s, not %s", text, said ? said : "fine",
			 why);
}

TEST(none)
{
	const char *at = "";
	struct sp_label label;

	assert_null(sp_labels_check(""));
	assert_false(sp_labels_next(&at, &label));
}

TEST(some)
{
	static const char text[] = "service=checkout,version=1.7,"
				   "image=reg:5000/a@sha256:0f+1";
	static const char *const want[][2] = {
		{"service", "checkout"},
		{"version", "1.7"},
		{"image", "reg:5000/a@sha256:0f+1"}};
	const char *at = text;
	struct sp_label label;

	assert_null(sp_labels_check(text));
	for (size_t i = 0; i < 3; i++) {
		assert_true(sp_labels_next(&at, &label));
		assert_int_equal(label.key_bytes, strlen(want[i][0]));
		assert_memory_equal(label.key, want[i][0], label.key_bytes);
		assert_int_equal(label.value_bytes, strlen(want[i][1]));
		assert_memory_equal(label.value, want[i][1], label.value_bytes);
	}
	assert_false(sp_labels_next(&at, &label));
}

TEST(wrong)
{
	refuses("a", "without a value");
	refuses("a,b=1", "without a value");
	refuses("=1", "has a key");
	refuses(",", "without a value");
	refuses("a b=1", "has a key");
	refuses("a=", "has a value that");
	refuses("a=1,", "comma");
	refuses("a=1,,b=2", "without a value");
	refuses("a=1,b=2,a=1", "twice");
	refuses("a=b=c", "has a value that");
	refuses("a=\"b\"", "has a value that");
	refuses("a='; DROP TABLE processes; --", "has a value that");
	refuses("a=b\nc=d", "has a value that");
	refuses("a=\x1b[31m", "has a value that");
	refuses("a=\\", "has a value that");
	refuses("a=\xc3\xa4", "has a value that");
}

static void fill(char *text, size_t key, size_t value)
{
	memset(text, 'k', key);
	text[key] = '=';
	memset(text + key + 1, 'v', value);
	text[key + 1 + value] = '\0';
}

TEST(limits)
{
	static char text[10 << 20];
	size_t n = 0;

	fill(text, SP_LABEL_KEY_BYTES_MAX, SP_LABEL_VALUE_BYTES_MAX);
	assert_null(sp_labels_check(text));
	fill(text, SP_LABEL_KEY_BYTES_MAX + 1, 1);
	refuses(text, "key of more than 63");
	fill(text, 1, SP_LABEL_VALUE_BYTES_MAX + 1);
	refuses(text, "value of more than 128");
	for (unsigned int i = 0; i < SP_LABELS_MAX; i++)
		n += (size_t)sprintf(text + n, "%sk%u=1", i ? "," : "", i);
	assert_null(sp_labels_check(text));
	strcpy(text + n, ",more=1");
	refuses(text, "more than 32");
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	refuses(text, "longer than 1024");
}

/* Random texts of few characters: one that is accepted is what its labels say,
 * written again, and has no key twice. */
TEST(random)
{
	static const char characters[] = "ab=,=,.\"";
	struct sp_rng rng;
	unsigned int accepted = 0;

	sp_rng_init(&rng, 1, 0);
	for (int turn = 0; turn < 200000; turn++) {
		char text[12] = "", again[16] = "";
		const char *at = text;
		struct sp_label label;
		size_t n = sp_rng_next(&rng) % (sizeof(text) - 1);

		for (size_t i = 0; i < n; i++)
			text[i] = characters[sp_rng_next(&rng) %
					     (sizeof(characters) - 1)];
		if (sp_labels_check(text))
			continue;
		accepted += *text != 0;
		while (sp_labels_next(&at, &label))
			sprintf(again + strlen(again), "%s%.*s=%.*s",
				*again ? "," : "", (int)label.key_bytes,
				label.key, (int)label.value_bytes, label.value);
		assert_string_equal(again, text);
	}
	assert_true(accepted > 1000);
}

TEST_MAIN(NULL, NULL)
