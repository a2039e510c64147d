// SPDX-License-Identifier: MIT
// Containers, strings and wrappers: each of these functions allocates only
// through a library or a wrapper.
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#define APART __attribute__((noinline))

static std::vector<std::string> lines;
static std::map<std::string, std::vector<int>> places;

APART static void fill_vector(int n)
{
	for (int i = 0; i < n; i++)
		lines.push_back("a line that is too long to stay inside " +
				std::to_string(i));
}

APART static void fill_map(int n)
{
	for (int i = 0; i < n; i++)
		places["the place with number " + std::to_string(i)].push_back(
			i);
}

APART static size_t write_stream(int n)
{
	std::ostringstream out;

	for (int i = 0; i < n; i++)
		out << "number " << i << '\n';
	return out.str().size();
}

extern "C" APART void *xmalloc(size_t n)
{
	void *p = malloc(n);

	if (!p)
		abort();
	return p;
}

APART static char *copy_text(const char *text)
{
	return strdup(text);
}

APART static void *take_block(void)
{
	return xmalloc(1000);
}

struct Shape {
	APART static void *operator new(size_t n)
	{
		return malloc(n);
	}
	static void operator delete(void *p)
	{
		free(p);
	}
	int corners[50] = {};
};

APART static std::unique_ptr<Shape> make_shape(void)
{
	return std::unique_ptr<Shape>(new Shape);
}

int main()
{
	size_t sum = 0;

	fill_vector(500);
	fill_map(500);
	sum += write_stream(500);
	for (int i = 0; i < 100; i++) {
		char *copy = copy_text("a text that is copied");
		void *block = take_block();

		sum += strlen(copy) + make_shape()->corners[1];
		free(copy);
		free(block);
	}
	return sum == 0;
}
