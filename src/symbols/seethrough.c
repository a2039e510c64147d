/* SPDX-License-Identifier: MIT */
#include "symbols/seethrough.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "symbols/demangle.h"
#include "symbols/home.h"
#include "symbols/pattern.h"
#include "symbols/plainname.h"

#define OPTION "--see-through"

/* The expressions of one role and place as one, which is tried once: each
 * begins with ^. */
#define RULES_BEGIN      "^(?(DEFINE)(?<angle><(?:[^<>-]|->|-|(?&angle))*>))(?:(?!)"
#define RULES_END        ")"
#define RULE(expression) "|" expression
#define SP_SEE_THROUGH(role, where, expression, examples)                      \
	role##_##where(expression)

/* each expands to nothing, except in the list that is being made */
#define ALLOCATOR_NAME(expression)
#define SCRIPT_NAME(expression)
#define INTERPRETER_NAME(expression)
#define LIBRARY_NAME(expression)
#define LIBRARY_MODULE(expression)
#define WRAPPER_NAME(expression)

#undef ALLOCATOR_NAME
#define ALLOCATOR_NAME(expression) RULE(expression)
static const char allocator_names[] = RULES_BEGIN
#include "symbols/see_through.def"
	RULES_END;
#undef ALLOCATOR_NAME
#define ALLOCATOR_NAME(expression)

#undef SCRIPT_NAME
#define SCRIPT_NAME(expression) RULE(expression)
static const char script_names[] = RULES_BEGIN
#include "symbols/see_through.def"
	RULES_END;
#undef SCRIPT_NAME
#define SCRIPT_NAME(expression)

#undef INTERPRETER_NAME
#define INTERPRETER_NAME(expression) RULE(expression)
static const char interpreter_names[] = RULES_BEGIN
#include "symbols/see_through.def"
	RULES_END;
#undef INTERPRETER_NAME
#define INTERPRETER_NAME(expression)

#undef LIBRARY_NAME
#define LIBRARY_NAME(expression) RULE(expression)
static const char library_names[] = RULES_BEGIN
#include "symbols/see_through.def"
	RULES_END;
#undef LIBRARY_NAME
#define LIBRARY_NAME(expression)

#undef WRAPPER_NAME
#define WRAPPER_NAME(expression) RULE(expression)
static const char wrapper_names[] = RULES_BEGIN
#include "symbols/see_through.def"
	RULES_END;
#undef WRAPPER_NAME
#define WRAPPER_NAME(expression)

#undef LIBRARY_MODULE
#define LIBRARY_MODULE(expression) RULE(expression)
static const char library_modules[] = RULES_BEGIN
#include "symbols/see_through.def"
	RULES_END;

struct sp_see_through {
	bool all_frames;
	struct sp_pattern *allocator_names;
	struct sp_pattern *script_names;
	struct sp_pattern *interpreter_names;
	struct sp_pattern *library_names;
	struct sp_pattern *library_modules;
	struct sp_pattern *wrapper_names;
	struct sp_pattern **more;
	size_t n_more, more_room;
};

/* ---- what the user adds ---- */

static int add_more(struct sp_see_through *rules, const char *expression,
		    struct sp_error *err)
{
	int r;

	if (sp_array_reserve((void **)&rules->more, &rules->more_room,
			     rules->n_more, sizeof(*rules->more)) < 0)
		return sp_error_memory(err, NULL);
	r = sp_pattern_new(OPTION, expression, &rules->more[rules->n_more],
			   err);
	rules->n_more += r >= 0;
	return r;
}

/* The expression in a line of the file, in place; "" if it has none. */
static char *trim_line(char *line)
{
	size_t n;

	line += strspn(line, " \t");
	n = *line == '#' ? 0 : strlen(line);
	while (n && strchr(" \t\r\n", line[n - 1]))
		n--;
	line[n] = '\0';
	return line;
}

static int add_lines(struct sp_see_through *rules, FILE *in, const char *path,
		     struct sp_error *err)
{
	char *line = NULL;
	size_t room = 0, number = 0;
	int r = 0;

	while (!r && getline(&line, &room, in) >= 0) {
		const char *expression = trim_line(line);
		struct sp_error why;

		number++;
		if (!*expression)
			continue;
		r = add_more(rules, expression, &why);
		if (r < 0)
			sp_error_set(err, r, path, "line %zu: %.200s", number,
				     why.message);
	}
	if (!r && ferror(in))
		r = sp_error_set(err, -errno, path, "cannot read: %s",
				 strerror(errno));
	free(line);
	return r;
}

static int add_file(struct sp_see_through *rules, const char *path,
		    struct sp_error *err)
{
	FILE *in = fopen(path, "re");
	int r;

	if (!in)
		return sp_error_set(err, -errno, path, OPTION ": %s",
				    strerror(errno));
	r = add_lines(rules, in, path, err);
	fclose(in);
	return r;
}

/* ---- all rules ---- */

static int add_library(struct sp_see_through *rules, const char *more,
		       struct sp_error *err)
{
	int r = sp_pattern_new(OPTION, library_names, &rules->library_names,
			       err);

	if (r >= 0)
		r = sp_pattern_new(OPTION, library_modules,
				   &rules->library_modules, err);
	if (r >= 0)
		r = sp_pattern_new(OPTION, wrapper_names, &rules->wrapper_names,
				   err);
	if (r >= 0)
		r = sp_pattern_new(OPTION, script_names, &rules->script_names,
				   err);
	if (r >= 0)
		r = sp_pattern_new(OPTION, interpreter_names,
				   &rules->interpreter_names, err);
	if (r < 0 || !more)
		return r;
	return *more == '@' ? add_file(rules, more + 1, err)
			    : add_more(rules, more, err);
}

