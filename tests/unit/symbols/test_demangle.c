/* SPDX-License-Identifier: MIT */
/*
 * Names of C++ and Rust: templates, parameters, suffixes, hashes; limits on
 * length and nesting.
 */

#include "symbols/demangle.h"
#include "symbols/othername.h"
#include "support/test.h"

static void check(const char *mangled, const char *expected)
{
	FREED char *name = sp_demangle(mangled);

	if (expected) {
		assert_non_null(name);
		name[sp_demangle_short(name)] = '\0';
		assert_string_equal(name, expected);
	} else if (name) {
		fail_msg("%s became %s", mangled, name);
	}
}

TEST(cxx_keeps_templates_and_drops_parameters)
{
	check("_ZNSt6vectorIiSaIiEE9push_backERKi",
	      "std::vector<int, std::allocator<int> >::push_back");
	check("_Z3addIiET_S0_S0_", "add<int>");
	check("_ZNK1A1fEv", "A::f");
	check("_ZZ3foovENKUlvE_clEv", "foo()::{lambda()#1}::operator()");
	check("_ZN12_GLOBAL__N_16hiddenEi", "(anonymous namespace)::hidden");
	check("_Znwm", "operator new");
}

static void check_full(const char *mangled, const char *expected)
{
	FREED char *name = sp_demangle(mangled);

	assert_non_null(name);
	assert_string_equal(name, expected);
}

/* What tells functions apart stays; the end of it is not read. */
TEST(parameters)
{
	static const char *const whole[] = {
		"main",
		"",
		"f(",
		"f)",
		")",
		"()",
		"operator()",
		"a b",
		"libz.so.1+0x2a40",
		"<T as core::convert::Into<U>>::into"};

	check_full("_ZN2ns1S4overEid", "ns::S::over(int, double)");
	check_full("_Z1fILi0EEPFvvEi", "f<0>(int)");
	check_full("_ZZ4mainENKUliE0_clEi.isra.0",
		   "main::{lambda(int)#2}::operator()(int) const");
	check("_ZZ4mainENKUliE0_clEi.isra.0",
	      "main::{lambda(int)#2}::operator()");
	check_full("_ZNKO1XcvPiEv", "X::operator int*() const &&");
	check("_ZNKO1XcvPiEv", "X::operator int*");
	for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
		assert_int_equal(sp_demangle_short(whole[i]), strlen(whole[i]));
}

TEST(suffixes_are_dropped)
{
	check("_ZN3foo3barEi.part.0", "foo::bar");
	check("_ZN3foo3barEi.constprop.1.cold", "foo::bar");
	check("_Znwm@@GLIBCXX_3.4", "operator new");
}

/* As gcc names what it makes of one. */
TEST(coroutines)
{
	check_full("_Z5counti", "count(int)");
	check_full("_Z5countPZ5countiE15_Z5counti.Frame.actor", "count(int)");
	check_full("_Z5countPZ5countiE15_Z5counti.Frame.destroy", "count(int)");
	check_full("_ZN3app4Till4openEPZNS0_4openEiE25_ZN3app4Till4openEi.Frame"
		   ".actor",
		   "app::Till::open(int)");
	/* Another function's, and no name of one. */
	check_full("_Z4pullPZ5countiE15_Z5counti.Frame.actor",
		   "pull(count(int)::_Z5counti.Frame*)");
	check_full("_Z1fP6.Frame", "f(.Frame*)");
}

TEST(rust_hashes_are_dropped)
{
	check("_ZN4core3ptr13drop_in_place17h0123456789abcdefE",
	      "core::ptr::drop_in_place");
	check("_ZN50_$LT$T$u20$as$u20$core..convert..Into$LT$U$GT$$GT$"
	      "4into17h0123456789abcdefE",
	      "<T as core::convert::Into<U>>::into");
	check("_RNvC5alloc3run", "alloc::run");
	check("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar");
}

/* Characters that libiberty leaves as they are in the linker's name. */
TEST(rust_escapes)
{
	check("_ZN5cr\xc3\xa4te", NULL);
	check("_ZN4shop10w$uf6$rter13gr$uf6$$udf$e17h0123456789abcdefE",
	      "shop::w\xc3\xb6rter::gr\xc3\xb6\xc3\x9f"
	      "e");
	check("_ZN4shop15_$LT$$u3bb$$GT$17h0123456789abcdefE",
	      "shop::<\xce\xbb>");
	/* C++, where "$" may be in a name */
	check("_ZN4shop6a$uf6$E", "shop::a$uf6$");
	/* no character */
	check("_ZN4shop10a$uffffff$17h0123456789abcdefE", "shop::a$uffffff$");
}

