/* SPDX-License-Identifier: MIT */
#include "symbols/scopename.h"

#include <dwarf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/demangle.h"

/* Scopes within each other, and types of types, beyond which text is cut: a
 * file may have anything. */
#define SCOPES_MAX 32
#define TYPES_MAX  16

/* Of DWARF 6; elfutils may not have their names yet. */
#define LANG_C_PLUS_PLUS_17 0x2a
#define LANG_C_PLUS_PLUS_20 0x2b

static bool is_cxx(Dwarf_Die *die)
{
	Dwarf_Die unit;

	if (!dwarf_diecu(die, &unit, NULL, NULL))
		return false;
	switch (dwarf_srclang(&unit)) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case LANG_C_PLUS_PLUS_17:
	case LANG_C_PLUS_PLUS_20:
		return true;
	default:
		return false;
	}
}

/* From an inlined or a concrete instance to the declaration in the source. */
static Dwarf_Die declared_die(Dwarf_Die die)
{
	static const unsigned int links[] = {DW_AT_abstract_origin,
					     DW_AT_specification};
	Dwarf_Attribute attribute;
	Dwarf_Die next;

	for (int depth = 0; depth < 2 * SCOPES_MAX; depth++) {
		const unsigned int link = links[depth % 2];

		if (dwarf_formref_die(dwarf_attr(&die, link, &attribute),
				      &next))
			die = next;
	}
	return die;
}

static const char *text_of(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;

	return dwarf_formstring(dwarf_attr(die, name, &attribute));
}

/* ---- types ---- */

static bool type_of(Dwarf_Die *die, Dwarf_Die *ret)
{
	Dwarf_Attribute attribute;

	return dwarf_formref_die(
		       dwarf_attr_integrate(die, DW_AT_type, &attribute),
		       ret) != NULL;
}

