/* SPDX-License-Identifier: MIT */
/* Work in a child: what it hands back and that it is waited for with an end,
 * whatever becomes of it; the rights and descriptors that it has left. */
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/securebits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/apart.h"
#include "cli/unread.h"
#include "support/test.h"

#define STRANGER 4711

/* Long for what answers at once, and short for what never does. */
#define ANSWERS_MS 600000u
#define NEVER_MS   64u

struct answer {
	uint64_t number;
	char text[16];
};

static int run(int (*work)(void *, void *, struct sp_error *), void *arg,
	       struct sp_apart apart, struct answer *ret, struct sp_error *err)
{
	apart.file = "the file";
	apart.work = work;
	apart.arg = arg;
	if (!apart.silence_ms)
		apart.silence_ms = ANSWERS_MS;
	if (!apart.all_ns)
		apart.all_ns = ANSWERS_MS * 1000000ull;
	*ret = (struct answer){0};
	*err = (struct sp_error){0};
	return sp_apart_run(&apart, ret, sizeof(*ret), err);
}

static int answer(void *arg, void *ret, struct sp_error *err)
{
	struct answer *a = ret;

	(void)err;
	a->number = *(uint64_t *)arg + 1;
	strcpy(a->text, "done");
	return 0;
}

static int refuse(void *arg, void *ret, struct sp_error *err)
{
	(void)arg;
	(void)ret;
	return sp_error_set_at(err, -EBADMSG, "another file", 12, "field",
			       "is wrong");
}

TEST(answers)
{
	uint64_t number = 41;
	struct answer got;
	struct sp_error err;
	char line[256];

	assert_int_equal(run(answer, &number, (struct sp_apart){0}, &got, &err),
			 0);
	assert_int_equal(got.number, 42);
	assert_string_equal(got.text, "done");
	assert_int_equal(run(refuse, NULL, (struct sp_apart){0}, &got, &err),
			 -EBADMSG);
	sp_error_describe(&err, line, sizeof(line));
	assert_string_equal(line, "another file: offset 12: field: is wrong");
}

/* ---- what becomes of the child ---- */

static int end_by(void *arg, void *ret, struct sp_error *err)
{
	(void)ret;
	(void)err;
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	signal(*(int *)arg, SIG_DFL);
	raise(*(int *)arg);
	return 0;
}

static int leave(void *arg, void *ret, struct sp_error *err)
{
	(void)arg;
	(void)ret;
	(void)err;
	_exit(0);
}

static int wait_for_nobody(void *arg, void *ret, struct sp_error *err)
{
	(void)arg;
	(void)ret;
	(void)err;
	while (pause())
		;
	return 0;
}

static int go_on(void *arg, void *ret, struct sp_error *err)
{
	(void)arg;
	(void)ret;
	(void)err;
	while (sp_clock_ns())
		sp_apart_progress(NULL, 1, 2);
	return 0;
}

static void no_child_is_left(void)
{
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void check_end(int (*work)(void *, void *, struct sp_error *), void *arg,
		      struct sp_apart apart, int want, const char *words)
{
	struct answer got;
	struct sp_error err;

	assert_int_equal(run(work, arg, apart, &got, &err), want);
	assert_string_equal(err.file, "the file");
	assert_non_null(strstr(err.message, words));
	no_child_is_left();
}

static void check_ends(void)
{
	static int signals[] = {SIGBUS, SIGKILL, SIGXCPU, SIGPIPE};
	const struct sp_apart usual = {0};

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		check_end(end_by, &signals[i], usual, -EOWNERDEAD,
			  strsignal(signals[i]));
	check_end(leave, NULL, usual, -EOWNERDEAD, "has ended early");
	check_end(wait_for_nobody, NULL,
		  (struct sp_apart){.silence_ms = NEVER_MS}, -ETIME,
		  "took too long");
	/* Signs of life have an end as well. */
	check_end(go_on, NULL,
		  (struct sp_apart){.all_ns = NEVER_MS * 1000000ull}, -ETIME,
		  "took too long");
}

TEST(every_end_is_seen)
{
	check_ends();
}

/* As a caller may have left them to us. */
TEST(signals_that_are_ignored_or_blocked)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigaction before, after;
	sigset_t set, mask;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_SETMASK, &set, &mask);
	sigaction(SIGCHLD, &ignore, &before);
	check_ends();
	sigaction(SIGCHLD, &before, &after);
	assert_ptr_equal(after.sa_handler, SIG_IGN);
	sigprocmask(SIG_SETMASK, &mask, NULL);
}

/* ---- what it has left ---- */

static int open_descriptors(void *arg, void *ret, struct sp_error *err)
{
	struct answer *a = ret;

	(void)err;
	for (int fd = 3; fd < 256; fd++)
		a->number += fcntl(fd, F_GETFD) >= 0;
	snprintf(a->text, sizeof(a->text), "%d",
		 fcntl(*(int *)arg, F_GETFD) >= 0);
	return 0;
}

TEST(descriptors)
{
	int kept = open("/dev/null", O_RDONLY), other = dup(kept), at = 200;
	struct answer got;
	struct sp_error err;

	assert_int_equal(dup2(kept, at), at);
	assert_int_equal(run(open_descriptors, &at,
			     (struct sp_apart){.kept = &at, .n_kept = 1}, &got,
			     &err),
			 0);
	/* That one, and where it answers. */
	assert_int_equal(got.number, 2);
	assert_string_equal(got.text, "1");
	close(kept);
	close(other);
	close(at);
}

