/* SPDX-License-Identifier: MIT */
/* Can a library be preloaded into that program? */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "control/dynsym.h"
#include "control/launch.h"

/* As execvp looks for it. */
static int find_program(const char *name, char *path)
{
	const char *dirs = getenv("PATH");
	int code = -ENOENT;

	if (strchr(name, '/')) {
		snprintf(path, SP_LAUNCH_PATH_MAX, "%s", name);
		return access(path, X_OK) == 0 ? 0 : -errno;
	}
	if (!dirs)
		dirs = "/bin:/usr/bin";
	for (;;) {
		size_t n = strcspn(dirs, ":");
		struct stat st;

		snprintf(path, SP_LAUNCH_PATH_MAX, "%.*s/%s", n ? (int)n : 1,
			 n ? dirs : ".", name);
		if (access(path, X_OK) == 0 && stat(path, &st) == 0 &&
		    S_ISREG(st.st_mode))
			return 0;
		if (errno == EACCES)
			code = -EACCES;
		if (!dirs[n])
			return code;
		dirs += n + 1;
	}
}

/* The interpreter of a script, in place of its path: 1; 0 if it is none. */
static int follow_script(int fd, char *path)
{
	char head[256];
	ssize_t n = pread(fd, head, sizeof(head) - 1, 0);
	char *at;

	if (n < 4 || head[0] != '#' || head[1] != '!')
		return 0;
	head[n] = '\0';
	at = head + 2 + strspn(head + 2, " \t");
	at[strcspn(at, " \t\r\n")] = '\0';
	snprintf(path, SP_LAUNCH_PATH_MAX, "%s", at);
	return *at != '\0';
}

static bool gains_privileges(int fd, const struct stat *st)
{
	if ((st->st_mode & S_ISUID && st->st_uid != geteuid()) ||
	    (st->st_mode & S_ISGID && st->st_mode & S_IXGRP &&
	     st->st_gid != getegid()))
		return true;
	return geteuid() != 0 &&
	       fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

static bool has_interpreter(Elf *elf)
{
	size_t n = 0;

	if (elf_getphdrnum(elf, &n) != 0)
		return false;
	for (size_t i = 0; i < n && i <= INT32_MAX; i++) {
		GElf_Phdr header;

		if (gelf_getphdr(elf, (int)i, &header) &&
		    header.p_type == PT_INTERP)
			return true;
	}
	return false;
}

/* The dynamic loader is no program: it is shared, and defines what others find
 * their thread-local variables by. */
static bool is_loader(Elf *elf)
{
	GElf_Ehdr header;
	GElf_Sym symbol;

	return elf && elf_kind(elf) == ELF_K_ELF &&
	       gelf_getehdr(elf, &header) && header.e_type == ET_DYN &&
	       !has_interpreter(elf) &&
	       sp_dynsym_find(elf, "__tls_get_addr", STT_FUNC, &symbol);
}

/* That of this command, which the library was built with. */
static bool is_of_our_machine(const GElf_Ehdr *header)
{
	Elf64_Ehdr own = {.e_machine = EM_NONE};
	const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const bool is_known = fd >= 0 && pread(fd, &own, sizeof(own), 0) ==
						 (ssize_t)sizeof(own);

	if (fd >= 0)
		close(fd);
	return !is_known ||
	       (header->e_machine == own.e_machine &&
		header->e_ident[EI_CLASS] == own.e_ident[EI_CLASS]);
}

static int check_elf(Elf *elf, const char *path, struct sp_error *err)
{
	GElf_Ehdr header;

	if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &header))
		return 0; /* what exec makes of it is its own matter */
	if (!is_of_our_machine(&header))
		return sp_error_set(err, -ENOEXEC, path,
				    "is for another architecture than this "
				    "command: the library cannot be loaded "
				    "into it");
	if (!has_interpreter(elf) && !is_loader(elf))
		return sp_error_set(err, -ENOEXEC, path,
				    "is linked statically: nothing can be "
				    "preloaded into it; link it dynamically");
	return 0;
}

const char *sp_launch_why_unseen(int fd)
{
	const char *why = NULL;
	GElf_Sym symbol;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF) {
		if (!has_interpreter(elf) && !is_loader(elf))
			why = "the program is linked statically";
		else if (sp_dynsym_find(elf, "malloc", STT_FUNC, &symbol))
			why = "the program has a malloc of its own";
	}
	elf_end(elf);
	return why;
}

/* The program among the arguments of a loader; NULL: it is to do something else
 * than to run one. */
static const char *find_argument(char *const *arguments)
{
	static const char *const with_value[] = {
		"--library-path",
		"--inhibit-rpath",
		"--audit",
		"--preload",
		"--argv0",
		"--glibc-hwcaps-prepend",
		"--glibc-hwcaps-mask",
	};

	for (; *arguments && strncmp(*arguments, "--", 2) == 0; arguments++) {
		bool has_value = false;

		if (strcmp(*arguments, "--") == 0)
			return arguments[1];
		for (size_t i = 0; i < sizeof(with_value) / sizeof(*with_value);
		     i++)
			has_value |= strcmp(*arguments, with_value[i]) == 0;
		if (has_value && arguments[1])
			arguments++;
	}
	return *arguments;
}

static int check_open_elf(int fd, const char *path, bool *ret_is_loader,
			  struct sp_error *err)
{
	Elf *elf;
	int r;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	*ret_is_loader = is_loader(elf);
	r = check_elf(elf, path, err);
	elf_end(elf);
	return r;
}

/* Nothing that a loader runs gains privileges.  What it finds in the place of a
 * name without a slash is its own matter. */
static int check_argument(const char *name, char *path, struct sp_error *err)
{
	bool is_loader;
	int fd, r;

	if (!name || !strchr(name, '/') || access(name, R_OK) != 0)
		return 0;
	snprintf(path, SP_LAUNCH_PATH_MAX, "%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	r = fd >= 0 ? check_open_elf(fd, path, &is_loader, err) : 0;
	if (fd >= 0)
		close(fd);
	return r;
}

static int check_file(int fd, char *const *argv, char *path,
		      struct sp_error *err)
{
	bool is_loader = false;
	struct stat st;
	int r;

	if (fstat(fd, &st) == 0 && gains_privileges(fd, &st))
		return sp_error_set(err, -ENOEXEC, path,
				    "is set-uid, set-gid or has capabilities: "
				    "the loader preloads nothing into it; run "
				    "it as the user it changes to");
	r = check_open_elf(fd, path, &is_loader, err);
	return is_loader ? check_argument(find_argument(argv + 1), path, err)
			 : r;
}

int sp_launch_check(char *const *argv, char path[SP_LAUNCH_PATH_MAX],
		    struct sp_error *err)
{
	int r = find_program(argv[0], path);

	if (r < 0)
		return sp_error_set(err, r, argv[0], "cannot be run: %s",
				    strerror(-r));
	/* Scripts of scripts: as deep as the kernel goes. */
	for (int depth = 0; depth < 5; depth++) {
		int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

		if (fd < 0)
			return 0; /* executable, but not readable */
		if (!follow_script(fd, path)) {
			r = check_file(fd, argv, path, err);
			close(fd);
			return r;
		}
		close(fd);
	}
	return 0;
}
