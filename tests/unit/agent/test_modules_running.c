/* SPDX-License-Identifier: MIT */
/* The snapshot of a process that was running: an object that was loaded before
 * is in it, and may go. */
#include <dlfcn.h>
#include <string.h>

#include "agent/unwind/modules.h"
#include "support/agent_fixture.h"
#include "support/test.h"

#define OBJECT   SP_SYMBOL_FIXTURES "/libfixture_c.so"
#define FUNCTION "fixture_inlined"

static void *handle;
static unsigned int at_start;

TEST(loaded_before)
{
	const uintptr_t pc = (uintptr_t)dlsym(handle, FUNCTION);
	const struct sp_module_entry *e = sp_modules_find(pc, NULL);

	assert_non_null(e);
	assert_string_equal(e->name, OBJECT);
	assert_false(e->permanent);
	/* It was there before its code was met, and so was each other. */
	assert_int_equal(sp_modules_entries(), at_start);
	e = sp_modules_find((uintptr_t)strlen, NULL);
	assert_non_null(e);
	assert_true(e->permanent);
	assert_int_equal(sp_modules_entries(), at_start);
}

/* It may be unloaded, and nothing is at its place then. */
TEST(unloaded)
{
	const uintptr_t pc = (uintptr_t)dlsym(handle, FUNCTION);

	assert_int_equal(dlclose(handle), 0);
	assert_null(sp_modules_find(pc, NULL));
}

static int begin(void **state)
{
	handle = dlopen(OBJECT, RTLD_NOW);
	if (!handle)
		return -1;
	sp_modules_init_running("/opt/program");
	at_start = sp_modules_entries();
	/* Once. */
	sp_modules_init_running("/opt/program");
	if (sp_modules_entries() != at_start)
		return -1;
	return agent_fixture_begin(state);
}

TEST_MAIN(begin, agent_fixture_end)
