/* SPDX-License-Identifier: MIT */
/*
 * grows STEPS STALL_MS SEED: call sites of which leak or do not what their
 * names say.  Ten times, at random, the process stands still for STALL_MS, as
 * one does that does not get the processor.
 */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define PLACES   4000
#define STALLS   10

static uint64_t state;

static uint64_t next(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return state >> 33;
}

#define SITE(name)                                                             \
	static NOINLINE void *name(size_t size)                                \
	{                                                                      \
		void *volatile p = malloc(size);                               \
                                                                               \
		if (!p)                                                        \
			_exit(71);                                             \
		return p;                                                      \
	}

SITE(loaded)
SITE(churn)
SITE(sawtooth)
SITE(cache)
SITE(filling)
SITE(slow_leak)
SITE(leak)

static void *cached[PLACES], *teeth[PLACES], *filled[PLACES];

static void stand_still(unsigned int ms)
{
	usleep(1000 * ms);
}

/* One step of all of them; a tooth is full after as many as there are places.
 */
static void step(unsigned long i, unsigned long steps)
{
	const unsigned long at = next() % PLACES;

	free(churn(200));
	free(cached[at]);
	cached[at] = cache(500);
	if (i < steps / 20)
		loaded(300);
	if (!filled[at])
		filled[at] = filling(2000);
	if (i % PLACES == 0)
		for (unsigned int k = 0; k < PLACES; k++) {
			free(teeth[k]);
			teeth[k] = NULL;
		}
	teeth[i % PLACES] = sawtooth(400);
	if (i % 10 == 0)
		leak(400);
	if (i % 100 == 0)
		slow_leak(200);
}

int main(int argc, char **argv)
{
	unsigned long steps, stalls = STALLS;
	unsigned int ms;

	if (argc != 4)
		return 64;
	steps = strtoul(argv[1], NULL, 10);
	ms = (unsigned int)strtoul(argv[2], NULL, 10);
	state = strtoul(argv[3], NULL, 10);
	for (unsigned long i = 0; i < steps; i++) {
		step(i, steps);
		if (ms && stalls && next() % (steps - i) < stalls) {
			stand_still(ms);
			stalls--;
		}
	}
	return 0;
}
