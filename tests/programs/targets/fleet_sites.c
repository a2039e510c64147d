/* SPDX-License-Identifier: MIT */
/*
 * fleet_sites NUMBER: allocates at six functions, half of it to keep, and says
 * how much of each it allocated and keeps.  Then it waits for the end of its
 * input, frees everything and ends.  Amounts differ by the number, as those of
 * processes of one service do.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Bytes of a function, and of an object, which varies by up to a half. */
static const struct {
	size_t bytes, object;
} sites[] = {{100000, 24},   {400000, 100},  {1200000, 600},
	     {600000, 1500}, {300000, 9000}, {900000, 50000}};

enum { SITES = sizeof(sites) / sizeof(*sites), KEPT_MAX = 40000 };

static void *kept[KEPT_MAX];
static size_t n_kept;
static uint64_t state;

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

#define SITE(i)                                                                \
	__attribute__((noinline)) static void *site_##i(size_t bytes)          \
	{                                                                      \
		char *p = malloc(bytes);                                       \
                                                                               \
		if (p)                                                         \
			*p = i;                                                \
		return p;                                                      \
	}
SITE(0)
SITE(1)
SITE(2)
SITE(3)
SITE(4)
SITE(5)

static void *(*const functions[SITES])(size_t) = {site_0, site_1, site_2,
						  site_3, site_4, site_5};

/* Every other object stays, the others are freed at once. */
static void run_site(int i, double scale)
{
	const size_t most = (size_t)((double)sites[i].bytes * scale);
	size_t bytes = 0, held = 0;

	for (unsigned int n = 0; bytes < most; n++) {
		const size_t size =
			sites[i].object + next_random() % (sites[i].object / 2);
		void *p = functions[i](size);

		bytes += size;
		if (n % 2 && n_kept < KEPT_MAX) {
			kept[n_kept++] = p;
			held += size;
		} else {
			free(p);
		}
	}
	printf("allocated_%d %zu\nkept_%d %zu\n", i, bytes, i, held);
}

int main(int argc, char **argv)
{
	char c;

	state = 88172645463325252u +
		(argc > 1 ? strtoull(argv[1], NULL, 0) : 0);
	for (int i = 0; i < 20; i++)
		next_random();
	for (int i = 0; i < SITES; i++)
		run_site(i, 0.5 + (double)(next_random() % 1000) / 1000);
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	while (n_kept)
		free(kept[--n_kept]);
	return 0;
}
