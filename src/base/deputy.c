/* SPDX-License-Identifier: MIT */
#include "base/deputy.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

/* What the headers of older systems do not have. */
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#define LEAST_NS    20000000u
#define FORGET_NS   60000000000ull
#define LEFT_MAX    8u /* to one device */
#define DEVICES_MAX 8u
#define CLOSE_MAX   65536u /* before Linux 5.9 */

/* ---- messages ---- */

union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(2 * sizeof(int))];
};

static bool send_all(int to, void *text, size_t bytes, const int *fds, size_t n)
{
	union control control = {.bytes = {0}};
	struct iovec all = {text, bytes};
	struct msghdr message = {.msg_iov = &all, .msg_iovlen = 1};

	if (n) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(n * sizeof(*fds));
		control.header.cmsg_len = CMSG_LEN(n * sizeof(*fds));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(&control.header), fds, n * sizeof(*fds));
	}
	return sendmsg(to, &message, MSG_NOSIGNAL) == (ssize_t)bytes;
}

/* Descriptors that have no room with us are missing. */
static bool receive_all(int from, void *text, size_t bytes, int fds[2],
			size_t *ret_n)
{
	union control control = {.bytes = {0}};
	struct iovec all = {text, bytes};
	struct msghdr message = {.msg_iov = &all,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	ssize_t r;

	do
		r = recvmsg(from, &message, MSG_CMSG_CLOEXEC);
	while (r < 0 && errno == EINTR);
	*ret_n = 0;
	if (r == (ssize_t)bytes &&
	    message.msg_controllen >= CMSG_LEN(sizeof(*fds))) {
		*ret_n = (control.header.cmsg_len - CMSG_LEN(0)) / sizeof(*fds);
		memcpy(fds, CMSG_DATA(&control.header), *ret_n * sizeof(*fds));
	}
	return r == (ssize_t)bytes;
}

/* ---- the child ---- */

static void close_between(unsigned int from, unsigned int to)
{
	struct rlimit limit;
	unsigned int end = CLOSE_MAX;

	if (from > to || syscall(SYS_close_range, from, to, 0) == 0)
		return;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < end)
		end = (unsigned int)limit.rlim_cur;
	for (unsigned int fd = from; fd <= to && fd < end; fd++)
		close((int)fd);
}

/* Whoever reads a pipe of ours is not to wait for it; nor is it itself to wait
 * where it opens and closes nothing. */
static void close_all_but(int fd)
{
	if (fd > 0)
		close_between(0, (unsigned int)fd - 1);
	close_between((unsigned int)fd + 1, ~0u);
}

static void answer(void *room, int to, const struct sp_deputy_call *call,
		   const int got[2], size_t n_got)
{
	int fds[2], fd;
	size_t n = 0;
	long r = 0;

	for (size_t i = 0; i < 2; i++) {
		fds[i] = call->fds[i] < 0 ? call->fds[i]
			 : n < n_got      ? got[n]
					  : -1;
		n += call->fds[i] >= 0;
	}
	r = n == n_got ? call->call(room, fds) : -EMFILE;
	while (n_got)
		close(got[--n_got]);
	fd = (int)r;
	send_all(to, &r, sizeof(r), &fd, call->gives_descriptor && r >= 0);
	if (call->gives_descriptor && r >= 0)
		close(fd);
}

/* Until the parent kills it, or has ended itself.  A child that is stopped then
 * would see no end of the parent's descriptor. */
static void be_child(void *room, int to, pid_t parent)
{
	struct sp_deputy_call call = {0};
	int got[2];
	size_t n;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		syscall(SYS_exit_group, 0);
	close_all_but(to);
	while (receive_all(to, &call, sizeof(call), got, &n))
		answer(room, to, &call, got, n);
	syscall(SYS_exit_group, 0);
}

/* ---- devices ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock: that were missed. */
static struct device {
	uint64_t device, missed_ns, time_ns;
	pid_t left[LEFT_MAX]; /* were killed, and have not ended; 0: none */
} devices[DEVICES_MAX];

static size_t count_left(struct device *d)
{
	size_t n = 0;

	for (size_t i = 0; i < LEFT_MAX; i++) {
		if (d->left[i] && waitpid(d->left[i], NULL, WNOHANG | __WALL))
			d->left[i] = 0;
		n += d->left[i] != 0;
	}
	return n;
}

/* Its place, or that of the one with no child left that was missed first; NULL:
 * there is none. */
static struct device *find_device(uint64_t device)
{
	struct device *found = NULL;

	for (size_t i = 0; i < DEVICES_MAX; i++) {
		struct device *d = &devices[i];

		if (d->missed_ns && d->device == device)
			return d;
		if (!count_left(d) &&
		    (!found || d->missed_ns < found->missed_ns))
			found = d;
	}
	if (found)
		*found = (struct device){.device = device};
	return found;
}

/* 0: too many are left. */
static uint64_t get_time(uint64_t device)
{
	uint64_t ns = SP_DEPUTY_NS;
	struct device *d;

	pthread_mutex_lock(&lock);
	d = find_device(device);
	if (!d || count_left(d) == LEFT_MAX)
		ns = 0;
	else if (d->missed_ns && sp_clock_ns() - d->missed_ns < FORGET_NS)
		ns = d->time_ns;
	pthread_mutex_unlock(&lock);
	return ns;
}

