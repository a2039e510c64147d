/* SPDX-License-Identifier: MIT */
/*
 * grow MIB_PER_S MIB [wait [MORE]]: hold 20 MiB of base_tables, then let a
 * cache grow at that rate at most, beside objects that are freed at once, until
 * it has so many MiB or somebody ends us: who gets no processor does not catch
 * up. Prints how many bytes of the cache are alive then; with `wait` a byte on
 * standard input ends the rest, or lets it grow by MORE MiB first.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MIB        1048576.0
#define BASE_BYTES 16384u
#define ITEM_BYTES 2000u
#define ITEMS_MAX  (1u << 20)

static void *volatile base[1280];
static void *volatile cache[ITEMS_MAX];

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static __attribute__((noinline)) void *touch(void *p, size_t bytes)
{
	return memset(p, 1, bytes);
}

static __attribute__((noinline)) void base_tables(void)
{
	for (size_t i = 0; i < sizeof(base) / sizeof(*base); i++)
		base[i] = touch(malloc(BASE_BYTES), BASE_BYTES);
}

static __attribute__((noinline)) void fill_cache(size_t at)
{
	cache[at] = touch(malloc(ITEM_BYTES), ITEM_BYTES);
}

static __attribute__((noinline)) void churn(void)
{
	char *volatile p = malloc(3000);

	free(p);
}

static void grow(double rate, double most)
{
	static double have, slice;
	static size_t n;
	double end_s = now_s();

	while (have < most && n < ITEMS_MAX) {
		/* What may come in a millisecond; then the rest of it. */
		if (have > slice) {
			while (now_s() < end_s)
				usleep(200);
			end_s = now_s() + 1e-3;
			slice = have + rate * 1e-3;
		}
		fill_cache(n++);
		churn();
		have += ITEM_BYTES;
	}
	printf("cache %.0f\n", have);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const double rate = argc > 2 ? atof(argv[1]) * MIB : 0;
	const double most = argc > 2 ? atof(argv[2]) * MIB : 0;
	char c;

	base_tables();
	grow(rate, most);
	if (argc > 3 && read(STDIN_FILENO, &c, 1) < 0)
		return 1;
	if (argc > 4)
		grow(rate, most + atof(argv[4]) * MIB);
	return 0;
}
