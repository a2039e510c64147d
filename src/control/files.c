/* SPDX-License-Identifier: MIT */
#include "control/files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/patience.h"
#include "base/regular.h"
#include "control/target.h"

#define ZSTD_MAGIC 0xfd2fb528u

static bool is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool sp_files_directory(const char *out, char dir[SP_LAUNCH_PATH_MAX])
{
	const char *slash = out ? strrchr(out, '/') : NULL;
	size_t n = slash ? (size_t)(slash - out) + 1 : 0;
	const bool is_dir = out && is_directory(out);

	if (is_dir)
		n = strlen(out);
	if (n + 1 >= SP_LAUNCH_PATH_MAX || (n && memchr(out, '%', n)))
		return false;
	snprintf(dir, SP_LAUNCH_PATH_MAX, "%.*s%s", (int)n, n ? out : "",
		 is_dir && out[n - 1] != '/' ? "/" : "");
	return true;
}

int sp_files_check(const char *out, struct sp_error *err)
{
	char dir[SP_LAUNCH_PATH_MAX];
	struct stat st;
	int code;

	if (out && !strchr(out, '%') && !is_directory(out) &&
	    lstat(out, &st) == 0)
		return sp_error_set(err, -EEXIST, out,
				    "exists already: remove it, or give "
				    "another name with --out");
	if (!sp_files_directory(out, dir) ||
	    access(*dir ? dir : ".", W_OK | X_OK) == 0)
		return 0;
	code = -errno;
	return sp_error_set(err, code, NULL,
			    "no profile can be written to %.150s: %s; give "
			    "another place with --out",
			    *dir ? dir : "the current directory",
			    strerror(-code));
}

static bool is_wanted(const char *path, uint64_t since_unix_ns)
{
	const int fd = sp_regular_open_found(path);
	struct sp_file_header header;
	bool is_ours;
	uint32_t magic;

	if (fd < 0)
		return false;
	is_ours = sp_target_read_header(fd, &header);
	if (is_ours)
		is_ours = header.start_unix_ns >= since_unix_ns;
	else if (!since_unix_ns)
		is_ours = sp_patience_read(fd, &magic, sizeof(magic), 0) ==
				  (ssize_t)sizeof(magic) &&
			  magic == ZSTD_MAGIC;
	close(fd);
	return is_ours;
}

static int add_path(struct sp_files *files, char *path)
{
	char **grown = realloc(files->paths, (files->n + 1) * sizeof(*grown));

	if (!grown) {
		free(path);
		return -ENOMEM;
	}
	files->paths = grown;
	files->paths[files->n++] = path;
	return 0;
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int sp_files_list(const char *dir, uint64_t since_unix_ns, struct sp_files *ret,
		  struct sp_error *err)
{
	DIR *files = opendir(*dir ? dir : ".");
	struct dirent *entry;
	int r = 0;

	*ret = (struct sp_files){.n = 0};
	if (!files) {
		r = -errno;
		return sp_error_set(err, r, dir, "%s", strerror(-r));
	}
	while (r >= 0 && (entry = readdir(files)) != NULL) {
		char *path;

		if (asprintf(&path, "%s%s", dir, entry->d_name) < 0)
			r = -ENOMEM;
		else if (is_wanted(path, since_unix_ns))
			r = add_path(ret, path);
		else
			free(path);
	}
	closedir(files);
	if (r < 0)
		return sp_error_memory(err, NULL);
	if (ret->n)
		qsort(ret->paths, ret->n, sizeof(*ret->paths), compare_paths);
	return 0;
}

void sp_files_free(struct sp_files *files)
{
	for (size_t i = 0; i < files->n; i++)
		free(files->paths[i]);
	free(files->paths);
	*files = (struct sp_files){.n = 0};
}
