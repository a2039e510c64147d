/* SPDX-License-Identifier: MIT */
/* A profiler that keeps its buffers in thread-local storage. */
char *hazard_buffer(void);

static __thread char buffer[12 << 10]
	__attribute__((tls_model("initial-exec")));

char *hazard_buffer(void)
{
	return buffer;
}
