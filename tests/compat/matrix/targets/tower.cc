// SPDX-License-Identifier: MIT
// tower: as tower.c, with what C++ has besides.
#include <cstdio>
#include <cstdlib>

#define NOINLINE __attribute__((noinline))
#define STAY()   __asm__ volatile("" : : : "memory")

static const int TIMES = 40;
static void *volatile kept;

namespace shop
{

static NOINLINE void leaf(size_t n)
{
	kept = malloc(n);
	STAY();
}

template <class T> struct Shelf {
	NOINLINE void put()
	{
		leaf(sizeof(T));
		STAY();
	}
	__attribute__((always_inline)) void fill()
	{
		put();
		STAY();
	}
};

struct Till {
	virtual ~Till()
	{
	}
	NOINLINE virtual void open(int n)
	{
		leaf((size_t)n);
		STAY();
	}
	NOINLINE Till &operator+=(int n)
	{
		open(n);
		STAY();
		return *this;
	}
};

} // namespace shop

struct Big {
	char room[100];
};

static NOINLINE void take(shop::Till *till)
{
	shop::Shelf<Big> big;
	shop::Shelf<int> small;

	big.fill();
	small.fill();
	*till += 30;
	STAY();
}

int main()
{
	shop::Till *volatile till = new shop::Till;

	for (int i = 0; i < TIMES; i++)
		take(till);
	printf("%d shop::leaf shop::Shelf<Big>::put ~shop::Shelf<Big>::fill "
	       "take main\n",
	       TIMES);
	printf("%d shop::leaf shop::Shelf<int>::put ~shop::Shelf<int>::fill "
	       "take main\n",
	       TIMES);
	printf("%d shop::leaf shop::Till::open shop::Till::operator+= take "
	       "main\n",
	       TIMES);
	return 0;
}
