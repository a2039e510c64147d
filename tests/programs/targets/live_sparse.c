/* SPDX-License-Identifier: MIT */
/*
 * Huge objects of which little is touched: what the kernel gives lazily must
 * stay so.
 *
 *     live_sparse calloc|realloc     prints the size reached and the pages used
 */
#include <string.h>
#include <sys/prctl.h>

#include "live.h"

#define GIB ((size_t)1 << 30)

static unsigned long long resident_pages(void)
{
	unsigned long long size, resident = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f || fscanf(f, "%llu %llu", &size, &resident) != 2)
		_exit(71);
	fclose(f);
	return resident;
}

/* The most up to 64 GiB that this machine promises. */
static size_t sparse(void)
{
	size_t n = 64 * GIB;
	char *p;

	while (!(p = calloc(n, 1)))
		n /= 2;
	for (size_t at = 0; at < n; at += n / 16)
		p[at] = 1;
	return n;
}

static size_t ladder(void)
{
	size_t n = 1 << 20;
	char *p = malloc(n), *q;

	while (n < 8 * GIB) {
		p[n - 1] = 1;
		q = realloc(p, n + n / 2);
		if (!q)
			break;
		p = q;
		n += n / 2;
	}
	return n;
}

int main(int argc, char **argv)
{
	unsigned long long before = resident_pages();
	size_t n;

	/* Where they stand decides which objects the kernel gives huge pages.
	 */
	if (argc != 2 || prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0))
		return 64;
	n = strcmp(argv[1], "calloc") == 0 ? sparse() : ladder();
	printf("reached %zu\npages %llu\n", n, resident_pages() - before);
	return 0;
}
