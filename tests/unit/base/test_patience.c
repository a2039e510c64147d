/* SPDX-License-Identifier: MIT */
/*
 * What is not answered is waited for, but not for ever: memory that nobody
 * serves (userfaultfd).  All else is as without a child.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
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

/* Whoever reads a pipe of ours does not wait for it. */
TEST(no_descriptor_of_ours)
{
	int ends[2];
	char byte;

	sp_patience_rest();
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(sp_patience_open(AT_FDCWD, "/", O_WRONLY, 0), -EISDIR);
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 0);
	close(ends[0]);
}

/* A child of ours has its own; a copy goes where it is to. */
TEST(forked_and_copied)
{
	const int copy = memfd_create("copy", MFD_CLOEXEC);
	const int from = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	char text[8] = "";
	int status;
	pid_t pid;

	assert_int_equal(sp_patience_copy(from, copy, 4, 0), 4);
	assert_int_equal(pread(copy, text, sizeof(text), 0), 4);
	assert_memory_equal(text, "\177ELF", 4);
	pid = fork();
	if (pid == 0)
		_exit(sp_patience_read(from, text, 4, 1) != 4 ||
		      text[0] != 'E');
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(sp_patience_read(from, text, 2, 2), 2);
	assert_memory_equal(text, "LF", 2);
	close(copy);
	close(from);
}

/* Of ours, which takes the next call. */
static pid_t find_child(void)
{
	char text[32] = "";
	const int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof(text) - 1) >= 0);
	close(fd);
	return atoi(text);
}

/* A child that has died is missed once. */
TEST(child_that_died)
{
	const int place = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	pid_t child;
	char byte;

	sp_patience_begin();
	child = find_child();
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, __WALL), child);
	assert_int_equal(sp_patience_read(place, &byte, 1, 0), -EIO);
	assert_int_equal(find_child(), 0);
	assert_int_equal(sp_patience_read(place, &byte, 1, 0), 1);
	close(place);
}

static void *read_byte(void *arg)
{
	char byte;

	return (void *)sp_patience_read(*(int *)arg, &byte, 1, 0);
}

static void read_in_thread(int place)
{
	pthread_t thread;
	void *read;

	assert_int_equal(pthread_create(&thread, NULL, read_byte, &place), 0);
	assert_int_equal(pthread_join(thread, &read), 0);
	assert_int_equal((intptr_t)read, 1);
}

/* That of a thread ends with it: the next question finds another, whoever asks.
 * That of the first thread stays. */
TEST(thread_that_ended)
{
	int place = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	pid_t child;
	char byte;

	sp_patience_rest();
	read_in_thread(place);
	read_in_thread(place);
	assert_int_equal(sp_patience_read(place, &byte, 1, 0), 1);
	child = find_child();
	assert_true(child);
	read_in_thread(place);
	assert_int_equal(find_child(), child);
	close(place);
}

/* A stopped child ends with its parent. */
TEST(stopped_child)
{
	int tell[2], status;
	pid_t parent, child = 0;

	sp_patience_rest();
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	assert_int_equal(pipe(tell), 0);
	parent = fork();
	if (parent == 0) {
		/* By its answer the child is ready. */
		sp_patience_open(AT_FDCWD, "/", O_WRONLY, 0);
		child = find_child();
		kill(child, SIGSTOP);
		if (waitpid(child, &status, WUNTRACED | __WALL) == child)
			(void)!write(tell[1], &child, sizeof(child));
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(parent, &status, 0), parent);
	close(tell[1]);
	assert_int_equal(read(tell[0], &child, sizeof(child)), sizeof(child));
	/* For ever, if it does not. */
	assert_int_equal(waitpid(child, &status, __WALL), child);
	assert_true(WIFSIGNALED(status));
	close(tell[0]);
	prctl(PR_SET_CHILD_SUBREAPER, 0);
}

/* A file that there is none of, as the kernel knows, needs no child. */
TEST(no_child)
{
	struct {
		uint64_t flags, mode, resolve;
	} how = {.flags = O_PATH | O_CLOEXEC, .resolve = 0x20};
	struct stat st;

	sp_patience_rest();
	assert_int_equal(stat("/nowhere", &st), -1);
	syscall(SYS_openat2, AT_FDCWD, "/nowhere", &how, sizeof(how));
	if (errno != ENOENT)
		skip();
	assert_int_equal(sp_patience_open(AT_FDCWD, "/nowhere", O_PATH, 0),
			 -ENOENT);
	assert_int_equal(find_child(), 0);
}

