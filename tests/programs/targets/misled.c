/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into `symbolize`: the child that reads files says what somebody
 * else likes.  The answer, which is at the end of its word, is all letters.
 */
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ANSWER_MAX 640 /* SP_APART_ANSWER_MAX */

static pid_t command;

static void __attribute__((constructor)) note_command(void)
{
	command = getpid();
}

ssize_t write(int fd, const void *data, size_t n)
{
	char word[PIPE_BUF];
	struct stat st;

	if (getpid() != command && fstat(fd, &st) == 0 &&
	    S_ISFIFO(st.st_mode) && n > ANSWER_MAX && n <= sizeof(word)) {
		memcpy(word, data, n);
		memset(word + n - ANSWER_MAX, 'A', ANSWER_MAX);
		data = word;
	}
	return syscall(SYS_write, fd, data, n);
}
