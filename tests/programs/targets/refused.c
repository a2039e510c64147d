/* SPDX-License-Identifier: MIT */
/*
 * Four allocators in a program: refused ROUNDS.  One can be seen at its
 * entries; each other one has a free that cannot lead elsewhere: it is too
 * short, it jumps into its own beginning, or it has an instruction that no
 * processor of 64 bits knows, behind its end.  Prints what was asked of the
 * first one, and of how many functions of each the code is not the file's.
 *
 * With MORE there are six more, and functions that are called as those of six
 * others that have no malloc.
 */
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "truth.h"

#define API __attribute__((noinline, noclone, visibility("hidden")))

static _Alignas(16) char arena[1 << 20];
static size_t used;
static unsigned int freed;

static inline void *take(size_t n)
{
	void *p = arena + used;

	used += (n + 31) / 16 * 16;
	return used <= sizeof(arena) ? p : NULL;
}

#define ALLOCATOR(name)                                                        \
	API void *name##_je_malloc(size_t n);                                  \
	API void name##_je_free(void *p);                                      \
	void *name##_je_malloc(size_t n)                                       \
	{                                                                      \
		return take(n);                                                \
	}

ALLOCATOR(fine)
ALLOCATOR(short)
ALLOCATOR(loop)
ALLOCATOR(odd)

void fine_je_free(void *p)
{
	freed += p != NULL;
}

#ifdef MORE
#define MORE_ALLOCATOR(name)                                                   \
	ALLOCATOR(name)                                                        \
	void name##_je_free(void *p)                                           \
	{                                                                      \
		freed += p == NULL;                                            \
	}

MORE_ALLOCATOR(fifth)
MORE_ALLOCATOR(sixth)
MORE_ALLOCATOR(seventh)
MORE_ALLOCATOR(eighth)
MORE_ALLOCATOR(ninth)
MORE_ALLOCATOR(long_name_of_an_allocator_for_which_there_is_no_room)

#define NONE(name)                                                             \
	API void *name##_je_calloc(size_t n);                                  \
	void *name##_je_calloc(size_t n)                                       \
	{                                                                      \
		return take(n + 1);                                            \
	}

NONE(a)
NONE(b)
NONE(c)
NONE(d)
NONE(e)
NONE(f)
#endif

#define FUNCTION(name, code)                                                   \
	__asm__(".pushsection .text\n\t.balign 16\n\t.globl " name "\n\t"      \
		".hidden " name "\n\t.type " name ", @function\n" name ":\n\t" \
		".cfi_startproc\n\t" code ".cfi_endproc\n\t"                   \
		".size " name ", . - " name                                    \
		"\n\t.balign 16, 0xcc\n\t.popsection")

FUNCTION("short_je_free", "ret\n\t");
FUNCTION("loop_je_free", "xor %eax, %eax\n"
			 "1:\tinc %eax\n\t"
			 "cmp $3, %eax\n\t"
			 "jb 1b\n\t"
			 "ret\n\t");
FUNCTION("odd_je_free", "mov %rdi, %rax\n\t"
			"test %rdi, %rdi\n\t"
			"ret\n\t"
			".byte 0x06\n\t");

typedef void *allocate(size_t n);
typedef void give_back(void *p);

static const struct allocator {
	const char *name;
	allocate *allocate;
	give_back *give_back;
} allocators[] = {
	{"fine", fine_je_malloc, fine_je_free},
	{"short", short_je_malloc, short_je_free},
	{"loop", loop_je_malloc, loop_je_free},
	{"odd", odd_je_malloc, odd_je_free},
#ifdef MORE
	{"fifth", fifth_je_malloc, fifth_je_free},
	{"sixth", sixth_je_malloc, sixth_je_free},
	{"seventh", seventh_je_malloc, seventh_je_free},
	{"eighth", eighth_je_malloc, eighth_je_free},
	{"ninth", ninth_je_malloc, ninth_je_free},
	{"long", long_name_of_an_allocator_for_which_there_is_no_room_je_malloc,
	 long_name_of_an_allocator_for_which_there_is_no_room_je_free},
#endif
};

/* Of the first program header with that address: where it is in the file. */
static int find_offset(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	uintptr_t *at = arg;

	(void)bytes;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const uintptr_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD || *at < start ||
		    *at - start >= p->p_filesz)
			continue;
		*at = *at - start + p->p_offset;
		return 1;
	}
	return 0;
}

static bool is_changed(int file, const void *code)
{
	uintptr_t at = (uintptr_t)code;
	char there[9]; /* a landing pad and a jump */

	EXPECT(dl_iterate_phdr(find_offset, &at) == 1);
	EXPECT(pread(file, there, sizeof(there), (off_t)at) == sizeof(there));
	return memcmp(there, code, sizeof(there)) != 0;
}

int main(int argc, char **argv)
{
	const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const int rounds = argc > 1 ? atoi(argv[1]) : 0;
	struct truth truth = {0, 0};

	EXPECT(file >= 0);
#ifdef MORE
	EXPECT(a_je_calloc(1) && b_je_calloc(1) && c_je_calloc(1) &&
	       d_je_calloc(1) && e_je_calloc(1) && f_je_calloc(1));
#endif
	for (size_t i = 0; i < sizeof(allocators) / sizeof(*allocators); i++) {
		const struct allocator *a = &allocators[i];

		for (int n = 1; n <= rounds; n++) {
			void *p = a->allocate((size_t)n);

			EXPECT(p);
			memset(p, 0x5a, (size_t)n);
			if (i == 0)
				truth_add(&truth, p, (size_t)n);
			a->give_back(p);
		}
		printf("%s 0 %d\n", a->name,
		       is_changed(file, (const void *)(uintptr_t)a->allocate) +
			       is_changed(
				       file,
				       (const void *)(uintptr_t)a->give_back));
	}
	EXPECT(freed == (unsigned int)rounds);
	truth_print("truth", &truth);
	return 0;
}
