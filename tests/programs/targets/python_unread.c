/* SPDX-License-Identifier: MIT */
/*
 * Has the marks of an interpreter of a version that does not exist, allocates,
 * and is killed.
 */
#include <signal.h>
#include <stdint.h>

#include "allocate.h"

uint64_t _PyRuntime[128];
uint64_t PyCode_Type;
uint64_t Py_Version = 0x03630000;
void *PyGILState_GetThisThreadState(void);

void *PyGILState_GetThisThreadState(void)
{
	return NULL;
}

int main(void)
{
	allocate(10000, 100);
	return raise(SIGKILL);
}
