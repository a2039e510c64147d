/* SPDX-License-Identifier: MIT */
/* What the library has answered, for the user. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "control/attach_inner.h"

int sp_attach_explain_not_there(uint64_t pid, struct sp_error *err)
{
	return sp_error_set(err, -ESRCH, NULL,
			    "nothing is attached to process %" PRIu64
			    ": sampleprof ps lists the processes that are "
			    "recorded",
			    pid);
}

/* An answer with the errno of a system call. */
static int explain_errno(const struct sp_attach_job *job, struct sp_error *err)
{
	const int said = job->request.error;
	const int error = said < 0 && said > -4096 ? said : -EIO;

	if (job->request.result == SP_ATTACH_NO_FILE && error == -EFBIG)
		return sp_error_set(err, error, NULL,
				    "process %d cannot create its profile, "
				    "because its limit for the size of files "
				    "is too low: prlimit --pid %d "
				    "--fsize=unlimited, or start it under "
				    "sampleprof run with another limit",
				    job->pid, job->pid);
	if (job->request.result == SP_ATTACH_NO_FILE)
		return sp_error_set(err, error, NULL,
				    "process %d cannot create its profile: %s; "
				    "name a directory that its user may write "
				    "to: --out DIR/",
				    job->pid, strerror(-error));
	return sp_error_set(err, error, NULL,
			    "process %d cannot make its GOT slots and "
			    "symbol tables writable: %s; start the "
			    "program under sampleprof run",
			    job->pid, strerror(-error));
}

static int explain_attached(const struct sp_attach_job *job,
			    struct sp_error *err)
{
	return sp_error_set(err, -EALREADY, NULL,
			    "process %d is recorded already: another "
			    "sampleprof attach (process %" PRIu64 ") came "
			    "first: sampleprof ctl %d status",
			    job->pid, job->request.attached_by, job->pid);
}

static int explain_no_allocator(const struct sp_attach_job *job,
				struct sp_error *err)
{
	return sp_error_set(
		err, -ENOEXEC, NULL,
		sp_image_has_own_malloc(job->image)
			? "the executable of process %d has its own malloc and "
			  "calls it directly, and that cannot lead elsewhere: "
			  "sampleprof run says why"
			: "process %d: no allocator was found whose calls can "
			  "be redirected; start the program under sampleprof "
			  "run",
		job->pid);
}

int sp_attach_explain_answer(const struct sp_attach_job *job,
			     struct sp_error *err)
{
	const struct sp_attach_request *q = &job->request;

	switch (q->result) {
	case SP_ATTACH_DONE:
		return 0;
	case SP_ATTACH_IS_PRELOADED:
		return sp_error_set(err, -EEXIST, NULL,
				    "process %d was started under sampleprof: "
				    "sampleprof ctl %d %s",
				    job->pid, job->pid,
				    q->command == SP_ATTACH_END ? "stop"
								: "start");
	case SP_ATTACH_IS_OFF:
		return sp_error_set(err, -EEXIST, NULL,
				    "process %d has the library, switched "
				    "off: it is a child that is not to be "
				    "recorded, was not drawn, or could not "
				    "create its file; attach to its parent, "
				    "with --follow all",
				    job->pid);
	case SP_ATTACH_IS_ATTACHED:
		return explain_attached(job, err);
	case SP_ATTACH_NO_ALLOCATOR:
		return explain_no_allocator(job, err);
	case SP_ATTACH_REFUSED:
		return sp_error_set(err, -EINVAL, NULL,
				    "the library in process %d refuses to "
				    "record: a SAMPLEPROF_ variable is not "
				    "valid (man 7 sampleprof), or the program "
				    "is set-uid, which cannot be recorded",
				    job->pid);
	case SP_ATTACH_NO_FILE:
	case SP_ATTACH_NO_WRITE:
		return explain_errno(job, err);
	case SP_ATTACH_BUSY:
		return sp_error_set(err, -EBUSY, NULL, "process %d: %s",
				    job->pid,
				    q->command == SP_ATTACH_END
					    ? "the profile is complete, but a "
					      "thread may still be in the "
					      "library: detach again, which "
					      "frees the library's memory"
					    : "a thread is still in the "
					      "library, for the previous "
					      "profile; try again");
	case SP_ATTACH_NOT_THERE:
		return sp_attach_explain_not_there((uint64_t)job->pid, err);
	default:
		return sp_error_set(err, -EPROTO, NULL,
				    "process %d has another version of the "
				    "library loaded: use the sampleprof "
				    "command of that version",
				    job->pid);
	}
}