/* The letters of what is still there. */
static int look_for_root(void *arg, void *ret, struct sp_error *err)
{
	struct answer *a = ret;
	uid_t users[3];
	gid_t groups[3];
	char line[128];
	FILE *in = fopen("/proc/self/status", "r");

	(void)arg;
	(void)err;
	getresuid(&users[0], &users[1], &users[2]);
	getresgid(&groups[0], &groups[1], &groups[2]);
	for (int i = 0; i < 3; i++)
		if (users[i] != STRANGER || groups[i] == 0)
			strcat(a->text, "u");
	if (setfsuid((uid_t)-1) != STRANGER || getgroups(0, NULL) != 0)
		strcat(a->text, "f");
	if (setuid(0) == 0 || seteuid(0) == 0)
		strcat(a->text, "0");
	while (in && fgets(line, sizeof(line), in)) {
		unsigned long long caps;

		if ((sscanf(line, "CapEff: %llx", &caps) == 1 ||
		     sscanf(line, "CapPrm: %llx", &caps) == 1) &&
		    caps)
			strcat(a->text, "c");
		if (strcmp(line, "NoNewPrivs:\t0\n") == 0)
			strcat(a->text, "n");
	}
	a->number = in != NULL;
	return 0;
}

TEST(rights)
{
	struct sp_rights rights;
	struct answer got;
	struct sp_error err;
	int r;

	if (geteuid() != 0)
		skip();
	assert_true(sp_rights_find("4711", &rights));
	assert_int_equal(rights.user, STRANGER);
	/* Root may be acting as another in file systems. */
	for (int i = 0; i < 3; i++) {
		/* With it a change of the user leaves the capabilities. */
		prctl(PR_SET_SECUREBITS, i == 2 ? SECBIT_NO_SETUID_FIXUP : 0);
		r = run(look_for_root, NULL,
			(struct sp_apart){.rights = &rights}, &got, &err);
		assert_int_equal(r, 0);
		assert_int_equal(got.number, 1);
		assert_string_equal(got.text, "");
		sp_rights_act(&rights, "the file", &err);
	}
	prctl(PR_SET_SECUREBITS, 0);
	sp_rights_act(NULL, "the file", &err);
	assert_int_equal(setfsuid((uid_t)-1), 0);
}

static long session_keyring(void)
{
	return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID,
		       KEY_SPEC_SESSION_KEYRING, 1);
}

/* The letters of what is still there; the keyring is a number. */
static int look_for_secrets(void *arg, void *ret, struct sp_error *err)
{
	struct answer *a = ret;

	(void)err;
	if (getenv("SECRET"))
		strcat(a->text, "v");
	if (*(const char *)arg)
		strcat(a->text, "m");
	if (!getenv("HOME") || !getenv("DEBUGINFOD_URLS"))
		strcat(a->text, "h");
	a->number = (uint64_t)session_keyring();
	return 0;
}

TEST(secrets)
{
	const long keyring = session_keyring();
	struct sp_rights rights;
	struct answer got;
	struct sp_error err;

	if (geteuid() != 0)
		skip();
	setenv("SECRET", "password", 1);
	setenv("HOME", "/", 0);
	setenv("DEBUGINFOD_URLS", "", 0);
	sp_rights_of(STRANGER, &rights);
	assert_int_equal(run(look_for_secrets, getenv("SECRET"),
			     (struct sp_apart){.rights = &rights}, &got, &err),
			 0);
	assert_string_equal(got.text, "");
	if (keyring > 0)
		assert_int_not_equal(got.number, keyring);
	assert_string_equal(getenv("SECRET"), "password");
	/* One's own are no secrets. */
	assert_int_equal(run(look_for_secrets, getenv("SECRET"),
			     (struct sp_apart){0}, &got, &err),
			 0);
	assert_string_equal(got.text, "vm");
}

/* What another file that is opened later is not to be taken for. */
static int look_at_refused(void *arg, void *ret, struct sp_error *err)
{
	const int fd = *(int *)arg;
	struct answer *a = ret;
	char path[32];
	struct sp_moved_module moved = {.path = "module", .file = path};
	const struct sp_symbolizer_options options = {.moved = &moved,
						      .n_moved = 1};
	struct sp_unread unread = {.file = "the file"};

	(void)err;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	sp_unread_options(&unread, &options);
	for (int i = 0; i < 8; i++)
		if (open("/dev/null", O_RDONLY) == fd)
			strcat(a->text, "n");
	if (read(fd, &a->number, sizeof(a->number)) >= 0)
		strcat(a->text, "r");
	if (open(path, O_RDONLY) >= 0)
		strcat(a->text, "o");
	return 0;
}

TEST(descriptor_of_what_is_refused)
{
	char path[] = "/tmp/sp-apart-XXXXXX";
	int fd = mkstemp(path);
	struct sp_rights rights;
	struct answer got;
	struct sp_error err;

	assert_true(fd >= 0);
	unlink(path);
	if (geteuid() != 0)
		skip();
	assert_int_equal(write(fd, "content", 7), 7);
	lseek(fd, 0, SEEK_SET);
	sp_rights_of(STRANGER, &rights);
	assert_int_equal(run(look_at_refused, &fd,
			     (struct sp_apart){.rights = &rights,
					       .kept = &fd,
					       .n_kept = 1},
			     &got, &err),
			 0);
	assert_string_equal(got.text, "");
	close(fd);
}

TEST(users)
{
	struct sp_rights rights;

	assert_true(sp_rights_find("root", &rights));
	assert_int_equal(rights.user, 0);
	assert_string_equal(rights.words, "user root (uid 0)");
	assert_true(sp_rights_find("4711", &rights));
	assert_string_equal(rights.words, "the user with uid 4711");
	assert_int_equal(rights.n_groups, 0);
	assert_false(sp_rights_find("4294967295", &rights));
	assert_false(sp_rights_find("no such user", &rights));
	assert_false(sp_rights_find("", &rights));
}

TEST_MAIN(NULL, NULL)
