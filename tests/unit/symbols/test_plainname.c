/* SPDX-License-Identifier: MIT */
/*
 * Names as their source spells them: standard types, default arguments, Rust's
 * paths and traits; what is no name stays.
 */
#include "base/rng.h"
#include "symbols/plainname.h"
#include "support/test.h"

#define CHARS  "char, std::char_traits<char>, std::allocator<char> "
#define STRING "std::__cxx11::basic_string<" CHARS ">"

static void check_as(const char *name, bool keeps_traits, const char *expected)
{
	FREED char *plain = sp_plain_name(name, keeps_traits);

	assert_non_null(plain);
	assert_string_equal(plain, expected);
}

static void check(const char *name, const char *expected)
{
	check_as(name, false, expected);
}

TEST(cxx)
{
	check(STRING "::reserve(unsigned long)",
	      "std::string::reserve(unsigned long)");
	check("std::vector<" STRING ", std::allocator<" STRING
	      " > >::push_back(" STRING "&&)",
	      "std::vector<std::string>::push_back(std::string&&)");
	check("std::map<int, A, std::less<int>, std::allocator<std::pair<int "
	      "const, A> > >::operator[](int const&)",
	      "std::map<int, A>::operator[](int const&)");
	check("std::unordered_map<" STRING ", int, std::hash<" STRING
	      ">, std::equal_to<" STRING ">, std::allocator<std::pair<" STRING
	      " const, int> > >::at(int)",
	      "std::unordered_map<std::string, int>::at(int)");
	check("std::unique_ptr<A, std::default_delete<A> >::reset(A*)",
	      "std::unique_ptr<A>::reset(A*)");
	check("std::priority_queue<int, std::vector<int, std::allocator<int> "
	      ">, std::less<int> >::push(int&&)",
	      "std::priority_queue<int>::push(int&&)");
	check("std::__shared_ptr<A, (__gnu_cxx::_Lock_policy)2>::~__shared_ptr"
	      "()",
	      "std::__shared_ptr<A>::~__shared_ptr()");
	/* libc++ */
	check("std::__1::vector<int, std::__1::allocator<int>>::reserve(int)",
	      "std::vector<int>::reserve(int)");
	check("std::to_string[abi:cxx11](int)", "std::to_string(int)");
}

TEST(cxx_aliases)
{
	check(STRING "::basic_string(char const*)",
	      "std::string::string(char const*)");
	check(STRING "::~basic_string()", "std::string::~string()");
	check("std::__cxx11::basic_ostringstream<" CHARS ">::str() const",
	      "std::ostringstream::str() const");
	check("std::basic_string_view<wchar_t, std::char_traits<wchar_t> "
	      ">::basic_string_view()",
	      "std::wstring_view::wstring_view()");
	/* another one's class of that name, and one without its alias */
	check("mystd::basic_string<char>::f()",
	      "mystd::basic_string<char>::f()");
	check("std::basic_string<A>::f()", "std::basic_string<A>::f()");
	check("ns::basic_thing::basic_thing()",
	      "ns::basic_thing::basic_thing()");
}

/* What differs from the default stays, and so does a first argument. */
TEST(cxx_keeps)
{
	static const char *const same[] = {
		"std::map<int, A, std::greater<int>>::clear()",
		"std::set<int, std::less<void>>::clear()",
		"std::vector<int, Pool<int>>::clear()",
		"std::allocator_traits<std::allocator<int>>::allocate(int)",
		"Cache<std::less<int>, A>::put()",
		"core::Engine::start(alloc::Pool&)",
		"std::operator<< <char>(int)",
		"a::operator<(b<int>)",
		"a::operator->() const",
		"a::operator()<int>(int) const",
		"f(int)::{lambda(int)#1}::operator()(int) const",
		"A<(5)>(3)>::f()",
		"operator new(unsigned long)",
		"",
		"a<b",
		"a>b",
		"f((",
		"]])",
		"[unknown]",
		"libz.so.1!inflate",
		"app+0x12f0",
		"A<B<C::f()",
		"operator",
	};

	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++)
		check(same[i], same[i]);
	check("lib.so!f(" STRING ")", "lib.so!f(std::string)");
}

TEST(rust)
{
	check("alloc::vec::Vec<T,A>::push", "Vec<T>::push");
	check("<alloc::vec::Vec<u8>>::with_capacity", "Vec<u8>::with_capacity");
	check("<[u8]>::to_vec_in::<alloc::alloc::Global>", "<[u8]>::to_vec_in");
	check("<app::Order as core::clone::Clone>::clone", "app::Order::clone");
	check("<T as core::convert::Into<U>>::into", "<T as Into<U>>::into");
	check("<&mut I as core::iter::Iterator>::next",
	      "<&mut I as Iterator>::next");
	check("std::collections::hash::map::HashMap<K,V,S,A>::insert",
	      "HashMap<K,V>::insert");
	check("<hashbrown::map::HashMap<alloc::string::String, usize, "
	      "std::hash::random::RandomState>>::reserve",
	      "HashMap<String, usize>::reserve");
	check("app::run::<fn() -> alloc::string::String>",
	      "app::run::<fn() -> String>");
	check("alloc::fmt::format", "alloc::fmt::format");
	check("app::load::{{closure}}", "app::load::{{closure}}");
	check("app::load::h0123456789abcdef", "app::load");
	check("app::load::h0123456789abcdeg", "app::load::h0123456789abcdeg");
	check("app!core::ops::function::FnOnce::call_once",
	      "app!FnOnce::call_once");
	check("<app::Order as core::clone", "<app::Order as core::clone");
	check_as("<app::Order as core::fmt::Display>::fmt", true,
		 "<app::Order as Display>::fmt");
	check_as("<alloc::vec::Vec<u8>>::push", true, "Vec<u8>::push");
}

/* Never longer, whatever it is; nested too deeply, it stays. */
TEST(anything)
{
	static const char *const words[] = {
		"std::",    "basic_", "string", "<",       ">",      ", ",
		"char",     "(",      ")",      "[abi:x]", "{",      "}",
		"operator", " as ",   "core::", "Vec",     "->",     "::",
		"__1::",    "~",      "A",      "alloc::", " const", "!"};
	char deep[1000], text[300], *plain;
	struct sp_rng rng;

	sp_rng_init(&rng, 5, 0);
	for (int i = 0; i < 100000; i++) {
		size_t n = sp_rng_next(&rng) % 30;

		*text = '\0';
		while (n--)
			strcat(text, words[sp_rng_next(&rng) %
					   (sizeof(words) / sizeof(*words))]);
		plain = sp_plain_name(text, i % 2);
		assert_non_null(plain);
		assert_true(strlen(plain) <= strlen(text));
		free(plain);
	}
	memset(deep, 'a', sizeof(deep));
	for (size_t i = 1; i < 400; i += 2)
		deep[i] = '<';
	memset(deep + 500, '>', 499);
	deep[999] = '\0';
	check(deep, deep);
}

TEST_MAIN(NULL, NULL)
