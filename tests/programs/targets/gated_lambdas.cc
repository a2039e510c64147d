/* SPDX-License-Identifier: MIT */
/*
 * gated_lambdas A B C D: objects of two lambdas of one function, which are
 * inlined, and of two overloads, which are not.  MORE: one more lambda before.
 */
#include <cstdlib>

static void *volatile sink;

namespace shop
{
struct Cart {
	__attribute__((noinline)) void add(long n);
	__attribute__((noinline)) void add(double n);
};

void Cart::add(long n)
{
	while (n-- > 0) {
		sink = std::malloc(300);
		std::free(sink);
	}
	asm volatile("");
}

void Cart::add(double n)
{
	for (; n > 0; n--) {
		sink = std::malloc(500);
		std::free(sink);
	}
	asm volatile("");
}
} // namespace shop

int main(int argc, char **argv)
{
	shop::Cart cart;

	if (argc != 5)
		return 1;
#ifdef MORE
	auto more = [](long n) {
		while (n-- > 0) {
			sink = std::malloc(64);
			std::free(sink);
		}
	};
	more(1000);
#endif
	auto first = [](long n) {
		while (n-- > 0) {
			sink = std::malloc(200);
			std::free(sink);
		}
	};
	auto second = [](long n) {
		while (n-- > 0) {
			sink = std::malloc(400);
			std::free(sink);
		}
	};
	first(std::atol(argv[1]));
	second(std::atol(argv[2]));
	cart.add(std::atol(argv[3]));
	cart.add(std::atof(argv[4]));
	return 0;
}
