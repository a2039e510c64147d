/* SPDX-License-Identifier: MIT */
/* The same in C++: a phase is an object. */
/* In the checkout: c++ -Iinclude -o phases docs/examples/phases.cc */
#include <memory>
#include <sampleprof/sampleprof.h>
#include <string>
#include <vector>

static size_t query(size_t n)
{
	sampleprof::phase phase("query");
	std::vector<std::unique_ptr<std::string>> rows;

	for (size_t i = 0; i < n; i++)
		rows.push_back(std::make_unique<std::string>(100, 'x'));
	return rows.size();
}

int main()
{
	sampleprof_mark("load");
	std::vector<char> cache(100000);
	sampleprof_mark("serve");
	{
		sampleprof::pause not_counted;
		std::vector<char> harness(1000000);

		cache[0] = harness[0];
	}
	return query(1000) == 1000 ? 0 : 1;
}
