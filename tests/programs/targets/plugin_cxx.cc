/* SPDX-License-Identifier: MIT */
/* A plug-in in C++ for a program that is not: its operators are in no global
 * scope. */
#include <new>
#include <string>
#include <vector>

#include "truth.h"

extern "C" void plugin_run(int times);

namespace
{

NOINLINE void plugin_cxx_allocate(int times)
{
	for (int i = 0; i < times; i++)
		::operator delete(::operator new(51));
	STAY();
}

} // namespace

extern "C" void plugin_run(int times)
{
	volatile size_t huge = HUGE_BYTES;
	std::vector<std::string> strings(10, std::string(100, 'x'));
	bool thrown = false;

	plugin_cxx_allocate(times);
	try {
		::operator delete(::operator new(huge));
	} catch (const std::bad_alloc &) {
		thrown = true;
	}
	EXPECT(thrown);
	struct alignas(128) wide {
		char bytes[128];
	};
	delete new wide;
}
