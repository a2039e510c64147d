/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/labels.h"

/*
 * The settings of a process, from its environment (config.def).  Nothing points
 * into the environment: a program may write its title there (PostgreSQL), and
 * a forked child puts the settings into a file of its own after that.
 */
struct sp_config {
#define SP_KNOB_SIZE(name, field, def, min, max, help)         uint64_t field;
#define SP_KNOB_NUMBER(name, field, def, min, max, unit, help) uint64_t field;
#define SP_KNOB_RATE(name, field, help)                        uint64_t field;
#define SP_KNOB_TEXT(name, field, def, max, help)              char field[(max) + 1];
#define SP_KNOB_FRACTION(name, field, help)                    uint64_t field;
#define SP_KNOB_LABELS(name, field, help)                      char field[SP_LABELS_BYTES_MAX + 1];
#define SP_KNOB_CHOICE(name, field, def, choices, help)        unsigned int field;
#include "agent/process/config.def"
#undef SP_KNOB_SIZE
#undef SP_KNOB_NUMBER
#undef SP_KNOB_RATE
#undef SP_KNOB_TEXT
#undef SP_KNOB_FRACTION
#undef SP_KNOB_LABELS
#undef SP_KNOB_CHOICE
	/* The file has every allocation and every free, and nothing of it is
	 * discarded: at period 1, from the start on, if the file may be large.
	 */
	bool records_all;
	/* What is wrong with the labels that were given, so that there are none
	 * (base/labels.h); else NULL. */
	const char *labels_refused;
	bool has_max_file;   /* max_file_bytes is not the default */
	uint64_t file_bytes; /* the limit that follows from all */
};

/* The limit of a file whose beginning is discarded, and the default of one that
 * keeps all. */
#define SP_CONFIG_RING_MAX (4ull << 30)
#define SP_CONFIG_ALL_MAX  (64ull << 30)

#define SP_CONFIG_LOG_QUIET   1
#define SP_CONFIG_LAW_DOTNET  1
#define SP_CONFIG_UNWIND_FP   1
#define SP_CONFIG_UNWIND_PEER 2
#define SP_CONFIG_FREES_OFF   1
#define SP_CONFIG_RSS_OFF     1
#define SP_CONFIG_LEDGER_OFF  0
#define SP_CONFIG_LEDGER_PEAK 2
#define SP_CONFIG_START_OFF   1
#define SP_CONFIG_USR1        1
#define SP_CONFIG_COMMAND_OFF 1

/* The period under LAW=dotnet if none is given: .NET's own. */
#define SP_CONFIG_DOTNET_PERIOD 102400u

/* What is wrong with the environment, for one line on standard error. */
struct sp_config_error {
	const char *name;     /* without SAMPLEPROF_; NULL: nothing wrong */
	const char *variable; /* "NAME=VALUE", borrowed from there */
	char expected[160];
	const char *unknown; /* first variable SAMPLEPROF_* that is no knob, as
			      * "NAME=VALUE"; not an error */
};

/*
 * Fill `config` from `environment` (NULL-terminated; may be NULL).  False if a
 * value is not acceptable: `err` says which.  Context: cold.
 */
bool sp_config_parse(char *const *environment, struct sp_config *config,
		     struct sp_config_error *err);

/* Calls emit(arg, "setting.period", "524288") for every knob. */
void sp_config_describe(const struct sp_config *config,
			void (*emit)(void *arg, const char *key,
				     const char *value),
			void *arg);

/* Calls emit(arg, line) for every line of SAMPLEPROF_HELP=1. */
void sp_config_help(void (*emit)(void *arg, const char *line), void *arg);
