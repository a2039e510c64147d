/* SPDX-License-Identifier: MIT */
/*
 * One pass over the text, to a buffer of the same size, because the output is
 * never longer than the input.  When a bracket closes, its contents are already
 * in the buffer and can be removed.
 */
#include "symbols/plainname.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/operator.h"
#include "symbols/demangle.h"
#include "symbols/home.h"

/* Brackets within each other; deeper text stays as it is. */
#define DEPTH_MAX 100

/* Among the ends of a text: " as ", which is more than one character. */
#define END_AS "\1"

struct rewrite {
	const char *in;
	char *out; /* ends in '\0' only when all is done */
	size_t n;  /* bytes of out */
	unsigned int depth;
	bool is_rust;
	bool keeps_traits;
	bool is_bad;
};

static void rewrite_text(struct rewrite *w, const char *ends);

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '_' || c == '$' ||
	       (unsigned char)c >= 0x80;
}

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/* Do the first n bytes of the output end like that? */
static bool ends_before(const struct rewrite *w, size_t n, const char *end)
{
	const size_t n_end = strlen(end);

	return n >= n_end && memcmp(w->out + n - n_end, end, n_end) == 0;
}

static void put_text(struct rewrite *w, const char *text, size_t n)
{
	memmove(w->out + w->n, text, n);
	w->n += n;
}

static void copy_text(struct rewrite *w, size_t n)
{
	put_text(w, w->in, n);
	w->in += n;
}

/* ---- default template arguments ---- */

/* The default argument of a class of the standard library. */
struct default_argument {
	const char *text;  /* begins so */
	bool of_first;     /* goes on with the first argument and '>' */
	const char *class; /* only of this one; NULL: of any */
};

static const struct default_argument cxx_defaults[] = {
	{"std::allocator<", false, NULL},
	{"std::char_traits<", true, NULL},
	{"std::regex_traits<", true, NULL},
	{"std::less<", true, NULL},
	{"std::hash<", true, NULL},
	{"std::equal_to<", true, NULL},
	{"std::default_delete<", true, NULL},
	{"std::deque<", true, "std::queue"},
	{"std::deque<", true, "std::stack"},
	{"std::vector<", true, "std::priority_queue"},
	{"(__gnu_cxx::_Lock_policy)", false, NULL},
	{0},
};

/* The older scheme writes the parameters' names in the library's own code. */
static const struct default_argument rust_defaults[] = {
	{"Global", false, NULL}, {"RandomState", false, NULL}, {0}};

/* A list of arguments on its way: positions in `out`. */
struct list {
	size_t class_end; /* where the opening bracket stands */
	size_t first, first_end;
	size_t kept_end; /* behind the last argument that is no default */
};

static bool is_class(const struct rewrite *w, const struct list *l,
		     const char *class)
{
	return !class || ends_before(w, l->class_end, class);
}

/* Is the argument from `at` to the end of `out` the default? */
static bool is_default(const struct rewrite *w, const struct list *l, size_t at)
{
	const char *text = w->out + at;
	const size_t n = w->n - at, n_first = l->first_end - l->first;
	const struct default_argument *d =
		w->is_rust ? rust_defaults : cxx_defaults;

	if (w->is_rust && n == 1 && (*text == 'A' || *text == 'S'))
		return true;
	for (; d->text; d++) {
		const size_t n_text = strlen(d->text);

		if (n < n_text || memcmp(text, d->text, n_text) != 0 ||
		    !is_class(w, l, d->class))
			continue;
		if (!d->of_first)
			return true;
		if (n >= n_text + n_first + 1 &&
		    memcmp(text + n_text, w->out + l->first, n_first) == 0 &&
		    (text[n_text + n_first] == '>' ||
		     text[n_text + n_first] == ','))
			return true;
	}
	return false;
}

/* "std::basic_NAME<char>" is std::NAME, and of wchar_t std::wNAME. */
static void use_alias(struct rewrite *w, const struct list *l)
{
	static const char basic[] = "std::basic_";
	const size_t n_basic = sizeof(basic) - 1;
	size_t at = l->class_end, name;
	bool is_wide;

	while (at && is_word(w->out[at - 1]))
		at--;
	name = at + n_basic - strlen("std::");
	if (at < 5 || name >= l->class_end ||
	    memcmp(w->out + at - 5, basic, n_basic) != 0 ||
	    (at > 5 && is_word(w->out[at - 6])))
		return;
	is_wide = ends_before(w, w->n, "<wchar_t>");
	if (!is_wide && !ends_before(w, w->n, "<char>"))
		return;
	w->n = at;
	if (is_wide)
		put_text(w, "w", 1);
	put_text(w, w->out + name, l->class_end - name);
}

