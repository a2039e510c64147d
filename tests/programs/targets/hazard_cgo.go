// SPDX-License-Identifier: MIT

// Goroutines, whose stacks are Go's, call C, which allocates on the thread's.
package main

/*
#include <stdlib.h>

static int in_c(int n)
{
	char *p = malloc(100), *q = calloc(1, n);

	p = realloc(p, 3000);
	p[2999] = q[n - 1];
	free(q);
	n += p[2999];
	free(p);
	return n;
}
*/
import "C"

import (
	"fmt"
	"sync"
)

func main() {
	var all sync.WaitGroup
	sums := make([]int, 50)
	for g := range sums {
		all.Add(1)
		go func(g int) {
			defer all.Done()
			for i := 1; i <= 100; i++ {
				sums[g] += int(C.in_c(C.int(g + i)))
			}
		}(g)
	}
	all.Wait()
	fmt.Println(sums)
}