int sp_see_through_new(const struct sp_see_through_options *options,
		       struct sp_see_through **ret, struct sp_error *err)
{
	struct sp_see_through *rules = calloc(1, sizeof(*rules));
	int r;

	if (!rules)
		return sp_error_memory(err, NULL);
	rules->all_frames = options->all_frames;
	r = sp_pattern_new(OPTION, allocator_names, &rules->allocator_names,
			   err);
	if (r >= 0)
		r = add_library(rules, options->more, err);
	if (r < 0) {
		sp_see_through_free(rules);
		return r;
	}
	*ret = rules;
	return 0;
}

static bool matches_name(const struct sp_pattern *pattern, const char *text)
{
	struct sp_error ignored;

	return sp_pattern_search(pattern, text, &ignored) > 0;
}

static bool matches_more(const struct sp_see_through *rules, const char *module,
			 const char *name)
{
	char *plain = rules->n_more ? sp_plain_name(name, false) : NULL;
	bool is_match = false;

	if (plain)
		plain[sp_demangle_short(plain)] = '\0';
	for (size_t i = 0; i < rules->n_more; i++)
		is_match |= matches_name(rules->more[i], name) ||
			    matches_name(rules->more[i], module) ||
			    (plain && matches_name(rules->more[i], plain));
	free(plain);
	return is_match;
}

/* Code without a symbol: "libz.so.1+0x2a40"; of a path by names "[unknown]". */
static bool is_nameless(const char *name)
{
	const char *offset = strstr(name, "+0x");

	return strcmp(name, "[unknown]") == 0 ||
	       (offset && offset[3] && *name != '[' &&
		!offset[3 + strspn(offset + 3, "0123456789abcdef")]);
}

static enum sp_role role_of(const struct sp_see_through *rules,
			    const char *module, const char *name)
{
	if (matches_name(rules->allocator_names, name))
		return SP_ROLE_ALLOCATOR;
	if (rules->all_frames)
		return SP_ROLE_OWN;
	if (matches_name(rules->library_names, name) ||
	    matches_name(rules->library_modules, module) ||
	    matches_more(rules, module, name))
		return SP_ROLE_LIBRARY;
	if (matches_name(rules->wrapper_names, name))
		return SP_ROLE_WRAPPER;
	if (matches_name(rules->interpreter_names, name))
		return SP_ROLE_INTERPRETER;
	if ((!*module || strcmp(module, SP_FORMAT_PYTHON) == 0) &&
	    matches_name(rules->script_names, name))
		return SP_ROLE_SCRIPT;
	return is_nameless(name) ? SP_ROLE_NAMELESS : SP_ROLE_OWN;
}

enum sp_role sp_see_through_role(const struct sp_see_through *rules,
				 const char *module, const char *name)
{
	static const char or_text[] = " or ";
	char *without = sp_home_without(name), *at = without, * or ;
	enum sp_role role, other;

	if (!without)
		return role_of(rules, module, name);
	/* Of functions that are the same (symbols/folded.h), one that is the
	 * program's own decides. */
	role = SP_ROLE_LIBRARY;
	for (bool is_first = true; at; is_first = false) {
		or = strstr(at, or_text);
		if (or)
			* or = '\0';
		other = role_of(rules, module, at);
		if (is_first || other == SP_ROLE_OWN)
			role = other;
		at = or ? or +sizeof(or_text) - 1 : NULL;
	}
	free(without);
	return role;
}

/* The innermost function of the interpreter's that a script calls; n: none.  A
 * part of it may have no name. */
static size_t find_interpreter(const enum sp_role *roles, size_t n)
{
	for (size_t i = 0; i + 1 < n; i++)
		if ((roles[i] == SP_ROLE_INTERPRETER ||
		     roles[i] == SP_ROLE_NAMELESS) &&
		    roles[i + 1] == SP_ROLE_SCRIPT)
			return i;
	return n;
}

/* Function i is a wrapper, or has no name, nor have those up to a wrapper. */
static bool is_in_wrapper(const enum sp_role *roles, size_t n, size_t i,
			  sp_same_module_fn *is_same_module, const void *arg)
{
	while (roles[i] == SP_ROLE_NAMELESS && i + 1 < n &&
	       is_same_module(arg, i, i + 1))
		i++;
	return roles[i] == SP_ROLE_WRAPPER;
}

size_t sp_find_flat(enum sp_role *roles, size_t n,
		    sp_same_module_fn *is_same_module, const void *arg)
{
	const size_t interpreter = find_interpreter(roles, n);
	enum sp_role least = SP_ROLE_ALLOCATOR;
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		const bool is_for_script = interpreter < n && i < interpreter;

		if (is_in_wrapper(roles, n, i, is_same_module, arg) ||
		    (is_for_script && roles[i] == SP_ROLE_NAMELESS))
			roles[i] = SP_ROLE_LIBRARY;
		if (roles[i] < SP_ROLE_LIBRARY)
			roles[i] = roles[i] != SP_ROLE_SCRIPT &&
						   interpreter < n &&
						   is_same_module(arg, i,
								  interpreter)
					   ? SP_ROLE_LIBRARY
					   : SP_ROLE_OWN;
		if (roles[i] >= least)
			continue;
		least = roles[i];
		at = i;
	}
	return at;
}

void sp_see_through_free(struct sp_see_through *rules)
{
	if (!rules)
		return;
	sp_pattern_free(rules->allocator_names);
	sp_pattern_free(rules->script_names);
	sp_pattern_free(rules->interpreter_names);
	sp_pattern_free(rules->library_names);
	sp_pattern_free(rules->library_modules);
	sp_pattern_free(rules->wrapper_names);
	for (size_t i = 0; i < rules->n_more; i++)
		sp_pattern_free(rules->more[i]);
	free(rules->more);
	free(rules);
}
