/* SPDX-License-Identifier: MIT */
#include "serve/request.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"
#include "export/options.h"
#include "report/load.h"

/* What threads have in hand is written by then. */
#define LATE_MS 10u

/* The words of a command line. */
struct words {
	char text[12][32];
	char *at[14];
	int n;
};

static void __attribute__((format(printf, 2, 3)))
put_word(struct words *w, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(w->text[w->n], sizeof(w->text[w->n]), format, args);
	va_end(args);
	w->at[w->n] = w->text[w->n];
	w->n++;
}

/* The peak of a running process is found by one reading, and what was alive
 * then by the next, for which it must not have moved: it is that of what was
 * allocated before now. */
static void put_words(struct words *w, const struct sp_profile_request *q)
{
	static const char *const always[] = {"serve", "pprof", "-o", "-",
					     "--view"};

	for (size_t i = 0; i < sizeof(always) / sizeof(*always); i++)
		put_word(w, "%s", always[i]);
	put_word(w, "%s", q->view);
	if (q->from_ms)
		put_word(w, "--from=%" PRIu64 "ms", q->from_ms);
	if (strcmp(q->view, "peak") == 0 && q->to_ms > q->from_ms + LATE_MS)
		put_word(w, "--to=%" PRIu64 "ms", q->to_ms - LATE_MS);
	put_word(w, "--");
}

int sp_profile_request_write(FILE *out, const struct sp_profile_request *asked,
			     struct sp_symbol_cache *symbols,
			     struct sp_error *err)
{
	struct words words = {.n = 0};
	struct sp_export_request request;
	struct sp_profile *profile;
	struct sp_load_needs needs;
	char *path = strdup(asked->path);
	int r;

	if (!path)
		return sp_error_memory(err, NULL);
	put_words(&words, asked);
	words.at[words.n++] = path;
	r = sp_export_options_parse(words.n, words.at, &request, err);
	if (r >= 0) {
		request.symbols.cache = symbols;
		/* An idle process has allocated nothing since then. */
		request.question.from_may_be_late = true;
		needs = request.format->needs;
		needs.while_written = true;
		r = sp_load(request.files, request.n_files, &request.question,
			    &needs, NULL, NULL, &profile, err);
	}
	if (r >= 0) {
		r = sp_export_write(out, profile, &request, NULL, NULL, err);
		sp_profile_free(profile);
	}
	/* It may borrow the path. */
	if (r < 0 && err->file == path)
		err->file = asked->path;
	free(path);
	return r;
}
