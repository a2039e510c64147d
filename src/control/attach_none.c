/* SPDX-License-Identifier: MIT */
/* attach.h where no way to call a function in another process is known. */
#include <errno.h>

#include "control/attach.h"

static int refuse(struct sp_error *err)
{
	return sp_error_set(err, -ENOSYS, NULL,
			    "this architecture cannot be attached to: start "
			    "the program under sampleprof run");
}

int sp_attach_begin(uint64_t pid, const char *const *settings, size_t n,
		    struct sp_attach_done *ret, struct sp_error *err)
{
	(void)pid;
	(void)settings;
	(void)n;
	*ret = (struct sp_attach_done){0};
	return refuse(err);
}

int sp_attach_end(uint64_t pid, struct sp_attach_done *ret,
		  struct sp_error *err)
{
	(void)pid;
	*ret = (struct sp_attach_done){0};
	return refuse(err);
}

bool sp_attach_sees_our_files(uint64_t pid)
{
	(void)pid;
	return false;
}
