/* SPDX-License-Identifier: MIT */
/*
 * For each byte n that it reads it allocates n KiB in pieces of 64 bytes, keeps
 * the last 16 of them, and writes the byte back.  With an argument it does so
 * in a thread, and the main thread ends at once.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void *work(void *arg)
{
	static void *kept[16];
	unsigned char n;

	while (read(0, &n, 1) == 1) {
		for (unsigned int i = 0; i < 16u * n; i++) {
			free(kept[i % 16]);
			kept[i % 16] = malloc(64);
		}
		if (write(1, &n, 1) != 1)
			exit(1);
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	(void)argv;
	if (argc == 1)
		return work(NULL) != NULL;
	if (pthread_create(&thread, NULL, work, NULL) != 0)
		return 1;
	pthread_exit(NULL);
}
