/* SPDX-License-Identifier: MIT */
/* closefrom FILE N: closes every descriptor that it did not open, as daemons
 * do, then allocates N objects and writes a file of its own. */
#include <fcntl.h>

#include "truth.h"

#include "allocate.h"

static NOINLINE void work(int n)
{
	allocate(100, n);
	STAY();
}

int main(int argc, char **argv)
{
	int fd;

	EXPECT(argc == 3);
	closefrom(3);
	fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
	EXPECT(fd == 3);
	for (int i = 4; i < 64; i++)
		EXPECT(dup2(fd, i) == i);
	work(atoi(argv[2]));
	EXPECT(write(fd, "mine\n", 5) == 5);
	for (int i = 3; i < 64; i++)
		EXPECT(close(i) == 0);
	return 0;
}
