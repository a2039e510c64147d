/* SPDX-License-Identifier: MIT */
#include "control/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/target.h"

/* With a slash at its end; "" is the present one. */
static bool find_directory(const char *out, char dir[SP_LAUNCH_PATH_MAX])
{
	const char *slash = out ? strrchr(out, '/') : NULL;
	size_t n = slash ? (size_t)(slash - out) + 1 : 0;
	struct stat st;
	bool is_dir = out && stat(out, &st) == 0 && S_ISDIR(st.st_mode);

	if (is_dir)
		n = strlen(out);
	if (n + 1 >= SP_LAUNCH_PATH_MAX || (n && memchr(out, '%', n)))
		return false;
	snprintf(dir, SP_LAUNCH_PATH_MAX, "%.*s%s", (int)n, n ? out : "",
		 is_dir && out[n - 1] != '/' ? "/" : "");
	return true;
}

/* The path is shorter than files->path. */
static void look_at(struct sp_files *files, const char *path, uint64_t pid,
		    uint64_t since_unix_ns)
{
	struct sp_file_header header;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);

	if (fd < 0)
		return;
	if (sp_target_read_header(fd, &header) &&
	    header.start_unix_ns >= since_unix_ns) {
		if (header.pid == pid && !*files->path)
			memcpy(files->path, path, strlen(path) + 1);
		else
			files->others++;
	}
	close(fd);
}

void sp_files_find(struct sp_files *ret, const char *out, uint64_t pid,
		   uint64_t since_unix_ns)
{
	char dir[SP_LAUNCH_PATH_MAX], path[SP_LAUNCH_PATH_MAX + 257];
	struct dirent *entry;
	DIR *files;

	*ret = (struct sp_files){.others = 0};
	if (!find_directory(out, dir))
		return;
	files = opendir(*dir ? dir : ".");
	while (files && (entry = readdir(files)) != NULL) {
		snprintf(path, sizeof(path), "%s%s", dir, entry->d_name);
		if (strlen(path) < sizeof(ret->path))
			look_at(ret, path, pid, since_unix_ns);
	}
	if (files)
		closedir(files);
}
