/* SPDX-License-Identifier: MIT */
/* Two threads; each frees what the other allocated. */
#include <pthread.h>

#include "live.h"

#define STEPS   25
#define OBJECTS 300

static void *boxes[2][OBJECTS];
static size_t sizes[2][OBJECTS];
static pthread_barrier_t begin, end;

static void refill(int mine, uint32_t *state)
{
	int other = 1 - mine;

	for (int i = 0; i < OBJECTS; i++) {
		*state = *state * 1664525 + 1013904223;
		/* What the other one put there in the last step. */
		if (boxes[other][i]) {
			held_less(sizes[other][i]);
			free(boxes[other][i]);
		}
		sizes[other][i] = 16 + (*state >> 16) % 3000;
		boxes[other][i] = malloc(sizes[other][i]);
		held_more(sizes[other][i]);
	}
}

static void *work(void *arg)
{
	int number = *(int *)arg;
	uint32_t state = 5 + (uint32_t)number;

	for (int step = 0; step < STEPS; step++) {
		pthread_barrier_wait(&begin);
		refill((number + step) % 2, &state);
		pthread_barrier_wait(&end);
	}
	return NULL;
}

int main(void)
{
	static int numbers[2] = {0, 1};
	pthread_t threads[2];

	pthread_barrier_init(&begin, NULL, 3);
	pthread_barrier_init(&end, NULL, 3);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, work, &numbers[i]))
			return 71;
	for (int step = 0; step < STEPS; step++) {
		note_point();
		pthread_barrier_wait(&begin);
		pthread_barrier_wait(&end);
	}
	note_point();
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	most_bytes = 0; /* not known to a byte: two count at once */
	print_points();
	return 0;
}
