/* SPDX-License-Identifier: MIT */
/* A child inherits a heap, frees some of it, and has one of its own. */
#include <sys/wait.h>

#include "live.h"

#define OBJECTS 1000

static void *inherited[OBJECTS], *own[OBJECTS];

static void fill(void **p, size_t n)
{
	for (int i = 0; i < OBJECTS; i++) {
		p[i] = malloc(n + (size_t)i);
		held_more(n + (size_t)i);
	}
}

static void live_as_child(void)
{
	held_bytes = held_objects = most_bytes = n_points = 0;
	for (int i = 0; i < OBJECTS; i += 2)
		free(inherited[i]);
	note_point();
	fill(own, 200);
	note_point();
	/* Of the parent's objects nothing is known here. */
	for (int i = 1; i < OBJECTS; i += 2)
		free(inherited[i]);
	for (int i = 0; i < OBJECTS; i += 2) {
		held_less(200 + (size_t)i);
		free(own[i]);
	}
	note_point();
	print_points();
	exit(0);
}

int main(void)
{
	pid_t pid;
	int status;

	note_point();
	fill(inherited, 50);
	note_point();
	pid = fork();
	if (pid == 0)
		live_as_child();
	if (waitpid(pid, &status, 0) != pid || status != 0)
		return 71;
	note_point();
	for (int i = 0; i < OBJECTS; i += 4) {
		held_less(50 + (size_t)i);
		free(inherited[i]);
	}
	note_point();
	print_points();
	return 0;
}
