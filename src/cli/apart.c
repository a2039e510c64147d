/* SPDX-License-Identifier: MIT */
#include "cli/apart.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"

/* ---- one user's rights ---- */

#define NO_GROUP 65534

void sp_rights_of(uid_t user, struct sp_rights *ret)
{
	const struct passwd *known = getpwuid(user);

	*ret = (struct sp_rights){.user = user, .group = NO_GROUP};
	snprintf(ret->words, sizeof(ret->words), "the user with uid %ld",
		 (long)user);
	if (!known)
		return;
	ret->group = known->pw_gid;
	ret->n_groups = SP_RIGHTS_GROUPS_MAX;
	/* Of more groups some: less can be read then. */
	if (getgrouplist(known->pw_name, known->pw_gid, ret->groups,
			 &ret->n_groups) < 0)
		ret->n_groups = SP_RIGHTS_GROUPS_MAX;
	snprintf(ret->words, sizeof(ret->words), "user %.48s (uid %ld)",
		 known->pw_name, (long)user);
}

bool sp_rights_find(const char *text, struct sp_rights *ret)
{
	const struct passwd *known = getpwnam(text);
	uint64_t number;

	/* The last one stands for none. */
	if (!known && (!sp_parse_u64(text, &number) || number >= UINT32_MAX))
		return false;
	sp_rights_of(known ? known->pw_uid : (uid_t)number, ret);
	return true;
}

static int fail_rights(const struct sp_rights *rights, const char *file,
		       struct sp_error *err)
{
	return sp_error_set(err, -EPERM, file,
			    "is read with the rights of %s, which are not to "
			    "be had here: --user chooses others, and --user 0 "
			    "keeps root's",
			    rights->words);
}

int sp_rights_act(const struct sp_rights *rights, const char *file,
		  struct sp_error *err)
{
	const uid_t user = rights ? rights->user : geteuid();

	if (rights && setgroups((size_t)rights->n_groups, rights->groups) != 0)
		return fail_rights(rights, file, err);
	setfsgid(rights ? rights->group : getegid());
	setfsuid(user);
	return setfsuid((uid_t)-1) == (int)user || !rights
		       ? 0
		       : fail_rights(rights, file, err);
}

static bool lose_capabilities(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

	return syscall(SYS_capset, &header, none) == 0;
}

/* For good.  Nobody of that user can look into this process. */
static bool become(const struct sp_rights *r)
{
	const uid_t u = r->user;
	const gid_t g = r->group;

	return setgroups((size_t)r->n_groups, r->groups) == 0 &&
	       setresgid(g, g, g) == 0 && setresuid(u, u, u) == 0 &&
	       lose_capabilities() && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0;
}

/* ---- what is left to the child ---- */

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* Before Linux 5.9 one after the other. */
static void close_from_to(unsigned int first, unsigned int last)
{
	const long most = sysconf(_SC_OPEN_MAX);

	if (first > last || syscall(SYS_close_range, first, last, 0) == 0)
		return;
	for (unsigned int i = first;
	     i <= last && i <= USHRT_MAX && (most < 0 || i < most); i++)
		close((int)i);
}

/* The lowest that is to be kept, and not below `from`; UINT_MAX: none is. */
static unsigned int next_kept(const struct sp_apart *a, unsigned int from,
			      int channel)
{
	unsigned int next = (unsigned int)channel >= from
				    ? (unsigned int)channel
				    : UINT_MAX;

	for (size_t i = 0; i < a->n_kept; i++)
		if ((unsigned int)a->kept[i] >= from &&
		    (unsigned int)a->kept[i] < next)
			next = (unsigned int)a->kept[i];
	return next;
}

static void close_others(const struct sp_apart *a, int channel)
{
	unsigned int from = STDERR_FILENO + 1, kept;

	while ((kept = next_kept(a, from, channel)) != UINT_MAX) {
		close_from_to(from, kept - 1);
		from = kept + 1;
	}
	close_from_to(from, UINT_MAX);
}

