/* SPDX-License-Identifier: MIT */
/*
 * What is not answered is waited for, but not for ever: memory that nobody
 * serves (userfaultfd).  All else is as without a child.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/patience.h"
#include "support/test.h"

#define AREA_BYTES 4096u

/* NULL: this kernel lets us not.  Nobody serves it until *ret_fd is closed. */
static void *make_unserved_area(int *ret_fd)
{
	struct uffdio_register area = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	struct uffdio_api api = {.api = UFFD_API};
	void *at = mmap(NULL, AREA_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	assert_ptr_not_equal(at, MAP_FAILED);
	*ret_fd = fd;
	area.range = (struct uffdio_range){(uintptr_t)at, AREA_BYTES};
	return fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0 &&
			       ioctl(fd, UFFDIO_REGISTER, &area) == 0
		       ? at
		       : NULL;
}

TEST(answers)
{
	char text[8] = "", copy[8] = "";
	struct stat st;
	int fd = sp_patience_open(AT_FDCWD, "/proc/self/exe",
				  O_RDONLY | O_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(sp_patience_read(fd, text, 4, 0), 4);
	assert_memory_equal(text, "\177ELF", 4);
	assert_int_equal(sp_patience_stat(fd, "", &st), 0);
	assert_true(S_ISREG(st.st_mode));
	close(fd);
	assert_int_equal(sp_patience_read(fd, text, 4, 0), -EBADF);
	assert_int_equal(sp_patience_open(AT_FDCWD, "/", O_WRONLY, 0), -EISDIR);
	assert_int_equal(sp_patience_open(AT_FDCWD, "/nowhere", O_PATH, 0),
			 -ENOENT);
	assert_int_equal(sp_patience_memory(getpid(), (uintptr_t)text, copy,
					    sizeof(copy)),
			 sizeof(copy));
	assert_memory_equal(text, copy, sizeof(copy));
}

TEST(no_answer)
{
	const uint64_t begin = sp_clock_ns();
	int server;
	void *area = make_unserved_area(&server);
	char byte = 'x';

	if (!area)
		skip();
	/* Together they take less than twice as long as the first. */
	for (int i = 0; i < 10; i++)
		assert_int_equal(
			sp_patience_memory(getpid(), (uintptr_t)area, &byte, 1),
			-ETIMEDOUT);
	assert_true(sp_clock_ns() - begin >= SP_PATIENCE_NS);
	assert_true(sp_patience_waited_ms() < SP_PATIENCE_NS / 1000000 / 10);
	assert_int_equal(byte, 'x');
	/* Who looks for leaks at the end waits for every thread. */
	close(server);
}

TEST_MAIN(NULL, NULL)
