/* SPDX-License-Identifier: MIT */
/*
 * jit map|dump OBJECTS [python]: makes functions at run time, as a just-in-time
 * compiler does, names them for perf in /tmp/perf-PID.map or /tmp/jit-PID.dump,
 * and allocates OBJECTS objects of 1000 bytes below each, with "python" by what
 * is called as CPython's interpreter is.  Where "old" was, "new" is.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include "truth.h"

#define PAGE 4096u

typedef void function(void (*)(void));

static const struct made {
	const char *name, *text; /* for the dump; for the map */
	uint8_t code[20];
} made[] = {
	/* At the beginning of a page; no frame pointer. */
	{"first",
	 "JS:~first /app/a.js:10:1",
	 {0x48, 0x83, 0xec, 8, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3}},
	{"framed",
	 "JS:*framed /app/a.js:20:1",
	 {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3}},
	{"large",
	 "py::large:/app/a.py",
	 {0x48, 0x81, 0xec, 0x88, 0, 0, 0, 0xff, 0xd7, 0x48, 0x81, 0xc4, 0x88,
	  0, 0, 0, 0xc3}},
	/* Two of one name. */
	{"make",
	 "py::make:/app/a.py",
	 {0x48, 0x83, 0xec, 8, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3}},
	{"make",
	 "py::make:/app/b.py",
	 {0x48, 0x83, 0xec, 8, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3}},
	/* Does more before it returns: by the frame pointer alone. */
	{"busy",
	 "busy",
	 {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x90, 0x31, 0xc0, 0xc9, 0xc3}},
	{"old", "old", {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3}},
	{"new", "new", {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3}},
};

#define N (sizeof(made) / sizeof(*made))

static void *volatile sink;

static NOINLINE void allocate(void)
{
	sink = malloc(1000);
	free(sink);
	STAY();
}

static NOINLINE void _PyEval_EvalFrameDefault(void)
{
	allocate();
	STAY();
}

static void put_map(FILE *f, const struct made *m, uint64_t start)
{
	fprintf(f, "%" PRIx64 " %zx %s\n", start, sizeof(m->code), m->text);
}

static void put_load(FILE *f, const struct made *m, uint64_t start)
{
	const size_t n = strlen(m->text) + 1;
	const uint32_t head[] = {0, (uint32_t)(16 + 40 + n + sizeof(m->code)),
				 1, 0};
	const uint32_t ids[] = {(uint32_t)getpid(), (uint32_t)getpid()};
	const uint64_t numbers[] = {start, start, sizeof(m->code), 1};

	fwrite(head, sizeof(head), 1, f);
	fwrite(ids, sizeof(ids), 1, f);
	fwrite(numbers, sizeof(numbers), 1, f);
	fwrite(m->text, n, 1, f);
	fwrite(m->code, sizeof(m->code), 1, f);
}

static FILE *begin_names(int is_dump)
{
	const uint32_t head[] = {0x4A695444,         1, 40, 62, 0,
				 (uint32_t)getpid(), 1, 0,  0,  0};
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path),
		 is_dump ? "/tmp/jit-%d.dump" : "/tmp/perf-%d.map", getpid());
	f = fopen(path, "w");
	EXPECT(f);
	if (is_dump)
		fwrite(head, sizeof(head), 1, f);
	return f;
}

int main(int argc, char **argv)
{
	const int is_dump = argc > 1 && strcmp(argv[1], "dump") == 0;
	const int n = argc > 2 ? atoi(argv[2]) : 1;
	void (*callee)(void) = argc > 3 ? _PyEval_EvalFrameDefault : allocate;
	/* A page that cannot be read is before the first. */
	uint8_t *block = mmap(NULL, (N + 1) * PAGE, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	FILE *f = begin_names(is_dump);

	EXPECT(block != MAP_FAILED);
	for (size_t i = 0; i < N; i++) {
		uint8_t *at = block + (i + 1) * PAGE;

		if (strcmp(made[i].name, "new") == 0)
			at -= PAGE;
		EXPECT(!mprotect(at, PAGE, PROT_READ | PROT_WRITE));
		memcpy(at, made[i].code, sizeof(made[i].code));
		EXPECT(!mprotect(at, PAGE, PROT_READ | PROT_EXEC));
		(is_dump ? put_load : put_map)(f, &made[i], (uintptr_t)at);
		for (int k = 0; k < n; k++)
			((function *)(uintptr_t)at)(callee);
	}
	EXPECT(fclose(f) == 0);
	return 0;
}