/* A terminal of root's can be read, and be made to type. */
static void leave_terminal(void)
{
	const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (nothing < 0 || dup2(nothing, fd) < 0)
			close(fd);
}

/* What its work may ask for: a name that ends in "_" stands for all that begin
 * so. */
static bool is_needed(const char *variable)
{
	static const char *const needed[] = {
		"ALL_PROXY",  "DEBUGINFOD_", "HOME",        "HTTPS_PROXY",
		"HTTP_PROXY", "JITDUMPDIR",  "LANG",        "LC_",
		"NO_PROXY",   "SSL_CERT_",   "TZ",          "XDG_CACHE_HOME",
		"all_proxy",  "http_proxy",  "https_proxy", "no_proxy"};

	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++) {
		const size_t n = strlen(needed[i]);

		if (strncmp(variable, needed[i], n) == 0 &&
		    (variable[n] == '=' || needed[i][n - 1] == '_'))
			return true;
	}
	return false;
}

/* What root has at hand for other purposes, such as passwords. */
static void leave_secrets(void)
{
	char **kept = environ;

	for (char **e = environ; e && *e; e++)
		if (is_needed(*e))
			*kept++ = *e;
		else
			explicit_bzero(*e, strlen(*e));
	if (kept)
		*kept = NULL;
	/* Without keyrings in the kernel there is nothing to leave. */
	syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
}

/* ---- what the child says ---- */

enum kind { GOES_ON, HAS_ENDED };

/* Comes and is read as a whole. */
struct word {
	enum kind kind;
	int code;
	uint64_t done, total;
	bool has_file;
	char file[PIPE_BUF - 1088];
	char message[sizeof(((struct sp_error *)0)->message)];
	_Alignas(max_align_t) char answer[SP_APART_ANSWER_MAX];
};

_Static_assert(sizeof(struct word) <= PIPE_BUF, "it may come in parts");

#define SAY_EVERY_NS 100000000u

static int channel = -1; /* in the child: where it says it */

static void say(const struct word *word)
{
	ssize_t n;

	do
		n = write(channel, word, sizeof(*word));
	while (n < 0 && errno == EINTR);
	/* Nobody listens. */
	if (n != (ssize_t)sizeof(*word))
		_exit(EXIT_FAILURE);
}

void sp_apart_progress(void *unused, uint64_t done, uint64_t total)
{
	static uint64_t said_ns;
	const uint64_t now_ns = sp_clock_ns();

	(void)unused;
	if (channel < 0 || (said_ns && now_ns - said_ns < SAY_EVERY_NS))
		return;
	said_ns = now_ns;
	say(&(struct word){.kind = GOES_ON, .done = done, .total = total});
}

static void say_end(struct word *word, int r, struct sp_error *err)
{
	word->kind = HAS_ENDED;
	word->code = r;
	word->has_file = r < 0 && err->file;
	if (word->has_file)
		snprintf(word->file, sizeof(word->file), "%s", err->file);
	err->file = NULL;
	if (r < 0)
		sp_error_describe(err, word->message, sizeof(word->message));
	say(word);
}

static _Noreturn void work_apart(const struct sp_apart *a, pid_t parent)
{
	const bool changes = a->rights && a->rights->user != geteuid();
	struct word word = {.kind = HAS_ENDED};
	struct sp_error err = {0};
	int r = 0;

	setsid();
	close_others(a, channel);
	if (changes) {
		leave_terminal();
		leave_secrets();
	}
	if (!changes)
		sp_rights_act(NULL, a->file, &err);
	else if (!become(a->rights))
		r = fail_rights(a->rights, a->file, &err);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	/* A change of rights would take that back. */
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	if (r >= 0)
		r = a->work(a->arg, word.answer, &err);
	say_end(&word, r, &err);
	_exit(EXIT_SUCCESS);
}

/* ---- the parent ---- */

/* Time in which this process is stopped as well is no silence. */
#define SLICES 32

