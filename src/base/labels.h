/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Labels of a process, "service=checkout,version=1.7": by them a fleet is
 * divided (docs/fleet.md).  Keys are 1 to 63 letters, digits and _.-, each
 * once; values 1 to 128 letters, digits and ._-:/@+.  So they stand in a file,
 * in SQL, in JSON and on a terminal as they are.
 */
#define SP_LABELS_MAX            32u
#define SP_LABELS_BYTES_MAX      1024u
#define SP_LABEL_KEY_BYTES_MAX   63u
#define SP_LABEL_VALUE_BYTES_MAX 128u

/* Not terminated: see the lengths. */
struct sp_label {
	const char *key;
	size_t key_bytes;
	const char *value;
	size_t value_bytes;
};

/* NULL if the text is a list of labels, "" being none; else what is wrong with
 * it, to be read after "the text ".  Reads SP_LABELS_BYTES_MAX + 1 bytes at
 * most. */
const char *sp_labels_check(const char *text);

/* The label at *at, in a text that was checked, which moves to the next one;
 * false at the end. */
bool sp_labels_next(const char **at, struct sp_label *ret);
