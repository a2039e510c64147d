/* SPDX-License-Identifier: MIT */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#include "format/layout.h"

/*
 * The loaded objects: the agent's own snapshot, read without the loader's
 * lock.  Objects of start-up are taken from the loader's list; one that was
 * loaded later is added when a sample first meets its code (loaded.h).
 *
 * An object that was unloaded and replaced by another at the same address gets
 * a second entry, so that old samples keep theirs; one that comes back to its
 * old place has its old entry.  When all are taken, one of an object that is
 * gone is used again, for another id.
 */
struct sp_cfi_index;

struct sp_module_entry {
	_Atomic uint32_t id; /* 1.. in the file; 0: of no object */
	uintptr_t start;     /* its segments, first to last */
	uintptr_t end;
	uintptr_t code_start; /* its executable segments, first to last */
	uintptr_t code_end;
	uintptr_t bias;
	bool has_holes; /* something else may be between its segments */
	bool permanent; /* never unloaded */
	bool is_go;     /* Go has made some of its code */
	_Atomic uint32_t asked_for_python;    /* its id then; python.h */
	_Atomic(const struct link_map *) map; /* its node when last looked up */
	const char *name;                     /* the loader's; our copy */
	const char *path;              /* what the file has: the kernel's name
					  if the loader's is relative */
	const ElfW(Phdr) * phdr;       /* our copy: safe after an unload */
	const ElfW(Phdr) * phdr_there; /* in the object's memory */
	uint16_t n_phdr;
	uint16_t name_room, phdr_room; /* bytes, and headers, of our copies */
	const uint8_t *note;           /* build id in the object's memory */
	uint8_t build_id[SP_FORMAT_BUILD_ID_MAX];
	uint8_t build_id_bytes;
	_Atomic(struct sp_cfi_index *) index; /* cfi_index.h; NULL: not made */
	_Atomic uint32_t written; /* generation of the file that has it */
};

/* Take the snapshot at start-up.  Context: cold, before main. */
void sp_modules_init(const char *exe_path);

/* The same in a program that was running, and has loaded others since: those
 * may go.  Nothing happens the second time.  Context: cold, the loader's lock
 * is held. */
void sp_modules_init_running(const char *exe_path);

/*
 * The object that has pc in one of its segments now, or NULL (anonymous memory,
 * table full).  `last` (may be NULL) is the answer for a neighbouring frame.
 * Adds it to the snapshot if it is not there.  The caller holds a lane as long
 * as it uses the answer.  Context: sampled.
 */
struct sp_module_entry *sp_modules_find(uintptr_t pc,
					struct sp_module_entry *last);

/*
 * Where every free is seen: the address is about to be freed.  The loader frees
 * the node of an object behind its unloading, by the malloc of the program.
 * Context: any.
 */
void sp_modules_freed(uintptr_t address);

/* From now on every free is seen.  Context: cold. */
void sp_modules_watch_frees(void);

/* While it is the same, no object that was met was unloaded.  0: not known. */
uint32_t sp_modules_unloads(void);

/* Objects met so far: as long as it is the same, no new object was met. */
unsigned int sp_modules_count(void);

/* Entries so far, and each of them; its id is 0 if its object is gone. */
unsigned int sp_modules_entries(void);
struct sp_module_entry *sp_modules_get(unsigned int index);

/* An id that no object has, nor will have.  Context: sampled. */
uint32_t sp_modules_take_id(void);

/* The calling thread has left the adding of an entry for good (inside.h). */
void sp_modules_give_left(void);

/* In a forked child: no thread is adding an entry. */
void sp_modules_reset(void);

/* This library's own code. */
bool sp_modules_is_self(uintptr_t pc);