/* From '<' on, to behind its '>'. */
static void rewrite_arguments(struct rewrite *w)
{
	struct list l = {.class_end = w->n, .first = w->n + 1};
	bool is_first = true;

	copy_text(w, 1);
	l.kept_end = w->n;
	for (;;) {
		size_t at = w->n;

		rewrite_text(w, ",>");
		while (at < w->n && w->out[at] == ' ')
			at++;
		while (w->n > at && w->out[w->n - 1] == ' ')
			w->n--; /* "> >" */
		if (is_first)
			l.first_end = w->n;
		if (!is_default(w, &l, at) || (is_first && !w->is_rust))
			l.kept_end = w->n;
		is_first = false;
		if (w->is_bad || *w->in != ',')
			break;
		copy_text(w, 1);
	}
	if (*w->in != '>')
		w->is_bad = true;
	if (w->is_bad)
		return;
	w->n = l.kept_end;
	copy_text(w, 1);
	if (w->n == l.first + 1 && w->is_rust)
		w->n = l.class_end - 2 * ends_before(w, l.class_end, "::");
	if (!w->is_rust)
		use_alias(w, &l);
}

/* ---- Rust ---- */

/* The length of a path from `text` on that begins in the standard library, up
 * to the type in it: of "alloc::vec::" before "Vec".  0: there is none. */
static size_t library_modules(const char *text)
{
	static const char *const crates[] = {
		"alloc::", "core::", "std::", "hashbrown::"};
	const char *at = text;

	for (size_t i = 0; at == text && i < sizeof(crates) / sizeof(*crates);
	     i++)
		if (starts_with(text, crates[i]))
			at += strlen(crates[i]);
	while (at > text && *at >= 'a' && *at <= 'z') {
		while (is_word(*at))
			at++;
		if (!starts_with(at, "::"))
			return 0;
		at += 2;
	}
	return *at >= 'A' && *at <= 'Z' ? (size_t)(at - text) : 0;
}

/* Is it "module::Type" with or without arguments, and no "dyn", "&", "[T]" or
 * parameter? */
static bool is_type_path(const char *text)
{
	const size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ:");

	return memchr(text, ':', n) && (text[n] == '<' || text[n] == '>' ||
					starts_with(text + n, " as "));
}

/* "<Type>::" is "Type::", and so is "<Type as Trait>::" unless the trait is
 * kept. */
static void rewrite_self(struct rewrite *w)
{
	bool is_path = is_type_path(w->in + 1);
	const size_t open = w->n;
	size_t self_end;

	copy_text(w, 1);
	rewrite_text(w, ">" END_AS);
	self_end = w->n;
	if (*w->in == ' ') {
		is_path &= !w->keeps_traits;
		copy_text(w, strlen(" as "));
		rewrite_text(w, ">");
	}
	if (*w->in != '>')
		w->is_bad = true;
	if (w->is_bad)
		return;
	copy_text(w, 1);
	if (!is_path || !starts_with(w->in, "::"))
		return;
	memmove(w->out + open, w->out + open + 1, self_end - open - 1);
	w->n = self_end - 1;
}

/* ---- all text ---- */

/* From "operator" on, to behind its template arguments. */
static void rewrite_operator(struct rewrite *w)
{
	copy_text(w, sp_operator_bytes(w->in));
	/* "operator<< <char>" */
	if (starts_with(w->in, " <"))
		copy_text(w, 1);
	if (*w->in == '<')
		rewrite_arguments(w);
}

/* The constructor of a class with an alias: "std::string::basic_string". */
static bool use_alias_again(struct rewrite *w, size_t n_word)
{
	const size_t n_basic = strlen("basic_");
	const bool is_destructor = ends_before(w, w->n, "~");
	const size_t n_mark = strlen("::") + is_destructor;
	size_t at = w->n, n;

	if (n_word <= n_basic || !starts_with(w->in, "basic_") || at < n_mark)
		return false;
	at -= n_mark;
	if (memcmp(w->out + at, "::", 2) != 0)
		return false;
	for (n = 0; n < at && is_word(w->out[at - n - 1]); n++)
		;
	/* with 'w' in front or without */
	if (n < n_word - n_basic || n > n_word - n_basic + 1 || at < n + 5 ||
	    memcmp(w->out + at - n - 5, "std::", 5) != 0 ||
	    memcmp(w->out + at - (n_word - n_basic), w->in + n_basic,
		   n_word - n_basic) != 0)
		return false;
	put_text(w, w->out + at - n, n);
	w->in += n_word;
	return true;
}