static void note_miss(uint64_t device, uint64_t ns, pid_t child)
{
	struct device *d;

	pthread_mutex_lock(&lock);
	d = find_device(device);
	if (d) {
		d->time_ns = ns / 2 > LEAST_NS ? ns / 2 : LEAST_NS;
		d->missed_ns = sp_clock_ns();
	}
	/* Of several threads the last may find no place; it is forgotten. */
	for (size_t i = 0; d && i < LEFT_MAX; i++)
		if (!d->left[i]) {
			d->left[i] = child;
			break;
		}
	pthread_mutex_unlock(&lock);
}

/* ---- the parent ---- */

/* Under the lock: the one that waits for the next call; pid 0: none. */
static struct sp_deputy spare;

/* It tells nobody of its end: it is no child of the program's own; but under
 * qemu-user, which has no such children.  Handlers of signals are ours, and
 * would run twice. */
static pid_t start_child(void *room, int to)
{
	const pid_t parent = getpid();
	sigset_t all, before;
	pid_t child;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	child = (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
	if (child < 0 && errno == EINVAL)
		child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL,
				       NULL);
	if (child == 0)
		be_child(room, to, parent);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return child;
}

static uid_t our_user(void)
{
	return (uid_t)setfsuid((uid_t)-1);
}

static int start_deputy(struct sp_deputy *ret)
{
	int pair[2];

	ret->room = mmap(NULL, SP_DEPUTY_BYTES, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (ret->room == MAP_FAILED)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0) {
		ret->owner = getpid();
		ret->thread = gettid();
		ret->user = our_user();
		ret->to = pair[0];
		ret->pid = start_child(ret->room, pair[1]);
		close(pair[1]);
		if (ret->pid > 0)
			return 0;
		close(pair[0]);
	}
	munmap(ret->room, SP_DEPUTY_BYTES);
	return -ECHILD;
}

static void let_go(struct sp_deputy *d)
{
	close(d->to);
	munmap(d->room, SP_DEPUTY_BYTES);
	d->pid = 0;
}

static void end(struct sp_deputy *d)
{
	/* That of a parent is the parent's; its descriptor may be closed here,
	 * and its number another's. */
	if (d->owner != getpid()) {
		munmap(d->room, SP_DEPUTY_BYTES);
		d->pid = 0;
		return;
	}
	kill(d->pid, SIGKILL);
	while (waitpid(d->pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	let_go(d);
}

/* The first thread ends last; that of another lives as long as that one. */
static bool is_of_process(const struct sp_deputy *d)
{
	return d->thread == d->owner;
}

int sp_deputy_take(struct sp_deputy *ret)
{
	pthread_mutex_lock(&lock);
	*ret = spare;
	spare.pid = 0;
	pthread_mutex_unlock(&lock);
	if (ret->pid && ret->owner == getpid() && ret->user == our_user() &&
	    (is_of_process(ret) || ret->thread == gettid()))
		return 0;
	if (ret->pid)
		end(ret);
	return start_deputy(ret);
}

void sp_deputy_begin(void)
{
	struct sp_deputy d;

	if (sp_deputy_take(&d) == 0)
		sp_deputy_release(&d);
}

void sp_deputy_release(struct sp_deputy *d)
{
	struct sp_deputy other = *d;

	if (!d->pid)
		return;
	pthread_mutex_lock(&lock);
	if (!spare.pid || is_of_process(d)) {
		other = spare;
		spare = *d;
	}
	pthread_mutex_unlock(&lock);
	if (other.pid)
		end(&other);
}

__attribute__((destructor)) void sp_deputy_rest(void)
{
	struct sp_deputy d;

	pthread_mutex_lock(&lock);
	d = spare;
	spare.pid = 0;
	pthread_mutex_unlock(&lock);
	if (d.pid)
		end(&d);
}

static bool wait_for_answer(int from, uint64_t ns)
{
	const uint64_t until = sp_clock_ns() + ns;
	struct pollfd ready = {.fd = from, .events = POLLIN};
	uint64_t now = until - ns;

	while (poll(&ready, 1,
		    now < until ? (int)((until - now) / 1000000u) + 1 : 0) <=
	       0) {
		if (now >= until)
			return false;
		now = sp_clock_ns();
	}
	return true;
}

long sp_deputy_ask(struct sp_deputy *d, const struct sp_deputy_call *call,
		   uint64_t *ret_ns)
{
	struct sp_deputy_call copy = *call;
	int fds[2] = {-1, -1};
	size_t n = 0, n_got;
	long result = -EIO;

	*ret_ns = get_time(call->device);
	if (!*ret_ns)
		return -ETIMEDOUT;
	for (size_t i = 0; i < 2; i++)
		if (call->fds[i] >= 0)
			fds[n++] = call->fds[i];
	if (!send_all(d->to, &copy, sizeof(copy), fds, n)) {
		if (errno == EBADF)
			return -EBADF;
		end(d);
	} else if (!wait_for_answer(d->to, *ret_ns)) {
		kill(d->pid, SIGKILL);
		note_miss(call->device, *ret_ns, d->pid);
		let_go(d);
		result = -ETIMEDOUT;
	} else if (!receive_all(d->to, &result, sizeof(result), fds, &n_got)) {
		end(d);
	} else if (call->gives_descriptor && result >= 0) {
		result = n_got ? fds[0] : -EMFILE;
	}
	return result;
}
