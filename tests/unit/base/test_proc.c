/* SPDX-License-Identifier: MIT */
/*
 * Processes in /proc: living, ended, with a main thread that ended alone; files
 * by their mappings; and that only files are opened.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/regular.h"
#include "support/test.h"

static void *wait_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* A process of which only a second thread is left. */
static void leave_a_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, wait_for_ever, NULL) != 0)
		_exit(1);
	syscall(SYS_exit, 0); /* of the main thread alone */
}

/* Without waiting for it: it stays. */
static void wait_until_main_ended(pid_t pid, bool and_all)
{
	siginfo_t info;
	char path[64], text[256] = "";

	if (and_all) {
		assert_int_equal(
			waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
		return;
	}
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	while (!strstr(text, ") Z ")) {
		const int fd = open(path, O_RDONLY | O_CLOEXEC);

		assert_true(fd >= 0);
		assert_true(read(fd, text, sizeof(text) - 1) > 0);
		close(fd);
	}
}

/* Also after a check that failed: a reader of what the test says waits until
 * all have ended who could write. */
static void end_child(void *pid)
{
	kill((pid_t)(intptr_t)pid, SIGKILL);
	waitpid((pid_t)(intptr_t)pid, NULL, 0);
}

/* The thread has begun, and then sleeps. */
static void wait_until_it_sleeps(pid_t pid)
{
	for (int looks = 0; looks < 1000000; looks++) {
		if (sp_proc_state((uint64_t)pid) == 'S')
			return;
		sched_yield();
	}
	fail_msg("the thread does not sleep");
}

TEST(living)
{
	struct sp_proc_identity identity;
	const uint64_t own = (uint64_t)getpid();
	const int dir = sp_proc_open(own);
	char exe[2][512] = {"", ""};

	assert_int_equal(sp_proc_thread(own), getpid());
	assert_true(dir >= 0);
	assert_true(readlinkat(dir, "exe", exe[0], sizeof(exe[0]) - 1) > 0);
	assert_true(readlink("/proc/self/exe", exe[1], sizeof(exe[1]) - 1) > 0);
	assert_string_equal(exe[0], exe[1]);
	close(dir);
	assert_true(sp_proc_identify(own, &identity));
	assert_int_equal(identity.own_pid, own);
	assert_true(identity.start_ticks > 0);
	assert_false(sp_proc_is_other(&identity));
	identity.uids[2]++;
	assert_true(sp_proc_is_other(&identity));
}

static void make_file(char path[32], const char *text)
{
	int fd;

	strcpy(path, "/tmp/proc.XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

TEST(small_files)
{
	char path[32], text[16], all[64];

	make_file(path, "0123456789abcdef.");
	assert_int_equal(sp_proc_read(all, sizeof(all), "%s", path), 17);
	assert_string_equal(all, "0123456789abcdef.");
	assert_int_equal(sp_proc_read(text, sizeof(text), "/tmp/%s", path + 5),
			 15);
	assert_string_equal(text, "0123456789abcde");
	unlink(path);
	assert_int_equal(sp_proc_read(text, sizeof(text), "%s", path), -ENOENT);
	assert_string_equal(text, "");
	assert_int_equal(sp_proc_read(text, sizeof(text), "/tmp"), -EISDIR);
	assert_int_equal(sp_proc_read(text, sizeof(text), "%05000d", 1),
			 -ENAMETOOLONG);
}

TEST(lines)
{
	struct sp_proc_lines l = {.in = NULL};
	char path[32], all[64] = "";
	int n = 0;

	assert_false(sp_proc_next(&l));
	make_file(path, "one\n\nthree");
	for (l.in = sp_proc_open_file("%s", path); sp_proc_next(&l); n++)
		strcat(all, l.line);
	assert_int_equal(n, 3);
	assert_string_equal(all, "one\n\nthree");
	assert_false(sp_proc_next(&l));
	l.in = sp_proc_open_file("%s", path);
	assert_true(sp_proc_next(&l));
	sp_proc_end_lines(&l);
	assert_null(l.in);
	assert_false(sp_proc_next(&l));
	unlink(path);
	assert_null(sp_proc_open_file("%s", path));
}

/* The first process of a machine starts at tick 0 of some. */
TEST(starts)
{
	uint64_t first, ours, none;

	assert_true(sp_proc_start_ticks(1, &first));
	assert_true(sp_proc_start_ticks((uint64_t)getpid(), &ours));
	assert_true(first <= ours);
	assert_false(sp_proc_start_ticks(1ull << 40, &none));
}

TEST(ended)
{
	const pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	wait_until_main_ended(pid, true);
	assert_int_equal(sp_proc_thread((uint64_t)pid), -ESRCH);
	assert_int_equal(sp_proc_open((uint64_t)pid), -ESRCH);
	assert_int_equal(sp_proc_state((uint64_t)pid), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(sp_proc_thread((uint64_t)pid), -ENOENT);
	assert_int_equal(sp_proc_thread(1u << 30), -ENOENT);
}

TEST(main_thread_that_ended)
{
	struct sp_proc_identity identity;
	char exe[512];
	pid_t tid;
	int dir;
	const pid_t pid = fork();

	if (pid == 0)
		leave_a_thread();
	at_test_end(end_child, (void *)(intptr_t)pid);
	wait_until_main_ended(pid, false);
	tid = sp_proc_thread((uint64_t)pid);
	assert_true(tid > 0 && tid != pid);
	dir = sp_proc_open((uint64_t)pid);
	assert_true(dir >= 0);
	assert_true(readlinkat(dir, "exe", exe, sizeof(exe)) > 0);
	close(dir);
	wait_until_it_sleeps(pid);
	assert_true(sp_proc_identify((uint64_t)pid, &identity));
	assert_int_equal(identity.own_pid, pid);
	assert_false(sp_proc_is_other(&identity));
}

TEST(maps)
{
	char line[] =
		"7f00-8f00 rw-s 00000000 fe:01 4711      /a b (deleted)\n";
	char none[] = "7f00-8f00 rw-p 00000000 00:00 0 \n";
	char other[] = "Rss:   12 kB\n";
	struct sp_proc_map map;

	assert_true(sp_proc_parse_map(line, &map));
	assert_int_equal(map.start, 0x7f00);
	assert_int_equal(map.end, 0x8f00);
	assert_int_equal(map.file.major, 0xfe);
	assert_int_equal(map.file.minor, 1);
	assert_int_equal(map.file.inode, 4711);
	assert_string_equal(map.path, "/a b (deleted)");
	assert_true(sp_proc_map_is_written(&map));
	assert_true(sp_proc_parse_map(none, &map));
	assert_string_equal(map.path, "");
	assert_false(sp_proc_map_is_written(&map));
	assert_false(sp_proc_parse_map(other, &map));
}

TEST(file_of_mapping)
{
	const int dir = sp_proc_open((uint64_t)getpid());
	char path[] = "/tmp/sampleprof-unit-XXXXXX";
	struct sp_proc_file file;
	int fd = mkstemp(path);
	void *at;

	assert_true(fd >= 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(sp_proc_name_file(fd, &file), 0);
	assert_false(sp_proc_writes(dir, &file));
	at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(at != MAP_FAILED);
	assert_true(sp_proc_writes(dir, &file));
	file.minor++;
	assert_false(sp_proc_writes(dir, &file));
	munmap(at, 4096);
	close(fd);
	close(dir);
}

/* Nobody may notice that a pipe was looked at. */
TEST(regular)
{
	char dir[] = "/tmp/sampleprof-unit-XXXXXX", pipe[64], file[64],
	     link[64];
	int fd;

	assert_non_null(mkdtemp(dir));
	snprintf(pipe, sizeof(pipe), "%s/pipe", dir);
	snprintf(file, sizeof(file), "%s/file", dir);
	snprintf(link, sizeof(link), "%s/link", dir);
	assert_int_equal(mkfifo(pipe, 0600), 0);
	assert_int_equal(sp_regular_open(pipe, O_RDONLY), -EINVAL);
	assert_int_equal(sp_regular_open(dir, O_RDONLY), -EINVAL);
	assert_int_equal(sp_regular_open("/dev/null", O_RDWR), -EINVAL);
	assert_int_equal(sp_regular_open(file, O_RDONLY), -ENOENT);
	fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
	assert_int_equal(symlink(file, link), 0);
	assert_int_equal(sp_regular_open(link, O_RDONLY | O_NOFOLLOW), -ELOOP);
	fd = sp_regular_open(link, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(write(fd, "y", 1), 1);
	close(fd);
	unlink(link);
	unlink(file);
	unlink(pipe);
	rmdir(dir);
}

TEST_MAIN(NULL, NULL)
