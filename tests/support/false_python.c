/* SPDX-License-Identifier: MIT */
/*
 * What a library has by which it is known as an interpreter of Python; of
 * version VERSION, or, if that is 0, of the time before there was Py_Version.
 */
#include <stdint.h>

#define EXPORTED __attribute__((visibility("default"), used))

/* What the loop's function covers; nobody calls it. */
__asm__(".text\n.globl _PyEval_EvalFrameDefault\n"
	".type _PyEval_EvalFrameDefault, %function\n"
	"_PyEval_EvalFrameDefault: .skip 256\n"
	".size _PyEval_EvalFrameDefault, 256\n"
	".globl false_python_other\n"
	".type false_python_other, %function\n"
	"false_python_other: .skip 256\n"
	".size false_python_other, 256\n");

EXPORTED uint64_t _PyRuntime[128];
EXPORTED uint64_t PyCode_Type;
EXPORTED void *false_python_thread;

EXPORTED void *PyGILState_GetThisThreadState(void);
EXPORTED void *PyThreadState_GetUnchecked(void);

void *PyGILState_GetThisThreadState(void)
{
	return false_python_thread;
}

void *PyThreadState_GetUnchecked(void)
{
	return false_python_thread;
}

#if VERSION
EXPORTED uint64_t Py_Version = VERSION;
#endif
#ifdef HAS_3_10
EXPORTED void Py_NewRef(void);
void Py_NewRef(void)
{
}
#endif
#ifdef HAS_3_9
EXPORTED void PyFrame_GetCode(void);
void PyFrame_GetCode(void)
{
}
#endif
