/* SPDX-License-Identifier: MIT */
#pragma once

#include "cli/arguments.h"

/* Commands by name: argv[0] is the program, what follows the command's words.
 * Each says what is wrong, and returns an exit code. */
int run_lab(int argc, char **argv);
int run_rss(int argc, char **argv);
int run_leaks(int argc, char **argv);

/* Those of the launcher. */
int run_run(int argc, char **argv);
int run_preload_path(int argc, char **argv);
int run_ps(int argc, char **argv);
int run_ls(int argc, char **argv);
int run_ctl(int argc, char **argv);
int run_attach(int argc, char **argv);
int run_detach(int argc, char **argv);

/* Those of sampleprof-serve. */
int run_serve(int argc, char **argv);
int run_push(int argc, char **argv);
int run_fleet(int argc, char **argv);

extern const struct sp_command_line run_line;
extern const struct sp_command_line preload_path_line;
extern const struct sp_command_line ps_line;
extern const struct sp_command_line ls_line;
extern const struct sp_command_line ctl_line;
extern const struct sp_command_line attach_line;
extern const struct sp_command_line detach_line;
extern const struct sp_command_line serve_line;
extern const struct sp_command_line push_line;

/* Of sampleprof without a command. */
extern const struct sp_command_line help_line;
