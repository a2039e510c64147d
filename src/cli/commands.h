/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

/* The commands that people meet, and the names of the programs that have them:
 * sampleprof has all; sampleprof-report and sampleprof-lab are the commands
 * report and lab under a name of their own. */

#define SP_COMMAND_PROGRAM "sampleprof"
#define SP_COMMAND_OFFLINE "sampleprof-report"
#define SP_COMMAND_SERVER  "sampleprof-serve"

enum sp_command_place {
	SP_COMMAND_LAUNCHER, /* the program sampleprof */
	SP_COMMAND_PAGE,   /* sampleprof-report: shares the options of report */
	SP_COMMAND_OTHER,  /* sampleprof-report: has its own */
	SP_COMMAND_SERVED, /* sampleprof-serve: needs what no report does */
};

struct sp_command {
	const char *name;
	enum sp_command_place place;
	const char *operands; /* "OLD NEW"; with the name at most 18 columns */
	const char *about;    /* lines of at most 59 columns */
};

/* The last has no name. */
extern const struct sp_command sp_commands[];

/* NULL: there is none of that name. */
const struct sp_command *sp_command_find(const char *name);

/* The name that was meant; NULL if none is near. */
const char *sp_command_nearest(const char *word);

/* The program as messages call it, by argv[0]: "sampleprof",
 * "sampleprof-lab"; "sampleprof-report" for every other name. */
const char *sp_command_program(const char *argv0);

/* The command that the name of the program stands for; NULL for sampleprof. */
const char *sp_command_implied(const char *program);

/* A line and more for each command, in the columns of --help: those that
 * record, or those that read. */
void sp_command_print_recording(FILE *out);
void sp_command_print_reading(FILE *out);