/* 0: the child has ended its work with that word. */
static int hear(const struct sp_apart *a, int from, struct word *ret)
{
	const uint64_t since_ns = sp_clock_ns(), all_ms = a->all_ns / 1000000u;
	const int slice_ms =
		(int)(all_ms < a->silence_ms ? all_ms : a->silence_ms) /
			SLICES +
		1;
	struct pollfd poll_fd = {from, POLLIN, 0};
	unsigned int silent = 0;

	while (silent < SLICES && sp_clock_ns() - since_ns < a->all_ns) {
		int n = poll(&poll_fd, 1, slice_ms);

		if (n < 0 && errno != EINTR)
			return -errno;
		silent += n == 0;
		if (n <= 0)
			continue;
		n = (int)read(from, ret, sizeof(*ret));
		if (n != (int)sizeof(*ret))
			return -EOWNERDEAD;
		if (ret->kind != GOES_ON)
			return 0;
		silent = 0;
		if (a->progress && ret->total)
			a->progress(a->progress_arg, ret->done, ret->total);
	}
	return -ETIME;
}

#define REAP_NS 2000000000u

/* How it ended; -1: it cannot even be killed at once.  It has said all, or will
 * not.  An end that has begun is not changed by this. */
static int end_child(pid_t pid)
{
	const uint64_t until_ns = sp_clock_ns() + REAP_NS;
	struct timespec nap = {0, 100000};
	int status;

	kill(pid, SIGKILL);
	do {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return status;
		nanosleep(&nap, NULL);
		if (nap.tv_nsec < 10000000)
			nap.tv_nsec *= 2;
	} while (sp_clock_ns() < until_ns);
	return -1;
}

static int fail_apart(const struct sp_apart *a, int r, int status,
		      struct sp_error *err)
{
	if (r == -ETIME)
		return sp_error_set(
			err, r, a->file,
			"nothing was written: a process reads the files that "
			"it names, and took too long; is one of them where "
			"nobody answers? symbolize a copy of the profile where "
			"these files are at hand");
	if (r == -EOWNERDEAD && status >= 0 && WIFSIGNALED(status))
		return sp_error_set(
			err, r, a->file,
			"nothing was written: the process that reads the files "
			"that it names was ended by signal %d (%s); one of "
			"them may be damaged, or was cut meanwhile: try again, "
			"or symbolize it where they are whole",
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	return sp_error_set(err, r, a->file,
			    "nothing was written: the process that reads the "
			    "files that it names has ended early: try again");
}

static int take_answer(struct word *word, void *answer, size_t bytes,
		       struct sp_error *err)
{
	static char file[sizeof(word->file)];

	if (word->code >= 0) {
		memcpy(answer, word->answer, bytes);
		return 0;
	}
	word->file[sizeof(word->file) - 1] = '\0';
	word->message[sizeof(word->message) - 1] = '\0';
	strcpy(file, word->file);
	return sp_error_set(err, word->code, word->has_file ? file : NULL, "%s",
			    word->message);
}

static int run_child(const struct sp_apart *a, struct word *word, int *status)
{
	const pid_t parent = getpid();
	int ends[2], r;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return -errno;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		channel = ends[1];
		work_apart(a, parent);
	}
	r = pid < 0 ? -errno : 0;
	close(ends[1]);
	if (pid > 0) {
		r = hear(a, ends[0], word);
		*status = end_child(pid);
	}
	close(ends[0]);
	return r;
}

int sp_apart_run(const struct sp_apart *apart, void *answer, size_t bytes,
		 struct sp_error *err)
{
	/* Where it is ignored, nobody learns how a child ended. */
	const struct sigaction usual = {.sa_handler = SIG_DFL};
	struct sigaction before;
	struct word word = {.code = -EOWNERDEAD}; /* of one that says nothing */
	int r, status = -1;

	sigaction(SIGCHLD, &usual, &before);
	r = run_child(apart, &word, &status);
	sigaction(SIGCHLD, &before, NULL);
	if (r == -EOWNERDEAD || r == -ETIME)
		return fail_apart(apart, r, status, err);
	if (r < 0)
		return sp_error_set(err, r, apart->file,
				    "cannot start a process that reads it: %s",
				    strerror(-r));
	return take_answer(&word, answer, bytes, err);
}
