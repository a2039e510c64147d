/* SPDX-License-Identifier: MIT */
#include "compare/summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct taker {
	struct sp_summary *summary;
	bool is_short; /* of memory */
};

static int add_nameless(struct sp_summary *s, const struct sp_module *module,
			const char *reason)
{
	const char *builds = strstr(reason, " (build id ");
	struct sp_nameless *grown =
		realloc(s->nameless, (s->n_nameless + 1) * sizeof(*grown));
	struct sp_nameless *last;

	if (!grown)
		return -ENOMEM;
	s->nameless = grown;
	last = &grown[s->n_nameless];
	*last = (struct sp_nameless){
		.module = malloc(3 * strlen(module->path) + 1),
		.path = strdup(module->path),
		/* without the long numbers of builds */
		.reason = builds ? strndup(reason, (size_t)(builds - reason))
				 : strdup(reason)};
	s->n_nameless++;
	if (!last->module || !last->path || !last->reason)
		return -ENOMEM;
	*sp_paths_put_module(last->module, module) = '\0';
	return 0;
}

static void take_problem(void *arg, const struct sp_module *module,
			 const char *reason)
{
	struct taker *t = arg;

	t->is_short |= add_nameless(t->summary, module, reason) < 0;
}

int sp_summary_take_nameless(struct sp_summary *summary,
			     const struct sp_symbolizer *symbolizer)
{
	struct taker t = {summary, false};

	sp_symbolizer_problems(symbolizer, take_problem, &t);
	return t.is_short ? -ENOMEM : 0;
}
