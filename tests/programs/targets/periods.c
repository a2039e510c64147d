/* SPDX-License-Identifier: MIT */
/*
 * periods N: samples with the periods 1 to N, one after the other, then records
 * 1000 allocations of 100 bytes with period 1.  Prints how many of the periods
 * were taken, and how many were refused behind the last of these.
 */
#include <sampleprof/sampleprof.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	static void *kept[1000];
	const long n = argc > 1 ? atol(argv[1]) : 0;
	long taken = 0, refused = 0;

	for (long i = 1; i <= n; i++) {
		if (sampleprof_set_period((uint64_t)i)) {
			refused++;
		} else {
			taken++;
			refused = 0;
		}
	}
	if (sampleprof_set_period(1) || sampleprof_mark("after"))
		return 1;
	for (int i = 0; i < 1000; i++)
		kept[i] = malloc(100);
	sampleprof_mark("over");
	printf("%ld %ld\n", taken, refused);
	return kept[999] == NULL;
}