/* Namespaces of a version of the library, which no source names. */
static bool is_inline_namespace(const char *word, size_t n)
{
	static const char *const names[] = {"__cxx11", "__1",    "__2",
					    "__8",     "__ndk1", "_V2"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strlen(names[i]) == n && memcmp(word, names[i], n) == 0)
			return true;
	return false;
}

static void rewrite_word(struct rewrite *w)
{
	const bool is_inside = ends_before(w, w->n, "::");
	size_t n = 0;

	if (w->is_rust && !is_inside)
		w->in += library_modules(w->in);
	while (is_word(w->in[n]))
		n++;
	if (!w->is_rust && is_inside && is_inline_namespace(w->in, n) &&
	    starts_with(w->in + n, "::")) {
		w->in += n + 2;
	} else if (!w->is_rust && n == strlen("operator") &&
		   sp_operator_bytes(w->in)) {
		rewrite_operator(w);
	} else if (!use_alias_again(w, n)) {
		copy_text(w, n);
	}
}

/* From '(', '[' or '{' on, to behind its end. */
static void rewrite_bracket(struct rewrite *w, const char *end)
{
	const size_t at = w->n;
	const bool is_tag = starts_with(w->in, "[abi:");

	copy_text(w, 1);
	rewrite_text(w, end);
	if (*w->in != *end)
		w->is_bad = true;
	if (w->is_bad)
		return;
	copy_text(w, 1);
	if (is_tag)
		w->n = at;
}

static void rewrite_angle(struct rewrite *w)
{
	const bool is_argument = (w->n && is_word(w->out[w->n - 1])) ||
				 (w->is_rust && ends_before(w, w->n, "::"));

	if (is_argument)
		rewrite_arguments(w);
	else if (w->is_rust)
		rewrite_self(w);
	else
		w->is_bad = true;
}

/* Up to one of `ends`, or END_AS for " as ", or the end of the text. */
static void rewrite_text(struct rewrite *w, const char *ends)
{
	if (++w->depth > DEPTH_MAX)
		w->is_bad = true;
	while (!w->is_bad && *w->in && !strchr(ends, *w->in)) {
		const char c = *w->in;

		if (c == ' ' && strstr(ends, END_AS) &&
		    starts_with(w->in, " as "))
			break;
		if (is_word(c))
			rewrite_word(w);
		else if (c == '(')
			rewrite_bracket(w, ")");
		else if (c == '[')
			rewrite_bracket(w, "]");
		else if (c == '{')
			rewrite_bracket(w, "}");
		else if (c == '<')
			rewrite_angle(w);
		else if (strchr(")]}", c))
			w->is_bad = true;
		else
			copy_text(w, starts_with(w->in, "->") ? 2 : 1);
	}
	w->depth--;
}

/* C++ functions have parameters in their names. */
static bool is_rust(const char *name)
{
	const size_t n_module = strcspn(name, "!:<( ");
	const char *function =
		name + (name[n_module] == '!' ? n_module + 1 : 0);

	return (*function == '<' || strstr(function, "::")) &&
	       !name[sp_demangle_short(name)];
}

/* Bytes of "::h0123456789abcdef" at the end. */
static size_t hash_bytes(const char *name, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	const size_t n_hash = strlen("::h") + 16;
	const char *hash = name + n - n_hash;

	return n > n_hash && starts_with(hash, "::h") &&
			       strspn(hash + 3, digits) == 16
		       ? n_hash
		       : 0;
}

char *sp_plain_name(const char *name, bool keeps_traits)
{
	const size_t n = sp_home_of(name).name_bytes;
	char *const in = strndup(name, n);
	struct rewrite w = {
		.in = in, .out = malloc(n + 1), .keeps_traits = keeps_traits};

	if (!in || !w.out) {
		free(in);
		free(w.out);
		return NULL;
	}
	w.is_rust = is_rust(in);
	rewrite_text(&w, "");
	if (w.is_bad) {
		memcpy(w.out, name, n);
		w.n = n;
	}
	if (w.is_rust)
		w.n -= hash_bytes(w.out, w.n);
	w.out[w.n] = '\0';
	free(in);
	return w.out;
}
