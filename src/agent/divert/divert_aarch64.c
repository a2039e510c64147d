/* SPDX-License-Identifier: MIT */
/* Nothing is diverted: what instructions do elsewhere is not known. */
#include "agent/divert/divert.h"

#include "agent/sys/poison.h"

static struct sp_divert_families none;

bool sp_divert_begin(const struct sp_divert_hooks *hooks)
{
	(void)hooks;
	return false;
}

bool sp_divert_attach(const struct sp_divert_hooks *hooks)
{
	return sp_divert_begin(hooks);
}

void sp_divert_detach(void)
{
}

bool sp_divert_is_entry(uintptr_t address)
{
	(void)address;
	return false;
}

bool sp_divert_look(void)
{
	return false;
}

struct sp_divert_families *sp_divert_found(void)
{
	return &none;
}

bool sp_divert_is_jemalloc(const struct sp_divert_family *family)
{
	(void)family;
	return false;
}

const struct sp_divert_hooks sp_divert_hooks;
