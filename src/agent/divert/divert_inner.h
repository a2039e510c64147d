/* SPDX-License-Identifier: MIT */
/* What divert_x86_64.c and look_x86_64.c share. */
#pragma once

#include "agent/divert/divert.h"
#include "agent/divert/entry.h"
#include "agent/sys/export.h"
#include "format/attach.h"

/* What the entries of all families are to become, and were. */
SP_EXPORT extern struct sp_attach_entries sampleprof_agent_entries;

extern struct sp_divert_families sp_divert_families
	__attribute__((visibility("hidden")));

struct sp_divert_work {
	const struct sp_divert_hooks *hooks;
	long memory;       /* /proc/self/mem */
	bool is_attaching; /* the command writes the entries */
	uintptr_t room, end;
	struct sp_attach_entry *list; /* of this family, behind the others */
	unsigned int n;
};

/* Divert the family, unless `why` it is not, or say why it is not. */
void sp_divert_family_write(struct sp_divert_work *w,
			    struct sp_divert_family *family, const char *why);

/* Take them back from the list. */
void sp_divert_drop_entries(const struct sp_divert_family *family);
uint32_t sp_divert_number_of(const struct sp_divert_family *family);

/* Unmap stubs and trampolines. */
void sp_divert_give_room(uintptr_t *room);

/* Through /proc/self/mem. */
bool sp_divert_open_memory(struct sp_divert_work *w);
void sp_divert_close_memory(struct sp_divert_work *w);
bool sp_divert_write_code(const struct sp_divert_work *w, uintptr_t at,
			  const void *from, size_t bytes);
bool sp_divert_write_entry(const struct sp_divert_work *w,
			   const struct sp_attach_entry *e);
