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
	if (!has_interpreter(elf))
		return sp_error_set(err, -ENOEXEC, path,
				    "is linked statically: nothing can be "
				    "preloaded into it; link it dynamically");
	return 0;
}

const char *sp_launch_why_unseen(const char *path)
{
	const char *why = NULL;
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	GElf_Sym symbol;
	Elf *elf;

	if (fd < 0)
		return NULL;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF) {
		if (!has_interpreter(elf))
			why = "the program is linked statically";
		else if (sp_dynsym_find(elf, "malloc", STT_FUNC, &symbol))
			why = "the program has a malloc of its own";
	}
	elf_end(elf);
	close(fd);
	return why;
}

static int check_file(int fd, const char *path, struct sp_error *err)
{
	struct stat st;
	Elf *elf;
	int r;

	if (fstat(fd, &st) == 0 && gains_privileges(fd, &st))
		return sp_error_set(err, -ENOEXEC, path,
				    "is set-uid, set-gid or has capabilities: "
				    "the loader preloads nothing into it; run "
				    "it as the user it changes to");
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	r = check_elf(elf, path, err);
	elf_end(elf);
	return r;
}

int sp_launch_check(const char *name, char path[SP_LAUNCH_PATH_MAX],
		    struct sp_error *err)
{
	int r = find_program(name, path);

	if (r < 0)
		return sp_error_set(err, r, name, "cannot be run: %s",
				    strerror(-r));
	/* Scripts of scripts: as deep as the kernel goes. */
	for (int depth = 0; depth < 5; depth++) {
		int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

		if (fd < 0)
			return 0; /* executable, but not readable */
		if (!follow_script(fd, path)) {
			r = check_file(fd, path, err);
			close(fd);
			return r;
		}
		close(fd);
	}
	return 0;
}