/* As qemu-user has it: no child without a signal at its end. */
static void refuse_silent_children(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD + BPF_W + BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP + BPF_JEQ + BPF_K, SYS_clone, 0, 3),
		BPF_STMT(BPF_LD + BPF_W + BPF_ABS,
			 offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP + BPF_JSET + BPF_K, 0xff, 1, 0),
		BPF_STMT(BPF_RET + BPF_K, SECCOMP_RET_ERRNO + EINVAL),
		BPF_STMT(BPF_RET + BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]),
					   filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		_exit(2);
}

TEST(no_silent_child)
{
	int fd, status;
	pid_t pid;

	sp_patience_rest();
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		refuse_silent_children();
		fd = sp_patience_open(AT_FDCWD, "/proc/self/exe",
				      O_RDONLY | O_CLOEXEC, 0);
		sp_patience_rest();
		_exit(fd < 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		skip();
	assert_int_equal(status, 0);
}

static int next_number(void)
{
	const int fd = dup(0);

	assert_true(fd >= 0);
	close(fd);
	return fd;
}

/* There is no number for what the child has opened. */
TEST(no_room_for_a_descriptor)
{
	struct rlimit limit, before;
	int fd;

	sp_patience_begin();
	fd = next_number();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	limit.rlim_cur = (rlim_t)fd;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	fd = sp_patience_open(AT_FDCWD, "/proc/self/exe", O_RDONLY, 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(fd, -EMFILE);
}

/* What was forked may have closed the parent's descriptor, and its number be
 * another's. */
TEST(number_of_another)
{
	const int place = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	struct stat st;
	int status, fd;
	char byte;
	pid_t pid;

	sp_patience_rest();
	fd = next_number(); /* of what leads to the child */
	sp_patience_begin();
	pid = fork();
	if (pid == 0) {
		dup2(place, fd);
		_exit(sp_patience_read(place, &byte, 1, 0) != 1 ||
		      fstat(fd, &st) != 0 || !S_ISREG(st.st_mode));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(sp_patience_read(place, &byte, 1, 0), 1);
	close(place);
}

/* The child that began with the rights of root opens nothing for nobody. */
TEST(rights_of_another)
{
	char path[] = "/tmp/sampleprof-test-XXXXXX";
	const int fd = mkstemp(path);
	int as_root, as_nobody;

	assert_true(fd >= 0);
	sp_patience_begin();
	as_root = sp_patience_open(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	setfsuid(65534);
	as_nobody = sp_patience_open(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	setfsuid(geteuid());
	unlink(path);
	close(fd);
	assert_true(as_root >= 0);
	close(as_root);
	if (geteuid())
		skip();
	assert_int_equal(as_nobody, -EACCES);
}

struct read_area {
	pid_t pid;
	void *at;
};

static long read_area(int fd, void *data)
{
	const struct read_area *area = data;
	char byte;
	const struct iovec here = {&byte, 1}, there = {area->at, 1};

	(void)fd;
	return process_vm_readv(area->pid, &here, 1, &there, 1, 0);
}

TEST(no_answer)
{
	const int place = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	const int other = open("/proc/self/maps", O_PATH | O_CLOEXEC);
	const uint64_t begin = sp_clock_ns();
	int server;
	struct read_area area = {.pid = getpid()};

	area.at = make_unserved_area(&server);
	if (!area.at)
		skip();
	/* Together they take less than twice as long as the first. */
	for (int i = 0; i < 10; i++)
		assert_int_equal(sp_patience_ask(place, O_RDONLY, read_area,
						 &area, sizeof(area)),
				 -ETIMEDOUT);
	assert_true(sp_clock_ns() - begin >= SP_PATIENCE_NS);
	assert_true(sp_patience_waited_ms() < SP_PATIENCE_NS / 1000000 / 10);
	/* The kernel does not let a reader of its file wait at all. */
	assert_int_equal(
		sp_patience_memory(getpid(), (uintptr_t)area.at, &area, 1),
		-EIO);
	/* Another device has all of the time. */
	assert_int_equal(sp_patience_ask(other, O_RDONLY, read_area, &area,
					 sizeof(area)),
			 -ETIMEDOUT);
	assert_int_equal(sp_patience_waited_ms(), SP_PATIENCE_NS / 1000000);
	close(server);
	close(place);
	close(other);
}

TEST_MAIN(NULL, NULL)