TEST(other_languages)
{
	check("_D4shop4Till4sellMFiZAv", "shop.Till.sell");
	check("_D4shop__T4PoolTdZQi4grabMFmZPv",
	      "shop.Pool!(double).Pool.grab");
	check("_Dmain", "D main");
	check("_Dirty", NULL);
	check("__till_MOD_open", "till::open");
	check("__till_MOD_", NULL);
	check("__TILL_MOD_open", NULL);
	check("_QMtillPopen", "till::open");
	check("_QMtillFopenPdrawer_2", "till::open::drawer_2");
	check("_QQmain", "main");
	check("_Quit", NULL);
	check("_Q", NULL);
	check("_D4shop4Till4sellMFiZAv.constprop.0", "shop.Till.sell");
	check("_DTi16_D4shop4Till4sellMFiZAv", "shop.Till.sell");
	check("_DTi_D4shop4Till4sellMFiZAv", NULL);
	check("__till_MOD_open.constprop.0.isra.1", "till::open");
	check("_QMtillPopen.cold", "till::open");
	check("camlTill__open_83", "Till.open");
	check("camlTill__Drawer__take_2_7", "Till.Drawer.take_2");
	check("camlTill__Drawer.fun_310", "Till.Drawer.fun");
	check("camlTill__$7c$2b_14", "Till.|+");
	check("camlTill__x$2", "Till.x$2");
	check("camlTill__entry", "Till.entry");
	check("camlTill", NULL);
	check("caml_alloc__12", NULL);
}

/* Each type refers to the one before twice: 2^40 steps, if they were taken. */
TEST(references_of_d_are_bounded)
{
	char bomb[4096];
	size_t n = (size_t)snprintf(bomb, sizeof(bomb), "_D1a1bFi");

	for (int i = 0; i < 40; i++)
		n += (size_t)snprintf(bomb + n, sizeof(bomb) - n, "HQ%cQ%c",
				      i ? 'f' : 'c', i ? 'h' : 'e');
	snprintf(bomb + n, sizeof(bomb) - n, "Zv");
	check(bomb, NULL);
}

static void check_ada(const char *name, const char *expected)
{
	FREED char *found = sp_othername_ada(name);

	if (expected)
		assert_non_null(found);
	if (found)
		assert_string_equal(found, expected ? expected : "");
}

TEST(ada)
{
	check_ada("till__drawer__open", "till.drawer.open");
	check_ada("till__drawer__open__2", "till.drawer.open");
	check_ada("till__open__inner.17", "till.open.inner");
	check_ada("till__drawer__open.0.constprop.0", "till.drawer.open");
	check_ada("till__drawer__open.part.0.cold", "till.drawer.open");
	check_ada("till__Oadd", "till.\"+\"");
	check_ada("till__B_2__B_13__open", "till.open");
	check_ada("till__keeperTB.2", "till.keeper");
	check_ada("till__keeperTKB", "till.keeper");
	check_ada("till__drawer__get_E7b.12", "till.drawer.get");
	check_ada("till__B_x", NULL);
	check_ada("till__get_E7", NULL);
	check_ada("till__get_E", NULL);
	check_ada("_ada_shop", "shop");
	check_ada("open", NULL);
	check_ada("Till__open", NULL);
	check_ada("__gnat_malloc", NULL);
}

TEST(parts_and_copies)
{
	check("open_till.isra.0", "open_till");
	check("open_till.constprop.12.isra.3.cold", "open_till");
	check("open_till.llvm.1234567890", "open_till");
	check("_open.part.0", "_open");
	check("open.till", NULL);
	check("open.colder", NULL);
	check(".cold", NULL);
	check("", NULL);
}

TEST(what_is_not_mangled_is_null)
{
	check("", NULL);
	check("main", NULL);
	check("_start", NULL);
	check("_", NULL);
	check("_Z", NULL);
	check("_ZN", NULL);
	check("_R", NULL);
	check("_ZN3fo", NULL);
}

TEST(length_limit)
{
	char name[SP_MANGLED_MAX + 16];

	memset(name, 'P', sizeof(name));
	memcpy(name, "_Z1f", 4);
	name[sizeof(name) - 1] = '\0';
	check(name, NULL);
	/* The same name short enough for the demangler's own limit. */
	name[200] = 'i';
	name[201] = '\0';
	check(name, "f");
}

TEST(deep_nesting_is_left_mangled)
{
	char name[SP_MANGLED_MAX + 1];
	size_t i;

	strcpy(name, "_Z1fI");
	for (i = 5; i < SP_MANGLED_MAX - 4; i++)
		name[i] = 'P';
	strcpy(name + i, "iEvv");
	check(name, NULL);
}

/* f<a, b<..>, ..> where each argument names the one before twice: `doublings`
 * of them in some 10 bytes each make 2^doublings names. */
static void make_bomb(char *name, size_t size, int doublings)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t used = (size_t)snprintf(name, size, "_Z1fI1a1bIS_S_E");
	int i;

	for (i = 1; i <= doublings; i++)
		used += (size_t)snprintf(name + used, size - used,
					 "S0_IS%c_S%c_E", digits[i], digits[i]);
	snprintf(name + used, size - used, "Evv");
}

TEST(output_is_bounded)
{
	char bomb[1024];

	make_bomb(bomb, sizeof(bomb), 2);
	check(bomb, "f<a, b<f, f>, a<b, b>, a<b<f, f>, b<f, f> > >");
	/* 2^34 names: without the bound this does not come back. */
	make_bomb(bomb, sizeof(bomb), 34);
	check(bomb, NULL);
}

TEST_MAIN(NULL, NULL)
