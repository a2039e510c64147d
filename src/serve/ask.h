/* SPDX-License-Identifier: MIT */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>

#include "serve/reply.h"
#include "serve/server.h"

/*
 * What a request asks for, and whether it may: *request, which is empty before,
 * and true if something has to be read for it; else *reply.
 */
bool sp_ask(const struct sp_server_options *options, struct MHD_Connection *c,
	    const char *url, const char *method,
	    struct sp_reply_request *request, struct sp_reply *reply);
