/* SPDX-License-Identifier: MIT */
#include "support/export_fixture.h"
#include "support/test.h"

int export_into(struct fixture *x, export_fn *write,
		const struct sp_export_options *options, char **text,
		size_t *ret_n, struct sp_error *err)
{
	const struct sp_export_options none = {0};
	struct sp_aggregate *a = fixture_aggregate(x);
	FILE *out;
	int r;

	free(*text);
	out = open_memstream(text, ret_n);
	assert_non_null(out);
	r = write(out, a, options ? options : &none, err);
	assert_int_equal(fclose(out), 0);
	return r;
}

char *export_text(struct fixture *x, export_fn *write,
		  const struct sp_export_options *options, size_t *ret_n)
{
	char *text = NULL;
	size_t n;

	assert_int_equal(export_into(x, write, options, &text, &n, NULL), 0);
	if (ret_n)
		*ret_n = n;
	return text;
}

struct fixture *export_fixture_of_names(const char *hostile_name,
					const char *hostile_file)
{
	struct fixture *x = fixture_new(1);

	fixture_symbol(x, NAMES_MAIN, "main", "main.c", 10);
	fixture_symbol(x, NAMES_F, "f", NULL, 0);
	fixture_symbol(x, NAMES_INLINED, "g", NULL, 0);
	fixture_symbol(x, NAMES_INLINED, "h", NULL, 0);
	fixture_symbol(x, NAMES_HOSTILE, hostile_name, hostile_file, 3);
	fixture_symbol(x, NAMES_MAIN_AGAIN, "main", "main.c", 20);
	return x;
}
