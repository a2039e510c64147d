/* SPDX-License-Identifier: MIT */
#include "support/arch.h"
#include "support/symbol_fixture.h"

fixture_entry_fn fixture_inlined, fixture_local, fixture_cold, fixture_last;
fixture_entry_fn fixture_after_last;

static inline __attribute__((always_inline)) void innermost(
	fixture_probe_fn *probe, int *lines)
{
	FIXTURE_AT(&lines[0], probe());
}

static inline __attribute__((always_inline)) void middle(
	fixture_probe_fn *probe, int *lines)
{
	int i;

	for (i = 0; i < 1; i++)
		FIXTURE_AT(&lines[1], innermost(probe, lines));
}

void fixture_inlined(fixture_probe_fn *probe, int *lines)
{
	FIXTURE_AT(&lines[2], middle(probe, lines));
}

static __attribute__((noinline)) void local_function(fixture_probe_fn *probe,
						     int *lines)
{
	FIXTURE_AT(&lines[0], probe());
}

void fixture_local(fixture_probe_fn *probe, int *lines)
{
	FIXTURE_AT(&lines[1], local_function(probe, lines));
}

static __attribute__((cold, noinline)) void chill(int *lines)
{
	lines[1] = 0;
}

/* gcc moves the unlikely block to a symbol of its own, fixture_cold.cold. */
void fixture_cold(fixture_probe_fn *probe, int *lines)
{
	if (lines[1]) {
		chill(lines);
		FIXTURE_AT(&lines[0], probe());
	}
	lines[2] = 1;
}

/* The call is the last instruction: its return address is behind the end. */
void fixture_last(fixture_probe_fn *probe, int *lines)
{
	lines[0] = __LINE__ + 1;
	probe();
	__builtin_unreachable();
}

void fixture_after_last(fixture_probe_fn *probe, int *lines)
{
	FIXTURE_AT(&lines[0], probe());
}

/* One address, three names. */
fixture_entry_fn fixture_aliased;

static void aliased_local(fixture_probe_fn *probe, int *lines)
{
	FIXTURE_AT(&lines[0], probe());
}

void fixture_aliased(fixture_probe_fn *probe, int *lines)
	__attribute__((alias("aliased_local")));
extern __typeof__(fixture_aliased) fixture_aliased_weak
	__attribute__((weak, alias("aliased_local")));

/* In the symbol table its name carries the version. */
fixture_entry_fn version_1;

void version_1(fixture_probe_fn *probe, int *lines)
{
	FIXTURE_AT(&lines[0], probe());
}
__asm__(".symver version_1, fixture_versioned@@FIXTURE_1");

/* Assembly without type and size, away from functions that may lose their
 * symbols: it would take their place. */
__asm__(".pushsection fixture_text, \"ax\"\n"
	".globl fixture_label\n"
	"fixture_label:\n" TEST_CALL_FIRST ".popsection\n");

/* The linker drops it, but not its DWARF. */
__attribute__((visibility("hidden"))) fixture_entry_fn discarded;

void discarded(fixture_probe_fn *probe, int *lines)
{
	FIXTURE_AT(&lines[0], probe());
}
