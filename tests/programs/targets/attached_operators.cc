// SPDX-License-Identifier: MIT
// A process to be attached to that has its own operator new, with a header
// before each object: with each line of standard input it allocates some, and
// says how much it has asked malloc for.
#include <cstdlib>
#include <cstring>
#include <new>

extern "C" {
#include "truth.h"
}

static const std::size_t header = 16;
static struct truth all;

void *operator new(std::size_t n)
{
	char *p = static_cast<char *>(std::malloc(n + header));

	if (!p)
		throw std::bad_alloc();
	truth_add(&all, p, n + header);
	return p + header;
}

static void release(void *p)
{
	if (p)
		std::free(static_cast<char *>(p) - header);
}

void operator delete(void *p) noexcept
{
	release(p);
}

void operator delete(void *p, std::size_t) noexcept
{
	release(p);
}

int main()
{
	char line[64];

	setvbuf(stdin, nullptr, _IONBF, 0);
	setvbuf(stdout, nullptr, _IONBF, 0);
	truth_print("begun", &all);
	while (fgets(line, sizeof(line), stdin) &&
	       std::strcmp(line, "end\n") != 0) {
		all = truth();
		for (std::size_t n = 0; n < 1000; n++) {
			char *volatile p =
				static_cast<char *>(::operator new(n));

			::operator delete(p);
		}
		truth_print("totals", &all);
	}
	puts("ok");
	return 0;
}
