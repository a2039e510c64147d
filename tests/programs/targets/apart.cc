// SPDX-License-Identifier: MIT
/* Allocations by templates of this program and by its C++ library, for link
 * lines that leave holes between the segments: apart OBJECTS. */
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#define NOINLINE __attribute__((noinline))

static NOINLINE void fill(std::vector<std::unique_ptr<std::string>> &to, int n)
{
	for (int i = 0; i < n; i++)
		to.push_back(std::make_unique<std::string>(99, 'x'));
}

static NOINLINE std::size_t run(int n)
{
	std::vector<std::unique_ptr<std::string>> all;

	all.reserve((std::size_t)n);
	fill(all, n);
	return all.size();
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	std::printf("objects %zu\n", run(std::atoi(argv[1])));
	return 0;
}