/* The demangler's names for types that GCC's DWARF names differently. */
static const char *demangled_type(const char *name)
{
	static const char *const names[][2] = {
		{"long int", "long"},
		{"long unsigned int", "unsigned long"},
		{"short int", "short"},
		{"short unsigned int", "unsigned short"},
		{"long long int", "long long"},
		{"long long unsigned int", "unsigned long long"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(name, names[i][0]) == 0)
			return names[i][1];
	return name;
}

static void put_parameters(FILE *out, Dwarf_Die *function, int depth);

/* The type of a variable, or the base of a type. */
static void put_type(FILE *out, Dwarf_Die *of, int depth)
{
	const bool is_enough =
		depth > TYPES_MAX || ftell(out) > SP_DEMANGLED_MAX;
	const char *name, *behind;
	Dwarf_Die type, of_pointer;

	if (is_enough || !type_of(of, &type)) {
		fputs(is_enough ? "..." : "void", out);
		return;
	}
	switch (dwarf_tag(&type)) {
	case DW_TAG_pointer_type:
		if (type_of(&type, &of_pointer) &&
		    dwarf_peel_type(&of_pointer, &of_pointer) == 0 &&
		    dwarf_tag(&of_pointer) == DW_TAG_subroutine_type) {
			put_type(out, &of_pointer, depth + 1);
			fputs(" (*)", out);
			put_parameters(out, &of_pointer, depth + 1);
			return;
		}
		behind = "*";
		break;
	case DW_TAG_reference_type:
		behind = "&";
		break;
	case DW_TAG_rvalue_reference_type:
		behind = "&&";
		break;
	case DW_TAG_array_type:
		behind = "[]";
		break;
	case DW_TAG_const_type:
		behind = " const";
		break;
	case DW_TAG_volatile_type:
		behind = " volatile";
		break;
	case DW_TAG_typedef:
		behind = "";
		break;
	default:
		name = dwarf_diename(&type);
		fputs(name ? demangled_type(name) : "?", out);
		return;
	}
	put_type(out, &type, depth + 1);
	fputs(behind, out);
}

/* Is the object that the method is called for constant? */
static bool is_const(Dwarf_Die *object)
{
	Dwarf_Die type;

	/* a constant pointer to something constant */
	if (!type_of(object, &type))
		return false;
	if (dwarf_tag(&type) == DW_TAG_const_type && !type_of(&type, &type))
		return false;
	return type_of(&type, &type) && dwarf_tag(&type) == DW_TAG_const_type;
}

/* "(int, char*)" */
static void put_parameters(FILE *out, Dwarf_Die *function, int depth)
{
	Dwarf_Attribute attribute;
	Dwarf_Die die;
	int n = 0;

	putc('(', out);
	if (dwarf_child(function, &die) == 0)
		do {
			if (dwarf_tag(&die) != DW_TAG_formal_parameter ||
			    dwarf_attr(&die, DW_AT_artificial, &attribute))
				continue;
			fputs(n++ ? ", " : "", out);
			put_type(out, &die, depth);
		} while (dwarf_siblingof(&die, &die) == 0);
	putc(')', out);
}

/* Is it called for a constant object?  That is its first, hidden parameter. */
static bool is_const_method(Dwarf_Die *function)
{
	Dwarf_Attribute attribute;
	Dwarf_Die die;

	if (dwarf_child(function, &die) != 0)
		return false;
	do
		if (dwarf_tag(&die) == DW_TAG_formal_parameter)
			return dwarf_attr(&die, DW_AT_artificial, &attribute) &&
			       is_const(&die);
	while (dwarf_siblingof(&die, &die) == 0);
	return false;
}

/* ---- lambdas ---- */

/* The operator of a closure; a class without a name that has one is a closure.
 */
static bool find_operator(Dwarf_Die *class, Dwarf_Die *ret)
{
	if (dwarf_diename(class) || dwarf_child(class, ret) != 0)
		return false;
	do {
		const char *name = dwarf_diename(ret);

		if (dwarf_tag(ret) == DW_TAG_subprogram && name &&
		    strcmp(name, "operator()") == 0)
			return true;
	} while (dwarf_siblingof(ret, ret) == 0);
	return false;
}

/* "(int)" of a closure, to be freed; NULL if it is none. */
static char *closure_arguments(Dwarf_Die *class)
{
	Dwarf_Die call;
	char *text = NULL;
	size_t n;
	FILE *out;

	if (!find_operator(class, &call))
		return NULL;
	out = open_memstream(&text, &n);
	if (!out)
		return NULL;
	put_parameters(out, &call, 0);
	fclose(out);
	return text;
}

static bool is_class(Dwarf_Die *die)
{
	const int tag = dwarf_tag(die);

	return tag == DW_TAG_class_type || tag == DW_TAG_structure_type ||
	       tag == DW_TAG_union_type;
}

/* Count closures with such arguments in the scope, up to `class`: true when it
 * was reached. */
static bool count_closures(Dwarf_Die *scope, Dwarf_Die *class,
			   const char *arguments, unsigned int *count,
			   int depth)
{
	Dwarf_Die die;

	if (depth > SCOPES_MAX || dwarf_child(scope, &die) != 0)
		return false;
	do {
		if (dwarf_tag(&die) == DW_TAG_lexical_block) {
			if (count_closures(&die, class, arguments, count,
					   depth + 1))
				return true;
		} else if (is_class(&die)) {
			char *others = closure_arguments(&die);

			*count += others && strcmp(others, arguments) == 0;
			free(others);
			if (dwarf_dieoffset(&die) == dwarf_dieoffset(class))
				return true;
		}
	} while (dwarf_siblingof(&die, &die) == 0);
	return false;
}

/* `scope` is the function, class or namespace that it is in. */
static void put_closure(FILE *out, Dwarf_Die *scope, Dwarf_Die *class)
{
	char *arguments = closure_arguments(class);
	unsigned int count = 0;

	if (!arguments) {
		fputs("{unnamed type}", out);
		return;
	}
	count_closures(scope, class, arguments, &count, 0);
	fprintf(out, "{lambda%s#%u}", arguments, count);
	free(arguments);
}

/* ---- scopes ---- */

/* With its arguments; a linkage name has the scopes, too. */
static void put_function(FILE *out, Dwarf_Die *die, Dwarf_Die *around)
{
	Dwarf_Attribute attribute;
	const char *linkage = text_of(die, DW_AT_linkage_name);
	const char *name = dwarf_diename(die);
	char *full = linkage ? sp_demangle(linkage) : NULL;

	if (full) {
		fputs(full, out);
		free(full);
		return;
	}
	fputs(name ? name : "?", out);
	/* extern "C" names have no parameters */
	if (!name || (dwarf_attr(die, DW_AT_external, &attribute) &&
		      dwarf_tag(around) == DW_TAG_compile_unit))
		return;
	put_parameters(out, die, 0);
	fputs(is_const_method(die) ? " const" : "", out);
}

/* The scope at `i` of n, innermost first, and "::". */
static void put_scope(FILE *out, Dwarf_Die *scopes, int i, int n)
{
	Dwarf_Die die = declared_die(scopes[i]);
	const char *name = dwarf_diename(&die);
	int outside = i + 1;

	switch (dwarf_tag(&die)) {
	case DW_TAG_namespace:
		fputs(name ? name : "(anonymous namespace)", out);
		break;
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
		while (outside + 1 < n &&
		       dwarf_tag(&scopes[outside]) == DW_TAG_lexical_block)
			outside++;
		if (name)
			fputs(name, out);
		else
			put_closure(out, &scopes[outside < n ? outside : i],
				    &scopes[i]);
		break;
	case DW_TAG_subprogram:
		put_function(out, &die, &scopes[i + 1 < n ? i + 1 : i]);
		break;
	default:
		return;
	}
	fputs("::", out);
}

/* The outermost scope: the unit, or one whose name has all scopes around it. */
static int outermost_scope(Dwarf_Die *scopes, int n)
{
	for (int i = 1; i < n; i++) {
		Dwarf_Die die = declared_die(scopes[i]);

		if (text_of(&die, DW_AT_linkage_name))
			return i;
	}
	return n - 1;
}

static char *name_with_scopes(Dwarf_Die *function)
{
	Dwarf_Die die = declared_die(*function), *scopes = NULL;
	char *text = NULL;
	size_t size;
	FILE *out;
	int n;

	if (!is_cxx(&die))
		return NULL;
	n = dwarf_getscopes_die(&die, &scopes);
	n = n < SCOPES_MAX ? n : SCOPES_MAX;
	out = n > 0 ? open_memstream(&text, &size) : NULL;
	if (!out) {
		free(scopes);
		return NULL;
	}
	for (int i = outermost_scope(scopes, n); i > 0; i--)
		put_scope(out, scopes, i, n);
	put_function(out, &die, &scopes[n > 1]);
	free(scopes);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static const char *linkage_name(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	const char *name;

	name = dwarf_formstring(
		dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute));
	if (name)
		return name;
	return dwarf_formstring(
		dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute));
}

static bool is_mangled(const char *symbol)
{
	return symbol[0] == '_' && (symbol[1] == 'Z' || symbol[1] == 'R');
}

/*
 * DWARF gives the plain name alone to C functions and to C++ ones that are
 * local to a file.  For the latter the symbol says more, with its scopes; for
 * the former it says less, as that of a clone ("f.part.0") or an alias.
 */
const char *sp_scopename_function(Dwarf_Die *function, const char *symbol,
				  struct sp_blocks *names)
{
	const char *name = linkage_name(function);
	char *scoped;

	if (name)
		return name;
	name = dwarf_diename(function);
	if (!name || (symbol && is_mangled(symbol)))
		return symbol;
	/* inlined, or of a file whose symbols are stripped */
	scoped = name_with_scopes(function);
	if (scoped)
		name = sp_blocks_text(names, scoped, strlen(scoped));
	free(scoped);
	return name;
}
