/* SPDX-License-Identifier: MIT */
#pragma once

#include "model/profile.h"

/*
 * What a process is called in Pyroscope: "service{host=web7,pid=4711,...}", by
 * its label service, or service_name, or its program, with its other labels;
 * what Pyroscope has no character for is '_'.  To be freed; NULL without
 * memory.
 */
char *sp_series_name(const struct sp_profile *profile);
