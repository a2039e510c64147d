/* SPDX-License-Identifier: MIT */
/* Does this process seem to have jemalloc's interface, and is its use counted?
 * Prints "present BITS 0", the truth, and what was measured. */
#include "truth.h"

unsigned int jemalloc_present(void);
void jemalloc_use(struct truth *t);

int main(void)
{
	struct truth present = {jemalloc_present(), 0};
	struct truth truth = {0, 0}, before, measured;

	truth_print("present", &present);
	if (present.bytes != 0x7f)
		return 0;
	before = measured_thread();
	jemalloc_use(&truth);
	measured = truth_since(measured_thread(), before);
	truth_print("truth", &truth);
	truth_print("measured", &measured);
	return 0;
}
