/* SPDX-License-Identifier: MIT */
/* A module of Python with an allocating function of its own. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static void *volatile kept;

static __attribute__((noinline)) void fill_blocks(long n)
{
	for (long i = 0; i < n; i++)
		kept = malloc(3000);
}

static PyObject *fill(PyObject *self, PyObject *n)
{
	(void)self;
	fill_blocks(PyLong_AsLong(n));
	Py_RETURN_NONE;
}

static PyObject *call(PyObject *self, PyObject *function)
{
	(void)self;
	return PyObject_CallNoArgs(function);
}

static PyMethodDef methods[] = {{"fill", fill, METH_O, NULL},
				{"call", call, METH_O, NULL},
				{NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT,
				    "extension",
				    NULL,
				    -1,
				    methods,
				    NULL,
				    NULL,
				    NULL,
				    NULL};

PyMODINIT_FUNC PyInit_extension(void)
{
	return PyModule_Create(&module);
}
