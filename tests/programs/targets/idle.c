/* SPDX-License-Identifier: MIT */
/*
 * For each byte n that it reads it allocates n KiB in pieces of 64 bytes, keeps
 * the last 16 of them, and writes the byte back.
 */
#include <stdlib.h>
#include <unistd.h>

int main(void)
{
	static void *kept[16];
	unsigned char n;

	while (read(0, &n, 1) == 1) {
		for (unsigned int i = 0; i < 16u * n; i++) {
			free(kept[i % 16]);
			kept[i % 16] = malloc(64);
		}
		if (write(1, &n, 1) != 1)
			return 1;
	}
	return 0;
}
